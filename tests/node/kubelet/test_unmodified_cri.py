"""An unmodified kubelet straight on containerd; the agent changes containers that run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.node.kubelet.seen import HALVES_SWAPPED, ON_FIRST, ON_SECOND, ONE_CPU_FREE, await_held
from tests.support.node.kubelet.bed import NodeBed, container_id


@pytest.fixture(scope="module")
def options() -> dict[str, Any]:
    return {"backend": "cri"}


def test_pods_are_pinned_and_follow_their_pools(bed: NodeBed) -> None:
    bed.run_pod("web", role="web")
    bed.run_pod("etl", role="etl")
    bed.await_pinned("web", ON_FIRST)
    bed.await_pinned("etl", ON_SECOND)
    bed.node.write_roles(HALVES_SWAPPED)
    bed.await_pinned("web", ON_SECOND)
    bed.await_pinned("etl", ON_FIRST)
    bed.delete_pods()
    await_held(bed, {})


def test_pod_that_does_not_fit_runs_as_it_is_until_it_does(bed: NodeBed) -> None:
    bed.run_pod("storage", role="storage", cpu="1")
    bed.await_that(
        lambda: "plugin_refused" in bed.agent.say("explain", "storage", check=False),
        "the agent says why",
    )
    bed.node.write_roles(ONE_CPU_FREE)
    bed.await_pinned("storage", ON_SECOND)


def test_restarts(bed: NodeBed) -> None:
    first = bed.run_pod("web", role="web")
    bed.await_pinned("web", ON_FIRST)
    for each in (bed.agent, bed.containerd, bed.kubelet):
        each.kill()
        each.start()
    bed.node.await_plugins()
    bed.run_pod("etl", role="etl")
    bed.await_pinned("etl", ON_SECOND)
    assert bed.pinned("web") == ON_FIRST
    assert container_id(bed.await_running("web")) == container_id(first)
