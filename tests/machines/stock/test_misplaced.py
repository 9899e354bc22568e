"""Sleepers whose room others took make way, and guests that were sold a unit find room."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dovetail.machines.names import HOSTNAME, UNIT_GATE
from dovetail.machines.pods import has_gate, is_guest
from dovetail.podfit.objects import Node, Pod
from tests.machines.building import machine, node
from tests.machines.lab import kind, small
from tests.machines.simulation.cluster import SimulatedCluster, is_stock
from tests.machines.simulation.operator import SimulatedOperator


def room(name: str, cpu: int) -> Node:
    return node(name, cpu=cpu, memory="1Ti", gpus=0)


def cluster(available: int, *nodes: Node) -> SimulatedOperator:
    names = [each.metadata.name for each in nodes]
    spec = small(kind("quad", 4, available), nodes=dict.fromkeys(names, "quad"))
    return SimulatedOperator(SimulatedCluster(machine(spec), nodes))


def sold_but_not_lifted(operator: SimulatedOperator, **spec: Any) -> Pod:
    """The operator dies just after it took the unit."""
    operator.look()
    guest = operator.cluster.create_guest("quad", **spec)
    operator.look()
    steps = operator.carrying_out(operator.plan())
    assert next(steps).startswith("sold")
    assert guest.metadata.uid in operator.cluster.ledger.units
    return guest


def place(operator: SimulatedOperator, pod: Pod) -> str:
    return operator.cluster.pods[pod.metadata.uid].spec.node_name


def sleepers_on(operator: SimulatedOperator, name: str) -> int:
    pods = operator.cluster.pods.values()
    return sum(is_stock(pod) and pod.spec.node_name == name for pod in pods)


def test_a_sleeper_that_others_outran_goes_elsewhere() -> None:
    operator = cluster(1, room("a", 4), room("b", 4))
    operator.cluster.mark_nodes()
    operator.look()
    list(operator.carrying_out(operator.plan()))
    operator.cluster.run_stateful_sets()
    operator.look()
    list(operator.carrying_out(operator.plan()))
    [sleeper] = [pod for pod in operator.cluster.pods.values() if is_stock(pod)]
    taken = operator.cluster.ledger.units[sleeper.metadata.uid].node
    operator.cluster.create_pod(2, node=taken)
    plan = operator.settle()
    assert plan.stock.shortages == ()
    assert sleepers_on(operator, {"a": "b", "b": "a"}[taken]) == 1


def test_a_guest_that_was_let_go_finds_the_room_that_a_sleeper_has() -> None:
    """It is tied to its node by then: somebody else took its room there, a sleeper has the same."""
    operator = cluster(2, room("a", 8))
    operator.settle()
    guest = sold_but_not_lifted(operator)
    operator.look()
    list(operator.carrying_out(operator.plan()))
    operator.cluster.create_pod(4, node="a")
    plan = operator.settle()
    assert place(operator, guest) == "a"
    assert sleepers_on(operator, "a") == 0
    assert [each.count for each in plan.stock.shortages] == [1]


def test_a_guest_behind_its_gate_goes_elsewhere_if_its_node_went_away() -> None:
    operator = cluster(2, room("a", 4), room("b", 4))
    operator.settle()
    guest = sold_but_not_lifted(operator)
    at = operator.cluster.ledger.units[guest.metadata.uid].node
    operator.cluster.set_ready(at, False)
    operator.settle()
    assert place(operator, guest) == {"a": "b", "b": "a"}[at]


def test_a_guest_behind_its_gate_waits_again_if_there_is_no_other_place() -> None:
    operator = cluster(1, room("a", 4))
    operator.settle()
    guest = sold_but_not_lifted(operator)
    operator.cluster.create_pod(2, node="a")
    for uid in [uid for uid, pod in operator.cluster.pods.items() if is_stock(pod)]:
        del operator.cluster.pods[uid]
    plan = operator.settle()
    uid = guest.metadata.uid
    assert has_gate(operator.cluster.pods[uid], UNIT_GATE)
    assert uid not in operator.cluster.ledger.units
    assert plan.waiting[uid].reason == "NoNodeFits"


def test_a_node_that_has_less_to_give_keeps_guests_and_lets_stock_go() -> None:
    operator = cluster(2, room("a", 8))
    operator.settle()
    guest = operator.cluster.create_guest("quad")
    operator.settle()
    found = operator.cluster.nodes["a"]
    status = replace(found.status, allocatable={**found.status.allocatable, "cpu": "6"})
    operator.cluster.nodes["a"] = replace(found, status=status)
    operator.settle()
    assert place(operator, guest) == "a"
    assert sleepers_on(operator, "a") == 0


def test_a_sleeper_whose_unit_is_sold_already_goes_and_no_other() -> None:
    """Caches are behind: it was deleted, and is still seen on its node."""
    operator = cluster(3, room("a", 8), room("b", 4))
    operator.settle()
    operator.cluster.create_guest("quad", nodeSelector={HOSTNAME: "b"})
    operator.look()
    list(operator.carrying_out(operator.plan()))
    guests = {uid: pod for uid, pod in operator.cluster.pods.items() if is_guest(pod)}
    operator.pods |= guests
    plan = operator.plan()
    assert [pod.spec.node_name for pod, _ in plan.removals] == ["b"]
    assert plan.stock_adoptions == ()
