"""Every part of a real node is ended and killed in turn; pods keep what they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.node.kubelet.seen import HALVES_SWAPPED, ON_FIRST, ON_SECOND, given, held
from tests.support.node.kubelet.bed import NodeBed, container_id
from tests.support.processes import Process

End = Callable[[Process], object]

ENDS = pytest.mark.parametrize("end", [Process.stop, Process.kill], ids=["TERM", "KILL"])


def check_all_works(bed: NodeBed, before: dict[str, Any]) -> None:
    """The pod of before is as it was; it can be entered and moved, and others can come."""
    bed.run_pod("etl", role="etl")
    assert bed.pinned("etl") == ON_SECOND
    web = bed.await_running("web")
    assert container_id(web) == container_id(before), "it ran on"
    assert bed.pinned("web") == ON_FIRST
    assert held(bed) == {"web": {"main"}, "etl": {"main"}}
    assert bed.exec("web", "echo", "there") == "there\n"
    bed.node.write_roles(HALVES_SWAPPED)
    bed.await_pinned("web", ON_SECOND)
    bed.await_pinned("etl", ON_FIRST)


@ENDS
def test_kubelet(bed: NodeBed, end: End) -> None:
    before = bed.run_pod("web", role="web")
    end(bed.kubelet)
    assert bed.pinned("web") == ON_FIRST
    bed.kubelet.start()
    check_all_works(bed, before)


@ENDS
def test_agent(bed: NodeBed, end: End) -> None:
    before = bed.run_pod("web", role="web")
    allocated = given(bed)
    end(bed.agent)
    assert bed.pinned("web") == ON_FIRST
    bed.agent.start()
    bed.node.await_plugins()
    assert given(bed) == allocated
    check_all_works(bed, before)


@ENDS
def test_containerd(bed: NodeBed, end: End) -> None:
    before = bed.run_pod("web", role="web")
    end(bed.containerd)
    assert bed.pinned("web") == ON_FIRST
    bed.containerd.start()
    check_all_works(bed, before)


@ENDS
def test_plugins(bed: NodeBed, end: End) -> None:
    before = bed.run_pod("web", role="web")
    allocated = given(bed)
    for plugin in bed.node.plugins.values():
        end(plugin)
    bed.create_pod("etl", role="etl")
    bed.await_event("etl", "FailedCreatePodSandBox", "plugin_down")
    assert bed.pinned("web") == ON_FIRST
    for plugin in bed.node.plugins.values():
        plugin.start()
    bed.node.await_plugins()
    bed.delete_pod("etl")
    bed.await_that(lambda: given(bed) == allocated, "what was given is as before")
    check_all_works(bed, before)


def test_all_at_once(bed: NodeBed) -> None:
    """As after a power cut, but for the containers."""
    before = bed.run_pod("web", role="web")
    for each in (bed.kubelet, bed.agent, bed.containerd, *bed.node.plugins.values()):
        each.kill()
    assert bed.pinned("web") == ON_FIRST
    bed.containerd.start()
    for plugin in bed.node.plugins.values():
        plugin.start()
    bed.agent.start()
    bed.node.await_plugins()
    bed.kubelet.start()
    check_all_works(bed, before)
