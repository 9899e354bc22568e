"""`dovetail intents` with emcoctl's files that have a logical cloud, in both dialects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Run, commands
from tests.cli.intents.test_commands import words
from tests.support import server
from tests.support.paths import DOVETAIL

CLOUD = "projects/p/logical-clouds/l"
GROUP = "projects/p/composite-apps/c/v1/deployment-intent-groups/g"
DOCUMENTS = [
    ("projects", {"metadata": {"name": "p"}}),
    ("projects/p/logical-clouds", {"metadata": {"name": "l"}, "spec": {"level": "0"}}),
    (
        f"{CLOUD}/cluster-references",
        {"metadata": {"name": "r"}, "spec": {"clusterProvider": "x", "cluster": "y"}},
    ),
    (f"{CLOUD}/instantiate", {}),
]


@pytest.fixture(params=[(), ("--intents-emco-status-codes",)], ids=["ours", "emco"])
def dovetail(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Run]:
    options = ["--auth", "noauth2", "--policy", "open", "--database", f"sqlite:///{tmp_path}/l.db"]
    command = [DOVETAIL, "serve", *options, *request.param]
    with server.running(command, tmp_path / "log", cwd=tmp_path) as started:
        yield commands(started.url)


def test_a_cloud_comes_and_goes(dovetail: Run, tmp_path: Path) -> None:
    file = tmp_path / "cloud.yaml"
    head = {"version": "emco/v2"}
    file.write_text(
        yaml.safe_dump_all(
            {**head, "resourceContext": {"anchor": anchor}, **body} for anchor, body in DOCUMENTS
        )
    )
    applied = dovetail("intents", "apply", "-f", str(file))
    assert (applied.exit_code, words(applied.output)) == (0, ["created"] * 3 + ["done"])
    again = dovetail("intents", "apply", "-f", str(file))
    assert again.exit_code == 0, again.output
    # What EMCO fills in is not what the file says: then it is sent again.
    assert set(words(again.output)[:3]) <= {"unchanged", "replaced"}
    assert words(again.output)[3] == "unchanged"
    gone = dovetail("intents", "delete", "-f", str(file))
    assert (gone.exit_code, words(gone.output)) == (0, ["done"] + ["deleted"] * 3), gone.output
    absent = dovetail("intents", "delete", "-f", str(file))
    assert (absent.exit_code, words(absent.output)) == (0, ["passed"] + ["absent"] * 3)


def test_a_group_that_is_not_there_is_as_good_as_terminated(dovetail: Run, tmp_path: Path) -> None:
    file = tmp_path / "group.yaml"
    context = {"resourceContext": {"anchor": f"{GROUP}/instantiate"}}
    file.write_text(yaml.safe_dump({"version": "emco/v2", **context}))
    gone = dovetail("intents", "delete", "-f", str(file))
    assert (gone.exit_code, words(gone.output)) == (0, ["passed"]), gone.output
