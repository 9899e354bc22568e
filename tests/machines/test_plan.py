"""Plans of a Machine, from its first node to its last: what is sold, held, told and taken away."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dovetail.machines.documents import Machine, MachineNodePool, MachineShape
from dovetail.machines.names import HOSTNAME, NODE_POOL
from dovetail.machines.plan import plan_machine
from dovetail.machines.pods import is_guest, is_live_sleeper, type_of
from dovetail.podfit.objects import Node, Pod, Service, StatefulSet
from tests.machines.building import machine, node
from tests.machines.lab import kind, small
from tests.machines.simulation.cluster import SimulatedCluster, is_stock
from tests.machines.simulation.operator import SimulatedOperator
from tests.machines.validation.worlds import NODES

HALF = kind("half", 2, 4, spec={"dependence": {"parent": "quad", "availableRatio": 0.5}})


def room(name: str, cpu: int) -> Node:
    return node(name, cpu=cpu, memory="1Ti", gpus=0)


def two_nodes(available: int = 4, *more: dict[str, Any]) -> SimulatedOperator:
    """A type of 4 CPUs on two nodes of 8."""
    spec = small(kind("quad", 4, available), *more, nodes={"a": "quad", "b": "quad"})
    operator = SimulatedOperator(SimulatedCluster(machine(spec), [room("a", 8), room("b", 8)]))
    operator.settle()
    return operator


def usage(operator: SimulatedOperator, name: str = "quad") -> dict[str, Any]:
    machines = operator.plan().status["availableMachines"]
    found: dict[str, Any] = next(each for each in machines if each["name"] == name)
    return {**found["usage"], "free": found["free"]}


def numbers(maximum: int, reserved: int, used: float, waiting: int) -> dict[str, Any]:
    """As the specification writes them."""
    return {"maximum": maximum, "reserved": reserved, "used": used, "waiting": waiting}


def nodes_of(operator: SimulatedOperator, *, stock: bool) -> dict[str, str]:
    """By name of the pod."""
    return {
        pod.metadata.name: pod.spec.node_name
        for pod in operator.cluster.pods.values()
        if (is_stock(pod) if stock else is_guest(pod))
    }


def now(operator: SimulatedOperator, pod: Pod) -> Pod:
    return operator.cluster.pods[pod.metadata.uid]


def set_mode(operator: SimulatedOperator, at: int, mode: str) -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["nodePool"][at]["mode"] = mode

    operator.cluster.change_spec(change)


def set_available(operator: SimulatedOperator, count: int) -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["machineTypes"][0]["available"] = count

    operator.cluster.change_spec(change)


# -- from stock to guest and back ----------------------------------------------------------------


def test_the_example_of_the_specification_comes_to_rest() -> None:
    operator = SimulatedOperator(SimulatedCluster(machine(), NODES.values()))
    plan = operator.settle()
    assert plan.status["summary"] == {
        "types": "compute-medium,compute-xlarge,compute-large",
        "maximum": "4,1,2",
        "reserved": "4,1,0",
        "used": "0,0,0",
        "waiting": "0,0,0",
    }
    assert set(nodes_of(operator, stock=True).values()) == {"michiru", "eriri"}


def test_stock_shrinks_as_guests_come_and_grows_as_they_go() -> None:
    """Upstream's scenario, without the detour over a pod that is unschedulable."""
    operator = two_nodes()
    assert usage(operator) == numbers(4, 4, 0, 0) | {"free": 4}
    guest = operator.cluster.create_guest("quad")
    operator.look()
    assert usage(operator)["waiting"] == 1
    operator.settle()
    assert usage(operator) == numbers(4, 3, 1, 0) | {"free": 3}
    assert operator.cluster.stateful_sets["quad-general-machine"].spec["replicas"] == 3
    operator.cluster.delete(guest.metadata.uid)
    operator.look()
    assert usage(operator) == numbers(4, 3, 1, 0) | {"free": 3}, "it counts until it is gone"
    operator.settle()
    assert usage(operator) == numbers(4, 4, 0, 0) | {"free": 4}


def test_inconsistency_22_one_may_wait_while_another_unit_is_held() -> None:
    """The specification's row {2, 1, 1, 1}: in the middle of a hand-over, or for a node of its
    own."""
    operator = two_nodes(2)
    operator.cluster.create_guest("quad")
    operator.cluster.create_guest("quad", nodeSelector={HOSTNAME: "nowhere"})
    operator.settle()
    assert usage(operator) == numbers(2, 1, 1, 1) | {"free": 1}


def test_letter_f_half_a_unit_is_used() -> None:
    operator = two_nodes(4, HALF)
    operator.cluster.create_guest("half")
    plan = operator.settle()
    assert usage(operator) == numbers(4, 3, 0.5, 0) | {"free": 3}
    assert usage(operator, "half") == numbers(4, 1, 1, 0) | {"free": 3}
    assert plan.status["summary"]["used"] == "0.5,1"


def test_the_highest_ordinal_goes_where_the_guest_can_run() -> None:
    operator = two_nodes()
    before = nodes_of(operator, stock=True)
    operator.cluster.create_guest("quad", nodeSelector={HOSTNAME: "a"})
    operator.look()
    [sale] = operator.plan().sales
    [victim] = sale.victims
    on_a = [name for name, place in before.items() if place == "a"]
    assert victim.pod.metadata.name == max(on_a)
    assert sale.orders[0].node == "a"


def test_a_guest_goes_beside_the_stock_if_it_cannot_go_where_that_is() -> None:
    """Stock elsewhere makes way in number, though not in place."""
    spec = small(kind("quad", 4, 1), nodes={"a": "quad", "b": "quad"})
    operator = SimulatedOperator(SimulatedCluster(machine(spec), [room("a", 8), room("b", 8)]))
    operator.settle()
    [(sleeper, at)] = nodes_of(operator, stock=True).items()
    other = {"a": "b", "b": "a"}[at]
    guest = operator.cluster.create_guest("quad", nodeSelector={HOSTNAME: other})
    operator.look()
    [sale] = operator.plan().sales
    assert [each.pod.metadata.name for each in sale.victims] == [sleeper]
    operator.settle()
    assert now(operator, guest).spec.node_name == other
    assert nodes_of(operator, stock=True) == {}


def test_defect_9_of_many_who_come_at_once_as_many_are_sold_as_there_are_units() -> None:
    operator = two_nodes(1)
    guests = [operator.cluster.create_guest("quad") for _ in range(5)]
    plan = operator.settle()
    bound = [pod for pod in guests if now(operator, pod).spec.node_name]
    assert bound == guests[:1], "the oldest"
    assert {why.reason for why in plan.waiting.values()} == {"SoldOut"}
    assert usage(operator) == numbers(1, 0, 1, 4) | {"free": 0}


def test_letter_i_nothing_is_let_go_before_its_unit_is_in_the_ledger() -> None:
    operator = two_nodes()
    guest = operator.cluster.create_guest("quad")
    operator.look()
    for step in operator.carrying_out(operator.plan()):
        if step.startswith("sold"):
            assert guest.metadata.uid in operator.cluster.ledger.units
        if not now(operator, guest).spec.scheduling_gates:
            assert guest.metadata.uid in operator.cluster.ledger.units
    assert not now(operator, guest).spec.scheduling_gates


def test_letter_o_a_pod_that_never_came_holds_nothing() -> None:
    """Refused by others after admission, or a dry run: there is no pod, and no unit was taken."""
    operator = two_nodes()
    guest = operator.cluster.create_guest("quad")
    del operator.cluster.pods[guest.metadata.uid]
    assert operator.settle().releases == ()
    assert usage(operator) == numbers(4, 4, 0, 0) | {"free": 4}


def test_a_pod_that_is_only_labelled_like_a_guest_is_not_sold_a_unit() -> None:
    """Its namespace was not opted in: nothing was injected."""
    operator = two_nodes()
    pod = operator.cluster.create_guest("quad", lab="elsewhere")
    operator.cluster.write(replace(pod, spec=replace(pod.spec, scheduling_gates=(), node_name="a")))
    operator.look()
    assert operator.plan().adoptions == ()
    assert usage(operator)["used"] == 0


# -- nodes ---------------------------------------------------------------------------------------


def test_letter_h_stock_leaves_a_node_in_maintenance_and_guests_stay() -> None:
    operator = two_nodes()
    guest = operator.cluster.create_guest("quad", nodeSelector={HOSTNAME: "a"})
    operator.settle()
    set_mode(operator, 0, "maintenance")
    plan = operator.settle()
    assert set(nodes_of(operator, stock=True).values()) <= {"b", ""}
    assert now(operator, guest).spec.node_name == "a"
    assert [(each.type, each.count) for each in plan.stock.shortages] == [("quad", 1)]
    late = operator.cluster.create_guest("quad", nodeSelector={HOSTNAME: "a"})
    plan = operator.settle()
    assert plan.waiting[late.metadata.uid].reason == "NoNodeFits"
    set_mode(operator, 0, "ready")
    assert operator.settle().stock.shortages == ()
    assert now(operator, late).spec.node_name == "a"


@pytest.mark.parametrize("event", ["not ready", "gone"])
def test_letter_h_so_it_does_when_a_node_fails(event: str) -> None:
    operator = two_nodes(2)
    if event == "gone":
        del operator.cluster.nodes["a"]
    else:
        operator.cluster.set_ready("a", False)
    plan = operator.settle()
    assert set(nodes_of(operator, stock=True).values()) == {"b"}
    assert plan.stock.shortages == ()


def test_letter_h_units_of_stock_that_goes_can_be_sold_at_once() -> None:
    """The ledger is full of units that are going: they must not be in the way of guests."""
    operator = two_nodes(4)
    set_mode(operator, 0, "maintenance")
    guests = [operator.cluster.create_guest("quad") for _ in range(2)]
    operator.settle()
    assert [now(operator, each).spec.node_name for each in guests] == ["b", "b"]


def test_nothing_is_said_to_be_short_before_nodes_are_marked() -> None:
    spec = small(kind("quad", 4, 4), nodes={"a": "quad", "b": "quad"})
    operator = SimulatedOperator(SimulatedCluster(machine(spec), [room("a", 8), room("b", 8)]))
    plan = operator.plan()
    assert plan.stock.shortages == ()
    assert [each.reason for each in plan.conditions if each.type == "Ready"] == ["StockPending"]


# -- numbers -------------------------------------------------------------------------------------


def test_inconsistency_22_a_lowered_stock_evicts_nobody() -> None:
    operator = two_nodes()
    guests = [operator.cluster.create_guest("quad") for _ in range(3)]
    operator.settle()
    set_available(operator, 1)
    plan = operator.settle()
    assert all(now(operator, each).spec.node_name for each in guests)
    assert usage(operator) == numbers(1, 0, 3, 0) | {"free": 0}
    assert plan.stock.shortages == ()
    late = operator.cluster.create_guest("quad")
    assert operator.settle().waiting[late.metadata.uid].reason == "SoldOut"


def test_none_available_is_legal() -> None:
    operator = two_nodes(0)
    assert usage(operator) == numbers(0, 0, 0, 0) | {"free": 0}
    assert operator.cluster.stateful_sets["quad-general-machine"].spec["replicas"] == 0


# -- objects -------------------------------------------------------------------------------------


def test_letter_e_objects_are_named_by_type_and_group() -> None:
    plan = SimulatedOperator(SimulatedCluster(machine(), NODES.values())).plan()
    names = {(put.kind, put.name) for put in plan.puts}
    for each in ("compute-medium", "compute-xlarge", "compute-large"):
        for made in (StatefulSet, Service, MachineShape):
            assert (made, f"{each}-general-machine") in names
    assert (MachineNodePool, "general-machine-node-pool") in names


def test_defect_7_what_belongs_to_a_type_that_is_gone_goes() -> None:
    other = kind("other", 2, 2)
    spec = small(kind("quad", 4, 2), other, nodes={"a": "quad", "b": "other"})
    operator = SimulatedOperator(SimulatedCluster(machine(spec), [room("a", 8), room("b", 8)]))
    operator.settle()

    def change(found: dict[str, Any]) -> None:
        del found["machineTypes"][1]
        found["nodePool"][1]["machineType"] = [{"name": "quad"}]

    operator.cluster.change_spec(change)
    operator.look()
    drops = {(each.kind, each.name) for each in operator.plan().drops}
    assert drops == {
        (made, "other-general-machine") for made in (StatefulSet, Service, MachineShape)
    }
    plan = operator.settle()
    assert list(operator.cluster.stateful_sets) == ["quad-general-machine"]
    assert not [pod for pod in operator.cluster.pods.values() if type_of(pod) == "other"]
    assert [each["name"] for each in plan.status["availableMachines"]] == ["quad"]
    assert plan.status["summary"]["types"] == "quad"


def test_sleepers_of_an_old_template_are_replaced() -> None:
    operator = two_nodes(2)
    before = set(operator.cluster.pods)

    def change(found: dict[str, Any]) -> None:
        found["machineTypes"][0]["spec"]["cpu"] = "3"

    operator.cluster.change_spec(change)
    operator.settle()
    sleepers = {uid: pod for uid, pod in operator.cluster.pods.items() if is_stock(pod)}
    assert len(sleepers) == 2
    assert not before & sleepers.keys()
    assert all(map(is_live_sleeper, sleepers.values()))


def test_thirty_idle_seconds_and_no_write() -> None:
    operator = two_nodes(4, HALF)
    for name in ("quad", "half", "half"):
        operator.cluster.create_guest(name)
    operator.cluster.create_guest("quad", nodeSelector={HOSTNAME: "nowhere"})
    operator.settle()
    status = operator.plan().status
    assert list(operator.carrying_out(operator.plan())) == []
    assert operator.plan().status == status


def test_a_plan_leaves_the_table_as_it_was() -> None:
    """It is the operator's own: others plan with it."""
    operator = two_nodes()
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "shy"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    for _ in range(3):
        operator.cluster.create_guest(
            "quad", labels={"app": "shy"}, affinity={"podAntiAffinity": required}
        )
    operator.look()
    snapshot = operator.snapshot()
    before = [(name, snapshot.table.free(name, "cpu")) for name in ("a", "b")]
    plan = operator.plan()
    assert len(plan.sales) == 2
    assert len(plan_machine(snapshot).sales) == 2
    assert [(name, snapshot.table.free(name, "cpu")) for name in ("a", "b")] == before
    assert all(snapshot.table.node_of(uid) is None for uid in plan.waiting)


def test_inconsistency_1_the_api_group_is_the_same_everywhere() -> None:
    for made in (Machine, MachineNodePool):
        assert made.API.api_version == "imperator.tenzen-y.io/v1alpha1"
    assert NODE_POOL.startswith("imperator.tenzen-y.io/")


def test_what_another_machine_of_the_group_left_is_taken_over() -> None:
    """As after `kubectl delete --cascade=orphan`: else it would outlive this one, too."""
    operator = two_nodes(2)
    operator.settle()
    assert operator.plan().puts == ()
    cluster = operator.cluster
    meta = replace(cluster.machine.metadata, uid="another")
    cluster.machine = replace(cluster.machine, metadata=meta)
    names = {put.name for put in operator.plan().puts}
    assert names == {"quad-general-machine", "general-machine-node-pool"}
    operator.settle()
    assert operator.plan().puts == ()


def test_gpus_that_others_have_taken_in_the_ledger_are_what_is_lacking() -> None:
    """Kubernetes knows nothing of them: the node that has room for all else comes nearest."""
    gpu = {"type": "nvidia.com/gpu", "num": 1, "family": "ampere"}
    spec = small(kind("quad", 4, 4, spec={"gpu": gpu}), nodes={"a": "quad", "b": "quad"})
    family = {"nvidia.com/gpu.family": "ampere"}
    nodes = [node(name, cpu=8, gpus=2, labels=family) for name in ("a", "b")]
    operator = SimulatedOperator(SimulatedCluster(machine(spec), nodes))
    operator.cluster.gpus_of_others["b"] = 1
    lacking = "Insufficient nvidia.com/gpu: wants 1, free 0 of 2, 1 short"
    (short,) = operator.settle().stock.shortages
    assert (short.node, short.words) == ("b", lacking)
    for _ in range(4):
        operator.cluster.create_guest("quad")
    (why,) = operator.settle().waiting.values()
    assert f"b: {lacking}" in why.message
