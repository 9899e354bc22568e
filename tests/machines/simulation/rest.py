"""What has to hold in a simulated cluster once nothing is left to do: all ways are tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from dovetail.machines.documents import MachineType
from dovetail.machines.marks import state_of
from dovetail.machines.names import GPU_TYPE, READY, UNIT_GROUP
from dovetail.machines.objects import sleeper_request
from dovetail.machines.plan import MachinePlan
from dovetail.machines.pods import (
    is_bound,
    is_gated_guest,
    is_guest,
    is_live_sleeper,
    is_over,
    type_of,
)
from dovetail.machines.selling.waiting import WaitReason
from dovetail.machines.shapes import served_types, shapes_of
from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_request import PodRequest, pod_request_of
from dovetail.podfit.table import NodeTable
from tests.machines.simulation.cluster import SETTINGS, is_stock
from tests.machines.simulation.operator import SimulatedOperator
from tests.machines.simulation.oracle import Place, Sold, sold_in


class Rest:
    """A cluster in which nothing is left to do, and the plan that says so."""

    def __init__(self, operator: SimulatedOperator, plan: MachinePlan) -> None:
        self.cluster, self.plan = operator.cluster, plan
        self.spec = self.cluster.machine.spec
        self.shapes = shapes_of(self.spec)
        self.snapshot = operator.snapshot()
        self.guests = {uid: pod for uid, pod in self.cluster.pods.items() if is_guest(pod)}
        self.sleepers = {uid: pod for uid, pod in self.cluster.pods.items() if is_stock(pod)}
        self.sold = sold_in(self.cluster, self.guests.values())
        self.serving = {name: list(self._serving(name)) for name in self.shapes}

    def _serving(self, name: str) -> Iterator[str]:
        for entry in self.spec.node_pool:
            node = self.cluster.nodes.get(entry.name)
            if name in served_types(self.spec, entry.types) and state_of(node, entry) == READY:
                yield entry.name

    def check(self) -> None:
        self._check_units()
        self._check_sleepers()
        if self.plan.adoptions:
            # Somebody is where another was sold a unit: there is less to give than it seems.
            return
        self._check_stock()
        for uid, pod in self.guests.items():
            if is_gated_guest(pod) and not is_over(pod):
                self._check_waiting(uid, pod)

    def _check_units(self) -> None:
        """Who is on a node has its unit there, and nobody else has one, but who waits for it."""
        for uid, unit in self.cluster.ledger.units.items():
            pod = self.cluster.pods[uid]
            assert not is_over(pod)
            assert pod.spec.node_name in (unit.node, "") or pod in self.plan.adoptions
            assert not pod.spec.scheduling_gates
        for uid, pod in {**self.guests, **self.sleepers}.items():
            if is_bound(pod) and not is_over(pod) and pod.spec.node_name in self.cluster.nodes:
                is_known = uid in self.cluster.ledger.units or pod in self.plan.adoptions
                assert is_known, f"{pod.key} has no unit"

    def _check_sleepers(self) -> None:
        for uid, pod in self.sleepers.items():
            unit = self.cluster.ledger.units.get(uid)
            if unit is not None:
                assert unit.node in self.serving[unit.type], f"{pod.key} on {unit.node}"
                assert is_bound(pod), f"{pod.key} is not bound"

    def _check_stock(self) -> None:
        """All that is not sold is held, if that is possible; and what is said of it is so."""
        wanted = self.sold.stock()
        held: Counter[str] = Counter(
            type_of(pod) for pod in self.sleepers.values() if is_live_sleeper(pod)
        )
        lacking = any(
            held[name] < sum(count for (kind, _), count in wanted.items() if kind == name)
            for name in self.shapes
        )
        assert lacking == bool(self.plan.stock.shortages), f"{held} of {wanted}"
        assert all(
            held[name] <= sum(count for (kind, _), count in wanted.items() if kind == name)
            for name in self.shapes
        )
        if lacking:
            assert not self._can_hold(wanted), f"only {held} of {wanted}"

    def _can_hold(self, wanted: Counter[Place]) -> bool:
        table = self._table_without(self.sleepers)
        todo = [
            (sleeper_request(self.shapes[name], self.cluster.group, SETTINGS), nodes)
            for (name, node), count in sorted(wanted.items(), key=lambda each: each[0][1] == "*")
            for nodes in [self.serving[name] if node == "*" else [node]]
            for _ in range(count)
        ]
        return Packing(table, self.cluster.gpus_of_others).is_possible(todo)

    def _table_without(self, gone: Iterable[str]) -> NodeTable:
        kept = {uid: pod for uid, pod in self.cluster.pods.items() if uid not in set(gone)}
        places = {uid: unit.node for uid, unit in self.cluster.ledger.units.items()}
        return self.cluster.table(kept, self.cluster.nodes, places)

    def _check_waiting(self, uid: str, pod: Pod) -> None:
        reason, name = self.plan.waiting[uid].reason, type_of(pod)
        nodes = {"*", *self.cluster.nodes, *(node for _, node in self.sold.units)}
        anywhere = any(self.sold.could_be_sold(name, node) for node in nodes)
        if reason is WaitReason.SOLD_OUT:
            assert not anywhere, f"{pod.key}: {name} is not sold out"
        elif reason is WaitReason.NO_NODE_FITS:
            assert anywhere, f"{pod.key}: {name} is sold out"
            assert not self._places([pod]), f"{pod.key} has a place: {self.plan.waiting[uid]}"
        elif reason is WaitReason.GROUP_DOES_NOT_FIT:
            group = pod.metadata.labels[UNIT_GROUP]
            members = [
                each
                for each in self.guests.values()
                if each.metadata.labels.get(UNIT_GROUP) == group and is_gated_guest(each)
            ]
            assert not self._places(members), f"{group} has places"
        elif reason is WaitReason.NAMESPACE_CAP_REACHED:
            cap = self._type(name).caps.per_namespace
            assert cap is not None
            assert self._held_by(name, {pod.metadata.namespace}) >= cap
        elif reason is WaitReason.HELD_FOR_WINDOW:
            assert anywhere, f"{pod.key}: {name} is sold out"
            assert self._free(name) <= self._held_for_others(name, pod.metadata.namespace)
        else:
            assert reason is WaitReason.GROUP_INCOMPLETE, f"{pod.key}: {reason}"

    def _type(self, name: str) -> MachineType:
        return next(each for each in self.spec.machine_types if each.name == name)

    def _free(self, name: str) -> int:
        """Of a type that has neither parent nor children."""
        return self._type(name).available - sum(kind == name for kind, _ in self.sold.units)

    def _held_by(self, name: str, labs: Collection[str]) -> int:
        return sum(
            type_of(pod) == name and pod.metadata.namespace in labs and bool(node)
            for uid, pod in self.guests.items()
            if not is_over(pod)
            for unit in [self.cluster.ledger.units.get(uid)]
            for node in [pod.spec.node_name or (unit.node if unit is not None else "")]
        )

    def _held_for_others(self, name: str, lab: str) -> int:
        """Units that windows of others hold now: each has one that comes every four hours."""
        held = 0
        for window in self._type(name).windows:
            buyers = window.buyers.namespaces if window.buyers is not None else ()
            at = (self.cluster.now.hour - 10) * 60 + self.cluster.now.minute
            is_open = (at + 30) % 240 < 90 and (at + 30) // 240 in range(4)
            if lab not in buyers and is_open:
                held += max(window.units - self._held_by(name, buyers), 0)
        return held

    def _places(self, pods: Sequence[Pod]) -> bool:
        """Whether all of them could be served, if the sleepers of their family were gone.

        Of several families, none has to go: which would, depends on who is where.
        """
        roots = {self.shapes[type_of(pod)].root for pod in pods}
        family = [
            uid
            for uid, pod in self.sleepers.items()
            if len(roots) == 1 and self.shapes[type_of(pod)].root in roots
        ]
        return self._can_serve(pods, self._table_without(family), self.sold)

    def _can_serve(self, pods: Sequence[Pod], table: NodeTable, sold: Sold) -> bool:
        if not pods:
            return True
        pod, name = pods[0], type_of(pods[0])
        for node in self.serving[name]:
            if sold.could_be_sold(name, node) and fits(
                table, pod_request_of(pod), node, self.cluster.gpus_of_others
            ):
                table.add_pod(pod, node)
                more = Sold(self.spec, [*sold.units, (name, node)])
                if self._can_serve(pods[1:], table, more):
                    return True
                table.remove_pod(pod.metadata.uid)
        return False


def fits(
    table: NodeTable, request: PodRequest, node: str, gpus_of_others: Mapping[str, int]
) -> bool:
    if dict(request.amounts).get(GPU_TYPE, 0) > table.free(node, GPU_TYPE) - gpus_of_others.get(
        node, 0
    ):
        return False
    row = table.nodes.rows.find(node)
    return row is not None and not table.why(row, request)


class Packing:
    """Whether sleepers fit at once, each on one of its nodes; every way is tried."""

    def __init__(self, table: NodeTable, gpus_of_others: Mapping[str, int]) -> None:
        self._table = table
        self._taken: Counter[Place] = Counter()
        """By resource and node."""
        for node, count in gpus_of_others.items():
            self._taken[GPU_TYPE, node] = count

    def is_possible(self, todo: Sequence[tuple[PodRequest, Sequence[str]]]) -> bool:
        if not todo:
            return True
        request, nodes = todo[0]
        eligible = set(self._table.eligible(request))
        for at, node in enumerate(nodes):
            if node not in eligible or not self._fits(request, node):
                continue
            # Those of a kind are alike: the next one need not try what this one passed over.
            rest = list(todo[1:])
            for n, (each, others) in enumerate(rest):
                if each is not request or others != nodes:
                    break
                rest[n] = (each, others[at:])
            self._take(request, node, 1)
            if self.is_possible(rest):
                return True
            self._take(request, node, -1)
        return False

    def _fits(self, request: PodRequest, node: str) -> bool:
        return all(
            self._table.free(node, name) - self._taken[name, node] >= amount
            for name, amount in request.amounts
        )

    def _take(self, request: PodRequest, node: str, sign: int) -> None:
        for name, amount in request.amounts:
            self._taken[name, node] += sign * amount
