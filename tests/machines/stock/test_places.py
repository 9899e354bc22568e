"""Stock finds its place wherever that is possible, and what is short is said, with the reason."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec.structs import replace

from dovetail.machines.names import HOSTNAME
from dovetail.machines.pods import type_of
from dovetail.podfit.objects import Node, Taint
from tests.machines.building import changed, machine, node
from tests.machines.lab import Lab, kind, small
from tests.machines.simulation.cluster import SimulatedCluster, is_stock
from tests.machines.simulation.operator import SimulatedOperator


def room(name: str, cpu: int) -> Node:
    return node(name, cpu=cpu, memory="1Ti", gpus=0)


def there(lab: Lab) -> Counter[tuple[str, str]]:
    """Sleepers by type and node."""
    return Counter(
        (type_of(pod), pod.spec.node_name) for pod in lab.sleepers.values() if pod.spec.node_name
    )


def held(operator: SimulatedOperator) -> Counter[tuple[str, str]]:
    return Counter(
        (type_of(pod), pod.spec.node_name)
        for pod in operator.cluster.pods.values()
        if is_stock(pod) and pod.spec.node_name
    )


def cluster(spec: dict[str, Any], *nodes: Node) -> SimulatedOperator:
    return SimulatedOperator(SimulatedCluster(machine(spec), nodes))


HALF = kind("half", 2, 4, spec={"dependence": {"parent": "whole", "availableRatio": 0.5}})


def test_stock_goes_where_there_is_room() -> None:
    lab = Lab(
        small(kind("quad", 4, 3), nodes={"a": "quad", "b": "quad"}), room("a", 4), room("b", 8)
    )
    assert there(lab) == {("quad", "a"): 1, ("quad", "b"): 2}
    assert lab.plan().stock.shortages == ()


def test_what_finds_no_room_is_told_with_the_node_that_comes_nearest() -> None:
    lab = Lab(
        small(kind("quad", 4, 3), nodes={"a": "quad", "b": "quad"}), room("a", 6), room("b", 7)
    )
    [shortage] = lab.plan().stock.shortages
    assert (shortage.type, shortage.count, shortage.node) == ("quad", 1, "b")
    assert shortage.words == "Insufficient cpu: wants 4, free 3 of 7, 1 short"


def test_where_no_node_is_ready_that_is_the_reason() -> None:
    lab = Lab(small(kind("quad", 4, 1), nodes={"a": "quad"}))
    lab.set_node(replace(lab.nodes["a"], spec=replace(lab.nodes["a"].spec, unschedulable=True)))
    [shortage] = lab.plan().stock.shortages
    assert (shortage.node, shortage.words) == ("", "no node that serves it is ready")


def test_a_taint_of_others_keeps_stock_away_and_is_named() -> None:
    lab = Lab(small(kind("quad", 4, 1), nodes={"a": "quad"}))
    taints = (Taint(key="dedicated", value="db", effect="NoSchedule"),)
    lab.set_node(replace(lab.nodes["a"], spec=replace(lab.nodes["a"].spec, taints=taints)))
    lab.sleepers.clear()
    lab.units.clear()
    lab.table.remove_pod("quad-general-machine-0")
    [shortage] = lab.plan().stock.shortages
    assert "dedicated" in shortage.words


def test_a_sleeper_gets_one_place_where_units_are_opened_on_several_nodes() -> None:
    operator = cluster(
        small(kind("whole", 4, 2), HALF, nodes={"a": "whole", "b": "whole"}),
        room("a", 4),
        room("b", 4),
    )
    operator.settle()
    for name in ("a", "b"):
        operator.cluster.create_guest("half", nodeSelector={HOSTNAME: name})
    operator.settle()
    assert held(operator) == {("half", "a"): 1, ("half", "b"): 1}


def test_the_rest_of_an_opened_unit_is_held_on_its_node_before_anything_else_is() -> None:
    """Node a has room for a unit and a half. When two halves are sold there, then one of them ends,
    the other half is held, and no whole unit is in its way."""
    operator = cluster(
        small(kind("whole", 4, 2), HALF, nodes={"a": "whole", "b": "whole"}),
        room("a", 6),
        room("b", 4),
    )
    operator.settle()
    assert held(operator) == {("whole", "a"): 1, ("whole", "b"): 1}
    operator.cluster.create_guest("half", nodeSelector={HOSTNAME: "a"})
    operator.settle()
    assert held(operator) == {("half", "a"): 1, ("whole", "b"): 1}


def test_letter_d_a_mix_is_placed_exactly_where_first_fit_is_not_enough() -> None:
    """The largest first would be both fours on one node: no room is left for the last three."""
    types = [kind("four", 4, 2), kind("three", 3, 4)]
    every = ["four", "three"]
    lab = Lab(
        small(*types, nodes={"a": every, "b": every}, severalTypesPerNode=True),
        room("a", 10),
        room("b", 10),
    )
    assert lab.plan().stock.shortages == ()
    assert there(lab) == {
        ("four", "a"): 1,
        ("three", "a"): 2,
        ("four", "b"): 1,
        ("three", "b"): 2,
    }


def test_letter_d_sleepers_in_the_way_of_others_are_moved_once() -> None:
    """Small ones got to the large node while the small one was away."""
    types = [kind("large", 8, 1), kind("small", 4, 1)]
    spec = small(
        *types, nodes={"big": ["large", "small"], "little": "small"}, severalTypesPerNode=True
    )
    operator = cluster(changed({"machineTypes[0].available": 0}, spec), room("big", 8))
    operator.settle()
    assert held(operator) == {("small", "big"): 1}
    operator.cluster.nodes["little"] = room("little", 4)

    def raised(found: dict[str, Any]) -> None:
        found["machineTypes"][0]["available"] = 1

    operator.cluster.change_spec(raised)
    assert operator.settle().stock.shortages == ()
    assert held(operator) == {("large", "big"): 1, ("small", "little"): 1}


def test_letter_d_what_cannot_be_had_anywhere_does_not_keep_the_rest_from_its_place() -> None:
    """No node of one type is ready: the others are moved all the same."""
    types = [kind("large", 8, 1), kind("small", 4, 1), kind("gone", 1, 1)]
    nodes = {"big": ["large", "small"], "little": ["small"], "away": ["gone"]}
    spec = small(*types, nodes=nodes, severalTypesPerNode=True)
    operator = cluster(changed({"machineTypes[0].available": 0}, spec), room("big", 8))
    operator.settle()
    operator.cluster.nodes["little"] = room("little", 4)

    def raised(found: dict[str, Any]) -> None:
        found["machineTypes"][0]["available"] = 1

    operator.cluster.change_spec(raised)
    assert [each.type for each in operator.settle().stock.shortages] == ["gone"]
    assert held(operator) == {("large", "big"): 1, ("small", "little"): 1}


def test_defect_5_stock_that_finds_no_room_waits_and_nothing_is_written() -> None:
    """Upstream lowered replicas for it, and raised them again, for ever."""
    operator = cluster(small(kind("quad", 4, 3), nodes={"a": "quad"}), room("a", 8))
    plan = operator.settle()
    assert [each.count for each in plan.stock.shortages] == [1]
    found = operator.cluster.stateful_sets["quad-general-machine"]
    assert found.spec["replicas"] == 3
    before = dict(operator.cluster.pods)
    for _ in range(3):
        assert list(operator.carrying_out(operator.plan())) == []
        operator.cluster.run_stateful_sets()
        operator.look()
    assert operator.cluster.pods == before
