"""`dovetail intents` against a real server: the acceptance scenario from emcoctl's files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import yaml

from tests.cli.conftest import Parrot, Run, commands
from tests.support import server
from tests.support.intents import scenario
from tests.support.intents.rest_documents import Spelling
from tests.support.paths import DOVETAIL

GROUP = "my-proj1/my-capp1/v1.0/my-dig1"
GROUP_PATH = "projects/my-proj1/composite-apps/my-capp1/v1.0/deployment-intent-groups/my-dig1"
ACTIONS = ("approve", "instantiate")


@pytest.fixture
def dovetail(tmp_path: Path) -> Iterator[Run]:
    options = ["--auth", "noauth2", "--policy", "open", "--database", f"sqlite:///{tmp_path}/l.db"]
    with server.running([DOVETAIL, "serve", *options], tmp_path / "log", cwd=tmp_path) as started:
        yield commands(started.url)


def emco_file(folder: Path, spelling: Spelling, actions: tuple[str, ...] = ()) -> Path:
    """The scenario in emcoctl's format; the project's name is left to a values file."""
    documents = []
    for number, post in enumerate(scenario.base().posts(spelling)):
        document = {
            "version": "emco/v2",
            "resourceContext": {"anchor": post.path},
            **(post.body or {}),
        }
        if post.file is not None:
            manifests = folder / f"manifests-{number}.yaml"
            manifests.write_text(post.file)
            document["file"] = manifests.name
        documents.append(document)
    documents += [
        {"version": "emco/v2", "resourceContext": {"anchor": f"{GROUP_PATH}/{action}"}}
        for action in actions
    ]
    text = yaml.safe_dump_all(documents, sort_keys=False)
    found = folder / f"{spelling.name}-{len(actions)}.yaml"
    found.write_text(text.replace("my-proj1", "{{.Project}}"))
    (folder / "values.yaml").write_text("Project: my-proj1\n")
    return found


def words(output: str) -> list[str]:
    """The first word of each line."""
    return [line.split()[0] for line in output.splitlines() if line.strip()]


def test_a_file_is_applied_and_applied_again(dovetail: Run, tmp_path: Path) -> None:
    file = emco_file(tmp_path, Spelling.SPEC)
    with_values = ["-f", str(file), "-v", str(tmp_path / "values.yaml")]
    first = dovetail("intents", "apply", *with_values)
    assert first.exit_code == 0, first.output
    assert set(words(first.output)) == {"created"}
    again = dovetail("intents", "apply", *with_values)
    assert again.exit_code == 0, again.output
    # What comes with a file is sent again: whether that is the same is not told.
    assert set(words(again.output)) == {"unchanged", "replaced"}
    assert words(again.output).count("unchanged") > words(again.output).count("replaced")
    shown = dovetail("intents", "get", GROUP_PATH)
    assert orjson.loads(shown.stdout)["metadata"]["name"] == "my-dig1"


def test_the_story_of_a_group(dovetail: Run, tmp_path: Path) -> None:
    file = emco_file(tmp_path, Spelling.CANONICAL)
    with_values = ["-f", str(file), "-v", str(tmp_path / "values.yaml")]
    assert dovetail("intents", "apply", *with_values).exit_code == 0

    plan = dovetail("intents", "plan", GROUP)
    assert plan.exit_code == 0, plan.output
    assert "P1  fwall: 1 of allow [p1+c1, p1+c2]" in plan.output
    assert "P2  analytics: 1 of deny [p1+c1]" in plan.output
    assert "Picked, with a score of 9:" in plan.output
    assert "cpu: need 4 on one node, largest free 3 (n1,n2,n3)" in plan.output
    assert "+            nvidia.com/gpu: '1'" in plan.output
    told = orjson.loads(dovetail("intents", "plan", GROUP, "-o", "json").stdout)
    assert [each["cluster"] for each in told["pick"]["apps"]["fwall"]] == ["p1+c1"]

    explained = dovetail("intents", "explain", GROUP, "fwall", "--cluster", "p1+c3")
    assert explained.exit_code == 1
    assert "p1+c3 does not take fwall." in explained.output
    assert "hpa: cpu: need 4 on one node" in explained.output

    for action in ACTIONS:
        done = dovetail("intents", "apply", f"{GROUP_PATH}/{action}")
        assert (done.exit_code, words(done.output)) == (0, ["done"]), done.output
    status = dovetail("intents", "status", GROUP)
    assert "my-dig1: Instantiat" in status.output
    assert "fwall on p1+c1, score 9: available" in status.output

    with_actions = emco_file(tmp_path, Spelling.CANONICAL, ACTIONS)
    gone = dovetail(
        "intents", "delete", "-f", str(with_actions), "-v", str(tmp_path / "values.yaml")
    )
    assert gone.exit_code == 0, gone.output
    assert words(gone.output)[:2] == ["done", "passed"]
    assert set(words(gone.output)[2:]) == {"deleted"}
    assert dovetail("intents", "get", GROUP_PATH).exit_code == 3


def test_what_is_refused_is_told_with_its_document(dovetail: Run, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(
        "version: emco/v2\nresourceContext: {anchor: projects/none/composite-apps}\n"
        "metadata: {name: c}\nspec: {compositeAppVersion: v1}\n"
        "---\nversion: emco/v2\nresourceContext: {anchor: projects}\nmetadata: {name: p}\n"
    )
    told = dovetail("intents", "apply", "-f", str(file))
    assert (told.exit_code, words(told.stdout)) == (3, ["refused", "created"])
    assert f"{file}, document 1: " in told.stderr
    stopped = dovetail("intents", "apply", "--stop", "-f", str(file))
    assert words(stopped.stdout) == ["refused"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[1]", "an object is expected"),
        ("metadata: {name: x}", "resourceContext.anchor is missing"),
        ("resourceContext: {anchor: projects}\nfile: none.tgz", "file none.tgz is not there"),
        ("a: [", "neither YAML nor JSON"),
    ],
)
def test_files_that_cannot_be_read(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text(text)
    told = commands("http://127.0.0.1:9")("intents", "apply", "-f", str(tmp_path / "f.yaml"))
    assert told.exit_code == 6
    assert complaint in told.output


def test_deleting_waits_for_what_is_terminated(parrot: Parrot, tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(f"resourceContext: {{anchor: {GROUP_PATH}/instantiate}}\n")
    parrot.says("GET", f"/v2/{GROUP_PATH}", {})
    parrot.says("POST", f"/v2/{GROUP_PATH}/terminate", {}, 202)
    parrot.says(
        "GET", f"/v2/{GROUP_PATH}/status", {"states": {"actions": [{"state": "Terminating"}]}}
    )
    told = commands(parrot.url)("intents", "delete", "-f", str(file), "--wait", "0")
    assert told.exit_code == 6
    assert "is Terminating after 0 s" in told.output


def test_a_group_is_named_in_full_or_in_short() -> None:
    told = commands("http://127.0.0.1:9")("intents", "plan", "a/b")
    assert told.exit_code == 2
    assert "should read PROJECT/COMPOSITE-APP/VERSION/GROUP" in told.output
