"""Hints on the wire."""

from __future__ import annotations

import pytest

from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints import ANYWHERE, BadHint, Hint, Hints, from_wire, listed, to_wire
from dovetail.node.wire.resource_plugin import (
    ListOfTopologyHints,
    ResourceHintsResponse,
    TopologyHint,
)
from dovetail.wire.codec import decode, encode

NODES = CpuSet({0, 1, 3})


@pytest.mark.parametrize(
    "hint",
    [ANYWHERE, Hint(None, preferred=False), Hint(0b1001, preferred=True), Hint(1, preferred=False)],
)
def test_there_and_back(hint: Hint) -> None:
    assert from_wire(to_wire(hint), NODES) == hint


def test_nodes_are_in_order() -> None:
    assert to_wire(Hint(0b1011, preferred=True)) == TopologyHint(nodes=(0, 1, 3), preferred=True)


@pytest.mark.parametrize("hints", [(), (Hint(0b1, preferred=True), ANYWHERE)])
def test_lists_survive_the_wire(hints: Hints) -> None:
    received = sent(hints)
    assert received is not None
    assert tuple(from_wire(each, NODES) for each in received.hints) == hints


def test_no_preference_is_not_no_possibility() -> None:
    assert sent(None) is None
    assert sent(()) == ListOfTopologyHints()


def sent(hints: Hints) -> ListOfTopologyHints | None:
    answer = ResourceHintsResponse(resource_hints={"cpu": listed(hints)})
    return decode(ResourceHintsResponse, encode(answer)).resource_hints["cpu"]


@pytest.mark.parametrize("nodes", [(2,), (0, 64), (10**12,)])
def test_nodes_that_do_not_exist(nodes: tuple[int, ...]) -> None:
    with pytest.raises(BadHint, match="this machine has 0-1,3"):
        from_wire(TopologyHint(nodes=nodes), NODES)
