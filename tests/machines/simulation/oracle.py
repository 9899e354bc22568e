"""What has to hold in a simulated cluster: at any moment, of any plan, and at rest.

All of it is worked out anew from pods, nodes and the specification, slowly and without the
planner's own books: nothing that the planner got wrong is believed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil

from dovetail.machines.documents import MachineSpec
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
    line_order,
    type_of,
)
from dovetail.machines.selling.waiting import WaitReason
from dovetail.machines.shapes import UnitShape, served_types, shapes_of, types_unserved
from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_request import PodRequest, pod_request_of
from dovetail.podfit.table import NodeTable
from tests.machines.simulation.cluster import SETTINGS, SimulatedCluster, is_stock
from tests.machines.simulation.operator import SimulatedOperator

Place = tuple[str, str]
"""Type and node."""


class Sold:
    """Units that are sold, and what could be sold besides, by the numbers alone."""

    def __init__(self, spec: MachineSpec, units: Iterable[Place]) -> None:
        self.spec = spec
        self.shapes = shapes_of(spec)
        self.available = {each.name: each.available for each in spec.machine_types}
        self.units = list(units)
        self.unserved = types_unserved(spec)

    def top_of(self, name: str) -> str:
        """The highest type of its line that a node serves: whole units are held as that."""
        served = [each for each in self.shapes[name].line if each not in self.unserved]
        return served[-1] if served else ""

    def used(self, name: str) -> Fraction:
        """Units of the type, those of its dependents as shares of it."""
        return sum(
            (
                self.shapes[kind].share / self.shapes[name].share
                for kind, _ in self.units
                if kind in self.shapes and name in self.shapes[kind].line
            ),
            Fraction(0),
        )

    def opened(self, top: str) -> dict[str, Fraction]:
        """By node: what of units of the top is sold in parts."""
        found: dict[str, Fraction] = {}
        for kind, node in self.units:
            if kind in self.shapes and kind != top and top in self.shapes[kind].line:
                share = self.shapes[kind].share / self.shapes[top].share
                found[node] = found.get(node, Fraction(0)) + share
        return found

    def whole(self, top: str) -> int:
        """Units that are neither sold nor opened, of a type as which they are held."""
        sold = sum(kind == top for kind, _ in self.units)
        return self.available[top] - sold - sum(map(ceil, self.opened(top).values()))

    def could_be_sold(self, name: str, node: str) -> bool:
        """Its line has enough left of everything, and a whole unit if it has to be opened."""
        if not self.has_line_left(self.shapes[name]):
            return False
        top = self.top_of(name)
        after = Sold(self.spec, [*self.units, (name, node)])
        return not top or after.whole(top) >= 0 or after.whole(top) == self.whole(top)

    def stock(self) -> Counter[Place]:
        """What has to be held: by type and node, whole units on any node (`*`)."""
        found: Counter[Place] = Counter()
        taken = Sold(self.spec, self.units)
        for top in self.shapes:
            if self.top_of(top) != top:
                continue
            dependents = sorted(
                (each for each in self.shapes.values() if top in each.line and each.name != top),
                key=lambda each: (-each.share, each.name),
            )
            for node, sum_of in sorted(self.opened(top).items()):
                rest = ceil(sum_of) - sum_of
                for child in dependents:
                    share = child.share / self.shapes[top].share
                    while share <= rest and taken.has_line_left(child):
                        taken.units.append((child.name, node))
                        found[child.name, node] += 1
                        rest -= share
            for _ in range(max(self.whole(top), 0)):
                if taken.has_line_left(self.shapes[top]):
                    taken.units.append((top, "*"))
                    found[top, "*"] += 1
        return found

    def has_line_left(self, shape: UnitShape) -> bool:
        """Whether one more would be within what is available, all along its line."""
        return all(
            self.used(name) + shape.share / self.shapes[name].share <= self.available[name]
            for name in shape.line
        )


def sold_in(cluster: SimulatedCluster, pods: Iterable[Pod]) -> Sold:
    """Guests that are on a node, or have a unit."""
    units = []
    for pod in pods:
        unit = cluster.ledger.units.get(pod.metadata.uid)
        node = pod.spec.node_name or (unit.node if unit is not None else "")
        if is_guest(pod) and not is_over(pod) and node:
            units.append((type_of(pod), node))
    return Sold(cluster.machine.spec, units)


# -- always --------------------------------------------------------------------------------------


def check_numbers(cluster: SimulatedCluster, excused: set[str]) -> None:
    """Reserved and used never exceed maximum, but for types whose stock was lowered.

    An excuse ends when no more is held than there is.
    """
    pods = cluster.pods.values()
    used = sold_in(cluster, filter(is_bound, pods))
    reserved = Counter(type_of(pod) for pod in pods if is_stock(pod) and is_live_sleeper(pod))
    held = sold_in(cluster, pods)
    stock = Counter(unit.type for unit in cluster.ledger.units.values() if unit.is_stock)
    for each in cluster.machine.spec.machine_types:
        total = reserved[each.name] + used.used(each.name)
        if total > each.available:
            assert each.name in excused, f"{total} of {each.available} {each.name}"
        elif (reserved | stock)[each.name] + held.used(each.name) <= each.available:
            excused.discard(each.name)


def check_order(plan: MachinePlan, guests: Mapping[str, Pod]) -> None:
    """Nobody is served before an older one who asks for the same."""
    served = [order.pod for sale in plan.sales for order in sale.orders]
    for uid in plan.waiting:
        waits = guests[uid]
        for pod in served:
            if asks_alike(pod, waits):
                assert line_order(pod) < line_order(waits), f"{pod.key} before {waits.key}"


def asks_alike(one: Pod, other: Pod) -> bool:
    if UNIT_GROUP in one.metadata.labels or UNIT_GROUP in other.metadata.labels:
        return False
    same = (one.metadata.namespace, one.spec.priority, pod_request_of(one))
    return same == (other.metadata.namespace, other.spec.priority, pod_request_of(other))


def check_room(operator: SimulatedOperator, plan: MachinePlan) -> None:
    """Nothing is put where it would not fit beside what the caches have there."""
    snapshot = operator.snapshot()
    table = snapshot.table
    for uid in plan.releases:
        if not is_bound(operator.pods.get(uid, Pod())):
            table.remove_pod(uid)
    for pod, _ in plan.removals:
        table.remove_pod(pod.metadata.uid)
    for sale in plan.sales:
        for victim in sale.victims:
            table.remove_pod(victim.uid)
    places = [(each.pod, each.node) for sale in plan.sales for each in sale.orders]
    for pod, node in (*places, *((each.pod, each.node) for each in plan.stock.places)):
        uid = pod.metadata.uid
        assert uid not in operator.cluster.ledger.units or uid in plan.releases
        row = table.nodes.rows.find(node)
        assert row is not None
        why = table.why(row, pod_request_of(pod))
        assert not why, f"{pod.key} on {node}: {why}"
        table.add_pod(pod, node)
    names = [pod.metadata.uid for pod, _ in places]
    assert len(set(names)) == len(names)


# -- at rest -------------------------------------------------------------------------------------


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
        else:
            assert reason is WaitReason.GROUP_INCOMPLETE, f"{pod.key}: {reason}"

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
