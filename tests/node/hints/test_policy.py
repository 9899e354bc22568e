"""Which policies a machine allows."""

from __future__ import annotations

import pytest

from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints import BadPolicy, TopologyOptions, TopologyPolicy, check

SIXTEEN = CpuSet(range(16))


def test_more_nodes_than_allowed() -> None:
    with pytest.raises(BadPolicy, match="Set max-allowable-numa-nodes to 16"):
        check(TopologyPolicy.RESTRICTED, TopologyOptions(), SIXTEEN)


def test_the_limit_can_be_raised() -> None:
    check(TopologyPolicy.RESTRICTED, TopologyOptions(max_allowable_numa_nodes=16), SIXTEEN)


def test_the_limit_cannot_be_lowered() -> None:
    with pytest.raises(BadPolicy, match="is 4; it can only be raised"):
        check(TopologyPolicy.RESTRICTED, TopologyOptions(max_allowable_numa_nodes=4), CpuSet({0}))


def test_without_a_policy_any_machine_will_do() -> None:
    check(TopologyPolicy.NONE, TopologyOptions(), SIXTEEN)
