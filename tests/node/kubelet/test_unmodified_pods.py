"""Pods of an unmodified kubelet: pinned, and told why not."""

from __future__ import annotations

from tests.support.node.kubelet.bed import NodeBed
from tests.support.node.pods_on import Pinned

ON_FIRST, ON_SECOND = Pinned("0", "0", "0", "0"), Pinned("1", "0", "1", "0")


def test_pods_are_pinned(bed: NodeBed) -> None:
    bed.run_pod("web", role="web")
    bed.run_pod("etl", role="etl")
    assert bed.pinned("web") == ON_FIRST
    assert bed.pinned("etl") == ON_SECOND
    assert "Cpus_allowed_list:\t1\n" in bed.exec("etl", "cat", "/proc/self/status")
