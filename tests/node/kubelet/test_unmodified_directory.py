"""An unmodified kubelet, and an agent that knows its pods from a directory of manifests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.node.kubelet.seen import ON_FIRST, ON_SECOND, await_held
from tests.support.node.kubelet.bed import NodeBed
from tests.support.node.kubelet.pods import pod_object


@pytest.fixture(scope="module")
def options() -> dict[str, Any]:
    return {"source": "directory"}


@pytest.fixture
def manifests(bed: NodeBed) -> Iterator[NodeBed]:
    yield bed
    bed.delete_pods()
    for each in bed.node.manifests.iterdir():
        each.unlink()
    await_held(bed, {})


def write(bed: NodeBed, name: str, role: str) -> None:
    """A manifest without a uid is for whichever pod has its name."""
    draft = bed.node.directory / "manifest.draft"
    draft.write_text(json.dumps(pod_object(name, role=role)))
    draft.rename(bed.node.manifests / f"{name}.json")


def test_pods_are_pinned(manifests: NodeBed) -> None:
    bed = manifests
    for name, role in (("web", "web"), ("etl", "etl")):
        write(bed, name, role)
        bed.run_pod(name, role=role)
    assert bed.pinned("web") == ON_FIRST
    assert bed.pinned("etl") == ON_SECOND
    bed.delete_pod("etl")
    (bed.node.manifests / "etl.json").unlink()
    await_held(bed, {"web": {"main"}})


def test_unknown_pod_starts_when_its_manifest_is_there(manifests: NodeBed) -> None:
    bed = manifests
    bed.create_pod("etl", role="etl")
    bed.await_event("etl", "FailedCreatePodSandBox", "pod_unknown")
    await_held(bed, {})
    write(bed, "etl", "etl")
    bed.await_running("etl")
    assert bed.pinned("etl") == ON_SECOND


def test_restart_of_the_agent(manifests: NodeBed) -> None:
    bed = manifests
    write(bed, "web", "web")
    bed.run_pod("web", role="web")
    bed.agent.kill()
    assert bed.pinned("web") == ON_FIRST
    bed.agent.start()
    bed.node.await_plugins()
    write(bed, "etl", "etl")
    bed.run_pod("etl", role="etl")
    assert bed.pinned("web") == ON_FIRST
    assert bed.pinned("etl") == ON_SECOND
