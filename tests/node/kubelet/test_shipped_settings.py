"""The shipped agent.toml and a kubelet that was told nothing of certificates; pods as a whole.

The kubelet makes its certificate itself when it first starts, for the node's name only.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.node.kubelet.seen import ON_FIRST, ON_SECOND, ONE_CPU_FREE, held
from tests.support.node import image
from tests.support.node.kubelet.bed import NodeBed, node_bed
from tests.support.paths import ROOT

SHIPPED = tomllib.loads((ROOT / "packaging/agent.toml").read_text())["pods"]


@pytest.fixture(scope="module")
def shared_bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeBed]:
    """Where the tests have them are the token and the manifests; all else is as it is shipped."""
    directory = tmp_path_factory.mktemp("bed")
    kept = {key: value for key, value in SHIPPED.items() if key not in ("token_file", "manifests")}
    with node_bed(
        directory,
        agent_settings={"pods": kept},
        kubelet_settings={"tlsCertFile": None, "tlsPrivateKeyFile": None},
        roles=ONE_CPU_FREE,
    ) as bed:
        yield bed


@pytest.fixture
def bed(shared_bed: NodeBed) -> Iterator[NodeBed]:
    yield shared_bed
    shared_bed.delete_pods()


def test_a_default_kubelet_is_reached(bed: NodeBed) -> None:
    assert bed.agent.settings["pods"]["url"] == SHIPPED["url"] == "https://127.0.0.1:10250"
    certificate = bed.node.mounts.root / "pki/kubelet.crt"
    assert bed.agent.settings["pods"]["ca_file"] == "/var/lib/kubelet/pki/kubelet.crt"
    assert certificate.exists()
    bed.run_pod("web", role="web")
    assert bed.pinned("web") == ON_FIRST
    assert held(bed) == {"web": {"main"}}


def test_a_certificate_is_as_good_as_a_token(bed: NodeBed) -> None:
    name = "system:serviceaccount:default:dovetail-agent"
    groups = ("system:serviceaccounts", "system:authenticated")
    files: tuple[Path, Path] = bed.cluster.authority.issue(name, groups=groups)
    pods = bed.agent.settings["pods"]
    before = dict(pods)
    del pods["token_file"]
    pods["client_certificate"], pods["client_key"] = map(str, files)
    try:
        bed.agent.restart()
        bed.node.await_plugins()
        bed.run_pod("etl", role="web")
        assert bed.pinned("etl") == ON_FIRST
    finally:
        bed.agent.settings["pods"] = before
        bed.agent.restart()
        bed.node.await_plugins()


def test_the_http_client_says_nothing(bed: NodeBed) -> None:
    bed.run_pod("web", role="web")
    assert not [each for each in bed.agent.lines if "HTTP Request" in each.get("event", "")]


def test_a_pod_that_asks_as_a_whole_has_cpus_of_its_own(bed: NodeBed) -> None:
    amounts = {"cpu": "1", "memory": "64Mi"}

    def plain(name: str) -> dict[str, Any]:
        return {"name": name, "image": image.REFERENCE, "imagePullPolicy": "Never"}

    bed.create_pod(
        "whole",
        role="storage",
        containers=[plain("main"), plain("aide")],
        spec={"resources": {"requests": amounts, "limits": amounts}},
    )
    bed.await_running("whole")
    for each in ("main", "aide"):
        assert bed.pinned("whole", each) == ON_SECOND
    (pod,) = bed.agent.told("state")["pods"]
    given = [sorted(each["allocations"]) for each in pod["containers"]]
    assert given == [["cpu", "memory"]] * 2
