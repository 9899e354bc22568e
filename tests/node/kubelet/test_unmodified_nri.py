"""An unmodified kubelet straight on containerd, which asks the agent by NRI."""

from __future__ import annotations

from typing import Any

import pytest

from tests.node.kubelet.seen import (
    HALVES_SWAPPED,
    ON_FIRST,
    ON_SECOND,
    ONE_CPU_FREE,
    await_held,
)
from tests.support.node.kubelet.bed import NodeBed, container_id
from tests.support.node.kubelet.pods import container_object


@pytest.fixture(scope="module")
def options() -> dict[str, Any]:
    return {"backend": "nri"}


def test_pods_are_pinned_and_follow_their_pools(bed: NodeBed) -> None:
    bed.run_pod("web", role="web")
    sidecar = container_object("sidecar", restartPolicy="Always")
    bed.run_pod("etl", role="etl", spec={"initContainers": [sidecar]})
    assert bed.pinned("web") == ON_FIRST
    assert bed.pinned("etl") == ON_SECOND
    assert bed.pinned("etl", "sidecar") == ON_SECOND
    bed.node.write_roles(HALVES_SWAPPED)
    bed.await_pinned("web", ON_SECOND)
    bed.await_pinned("etl", ON_FIRST)
    bed.await_pinned("etl", ON_FIRST, "sidecar")
    bed.delete_pod("web")
    await_held(bed, {"etl": {"main", "sidecar"}})


def test_refusal_is_described_and_the_pod_starts_when_there_is_room(bed: NodeBed) -> None:
    bed.create_pod("storage", role="storage", cpu="1")
    bed.await_event("storage", "FailedCreatePodSandBox", "plugin_refused")
    assert "wants 1 CPUs of its own" in bed.kubectl("describe", "pod", "storage")
    await_held(bed, {})
    bed.node.write_roles(ONE_CPU_FREE)
    bed.await_running("storage")
    assert bed.pinned("storage") == ON_SECOND


def test_pods_start_without_the_agent_and_are_adopted(bed: NodeBed) -> None:
    """The node stays ready meanwhile: the kubelet does not need the agent."""
    first = bed.run_pod("web", role="web")
    bed.agent.kill()
    assert bed.pinned("web") == ON_FIRST
    bed.run_pod("etl", role="etl")
    assert bed.exec("etl", "echo", "there") == "there\n"
    bed.agent.start()
    bed.node.await_plugins()
    bed.await_pinned("etl", ON_SECOND)
    assert bed.pinned("web") == ON_FIRST
    assert container_id(bed.await_running("web")) == container_id(first)
    await_held(bed, {"web": {"main"}, "etl": {"main"}})


def test_restart_of_containerd(bed: NodeBed) -> None:
    first = bed.run_pod("web", role="web")
    before = connections(bed)
    bed.containerd.restart()
    assert bed.pinned("web") == ON_FIRST
    bed.await_that(lambda: connections(bed) > before, "containerd asks the agent again")
    bed.run_pod("etl", role="etl")
    assert bed.pinned("etl") == ON_SECOND
    assert container_id(bed.await_running("web")) == container_id(first)


def connections(bed: NodeBed) -> int:
    """How often a containerd and the agent have found each other."""
    return bed.agent.output.count('"nri configured"')
