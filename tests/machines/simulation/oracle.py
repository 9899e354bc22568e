"""What has to hold in a simulated cluster at any moment, and of any plan.

All of it is worked out anew from pods, nodes and the specification, slowly and without the
planner's own books: nothing that the planner got wrong is believed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import ceil

from dovetail.machines.documents import MachineSpec
from dovetail.machines.names import UNIT_GROUP
from dovetail.machines.plan import MachinePlan
from dovetail.machines.pods import (
    is_bound,
    is_guest,
    is_live_sleeper,
    is_over,
    type_of,
)
from dovetail.machines.shapes import UnitShape, shapes_of, types_unserved
from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_request import pod_request_of
from tests.machines.simulation.cluster import SimulatedCluster, is_stock
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
    """Nobody is served before one of higher priority, or an older one, who asks for the same."""
    served = [order.pod for sale in plan.sales for order in sale.orders]
    for uid in plan.waiting:
        waits = guests[uid]
        for pod in served:
            if asks_alike(pod, waits):
                assert turn(pod) < turn(waits), f"{pod.key} before {waits.key}"


def turn(pod: Pod) -> tuple[int, str]:
    return -pod.spec.priority, pod.metadata.creation_timestamp or ""


def asks_alike(one: Pod, other: Pod) -> bool:
    """Of pods that are in no unit group."""
    if UNIT_GROUP in one.metadata.labels or UNIT_GROUP in other.metadata.labels:
        return False
    return pod_request_of(one) == pod_request_of(other)


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
