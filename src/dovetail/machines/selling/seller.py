"""Selling: which of those who wait get a unit now, on which node, and which sleepers make room.

The planner calls `Seller.sell` once a plan. Guests are served by priority, then age; one that
cannot be served does not hold up those behind it. For each the first of these nodes is taken:
where a sleeper of its type can be removed for it (the highest ordinal first, which its StatefulSet
would delete anyway), where its family has an opened unit with enough left, where there is room.
Every guest is looked at once, so selling ends; a sale is undone only within its own unit group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from dovetail.machines.pods import line_order, other_gates, type_of, unit_group_of, unit_group_size
from dovetail.machines.selling.buying import Buying
from dovetail.machines.selling.waiting import Waiting, WaitReason
from dovetail.machines.shapes import UnitShape
from dovetail.machines.stock.families import FamilyBook
from dovetail.machines.stock.room import Room
from dovetail.machines.stock.sleepers import Sleeper, SleeperBook
from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_request import PodRequest, pod_request_of, unsupported_reason
from dovetail.podfit.pod_sum import CLASS_PREFIX


class UnitOrder(msgspec.Struct, frozen=True):
    """A guest that gets a unit there."""

    pod: Pod
    type: str
    node: str


class Sale(msgspec.Struct, frozen=True):
    """Units that change hands in one transaction, and the sleepers that go for them."""

    orders: tuple[UnitOrder, ...]
    victims: tuple[Sleeper, ...]


class Seller:
    def __init__(
        self,
        *,
        shapes: Mapping[str, UnitShape],
        books: Mapping[str, FamilyBook],
        serving: Mapping[str, Sequence[str]],
        room: Room,
        sleepers: SleeperBook,
        buying: Buying,
    ) -> None:
        """`books` and `serving` by type; serving nodes are those that may get units now."""
        self._shapes = shapes
        self._books = books
        self._serving = serving
        self._room = room
        self._sleepers = sleepers
        self._buying = buying

    def sell(
        self, waiting: Iterable[Pod], sold_by_group: Counter[str]
    ) -> tuple[list[Sale], dict[str, Waiting]]:
        """Sales, and why the others wait, by uid."""
        line = sorted(waiting, key=line_order)
        with self._room.supposing(line):
            return self._serve(line, sold_by_group)

    def _serve(
        self, line: Sequence[Pod], sold_by_group: Counter[str]
    ) -> tuple[list[Sale], dict[str, Waiting]]:
        groups: dict[str, list[Pod]] = {}
        for pod in line:
            if name := unit_group_of(pod):
                groups.setdefault(name, []).append(pod)
        sales: list[Sale] = []
        reasons: dict[str, Waiting] = {}
        served: set[str] = set()
        for pod in line:
            if pod.metadata.uid in served or pod.metadata.uid in reasons:
                continue
            members = [pod]
            name = unit_group_of(pod)
            group = groups.pop(name, [])
            if group:
                if lacking := group_lacking(group, sold_by_group[name]):
                    reasons |= {each.metadata.uid: lacking for each in group}
                    continue
                members = group[: group_missing(pod, sold_by_group[name])]
            outcome = self._sell_together(members)
            if isinstance(outcome, Sale):
                sales.append(outcome)
                served.update(each.metadata.uid for each in members)
            else:
                # Who is in the group besides these is not served before they are.
                behind = group[len(members) :] if len(members) > 1 else ()
                why = outcome[pod.metadata.uid]
                reasons |= outcome | {each.metadata.uid: why for each in behind}
        return sales, reasons

    def _sell_together(self, members: Sequence[Pod]) -> Sale | dict[str, Waiting]:
        """All of them, or none and why: what speaks against each alone, else against all."""
        orders: list[UnitOrder] = []
        victims: list[Sleeper] = []
        for pod in self._hardest_first(members):
            outcome = self._sell_one(pod, victims)
            if isinstance(outcome, UnitOrder):
                orders.append(outcome)
                continue
            self._undo(orders, victims)
            if len(members) == 1:
                return {pod.metadata.uid: outcome}
            why = Waiting(
                WaitReason.GROUP_DOES_NOT_FIT,
                f"unit group {unit_group_of(pod).partition('/')[2]!r} gets all units or none:"
                f" {pod.metadata.name}: {outcome.message}",
            )
            return {each.metadata.uid: self._unfit(each) or why for each in members}
        return Sale(tuple(orders), tuple(victims))

    def _hardest_first(self, members: Sequence[Pod]) -> Sequence[Pod]:
        """Those that the fewest nodes would take come first: the others find their places after."""
        if len(members) == 1:
            return members
        return sorted(members, key=lambda pod: len(self._room.eligible(pod_request_of(pod))))

    def _unfit(self, pod: Pod) -> Waiting | None:
        """Why the guest gets no unit even if it is the only one who wants any."""
        refusal = self._refusal(pod)
        if refusal is not None:
            return refusal
        name, request = type_of(pod), pod_request_of(pod)
        is_placed = next(self.places(name, request), None) is not None
        return None if is_placed else self._no_place(name, request)

    def _sell_one(self, pod: Pod, victims: list[Sleeper]) -> UnitOrder | Waiting:
        """Take a unit for the pod; sleepers that go for it are added to `victims`."""
        refusal = self._refusal(pod)
        if refusal is not None:
            return refusal
        name, request = type_of(pod), pod_request_of(pod)
        for node, going in self.places(name, request):
            for sleeper in going:
                self._sleepers.remove(sleeper)
            victims.extend(going)
            self._room.put(pod, node)
            self._books[name].add(name, node)
            self._buying.bought(pod, name)
            victims.extend(self.remove_excess(self._books[name], node))
            return UnitOrder(pod, name, node)
        return self._no_place(name, request)

    def _undo(self, orders: Sequence[UnitOrder], victims: Sequence[Sleeper]) -> None:
        for order in orders:
            self._room.lift(order.pod, order.node)
            self._books[order.type].remove(order.type, order.node)
            self._buying.returned(order.pod, order.type)
        for sleeper in victims:
            self._sleepers.put_back(sleeper)

    def _refusal(self, pod: Pod) -> Waiting | None:
        """What speaks against this guest, wherever it would go."""
        name = type_of(pod)
        shape = self._shapes.get(name)
        if shape is None:
            return unknown_type(name, self._shapes)
        return (
            held_by_other_gates(pod)
            or asks_for_classes(pod)
            or shape_differs(shape, pod_request_of(pod))
            or self._buying.refusal(pod, name, self._books[name])
        )

    def places(self, name: str, request: PodRequest) -> Iterator[tuple[str, list[Sleeper]]]:
        """Nodes for one unit, with the sleepers that have to go there; the best first."""
        eligible = self._room.eligible(request)
        book = self._books[name]
        ordered = dict.fromkeys(each.node for each in self._sleepers.of_type(name))
        for node in self._serving.get(name, ()):
            ordered.setdefault(node)
        nodes = [node for node in ordered if node in eligible and book.has_stock_on(name, node)]
        if book.family.children:
            nodes.sort(key=lambda node: book.opens_unit(name, node))
        for node in nodes:
            going = self._making_room(book, name, node, request)
            if going is not None:
                yield node, going

    def _making_room(
        self, book: FamilyBook, name: str, node: str, request: PodRequest
    ) -> list[Sleeper] | None:
        """The fewest sleepers of the family, its own type's first, without whom the pod fits."""
        going: list[Sleeper] = []
        others = [each.name for each in (book.family.root, *book.family.children)]
        candidates = [
            sleeper
            for each in (name, *(one for one in others if one != name))
            for sleeper in self._sleepers.on_node(each, node)
        ]
        try:
            # A sleeper of its own type goes first: the unit that is sold is the one it held.
            if candidates and candidates[0].type == name:
                going.append(candidates.pop(0))
                self._room.take(node, going[0].request.amounts, -1)
            while not self._room.fits(node, request.amounts):
                if not candidates:
                    return None
                going.append(candidates.pop(0))
                self._room.take(node, going[-1].request.amounts, -1)
            return going
        finally:
            for sleeper in going:
                self._room.take(node, sleeper.request.amounts)

    def remove_excess(self, book: FamilyBook, first_on: str = "") -> list[Sleeper]:
        """Sleepers that hold more than is left to hold, removed; on a certain node first."""
        root = book.family.root.name
        going: list[Sleeper] = []
        excess = self._sleepers.count(root) - max(book.whole, 0)
        if excess > 0:
            there = sorted(self._sleepers.of_type(root), key=lambda each: each.node != first_on)
            going += there[:excess]
        if book.family.children:
            parts = book.parts()
            for child in book.family.children:
                for node in self._sleepers.nodes_of(child.name):
                    there = self._sleepers.on_node(child.name, node)
                    going += there[: max(len(there) - parts[child.name, node], 0)]
        for sleeper in going:
            self._sleepers.remove(sleeper)
        return going

    def _no_place(self, name: str, request: PodRequest) -> Waiting:
        """A unit is left, but no node of the pool takes this pod."""
        serving = self._serving.get(name, ())
        if not serving:
            return Waiting(
                WaitReason.NO_NODE_FITS, f"no node that serves {name} is ready at present"
            )
        words = [
            f"{node}: {why or 'has no room beside what is sold'}"
            for node in serving[:3]
            for why in [self._room.why_not(request, node)]
        ]
        more = f" and {len(serving) - 3} more" if len(serving) > 3 else ""
        return Waiting(
            WaitReason.NO_NODE_FITS,
            f"no node that serves {name} takes it: {'; '.join(words)}{more}",
        )


def is_pinned(pod: Pod) -> bool:
    """Whether the node can be chosen for the pod: volumes and claims may tie it to others, which
    only the scheduler knows."""
    return unsupported_reason(pod) is None


def unknown_type(name: str, types: Iterable[str]) -> Waiting:
    known = ", ".join(types) or "none"
    return Waiting(
        WaitReason.UNKNOWN_TYPE, f"there is no type {name!r} in its group: it has {known}"
    )


def held_by_other_gates(pod: Pod) -> Waiting | None:
    gates = other_gates(pod)
    if not gates:
        return None
    return Waiting(WaitReason.OTHER_GATES, f"is held by the scheduling gate {gates[0]}, too")


def asks_for_classes(pod: Pod) -> Waiting | None:
    """A pod has one claim in the ledger: its unit, or what it asks for by class."""
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        for name in container.resources.requests:
            if name.startswith(CLASS_PREFIX):
                return Waiting(
                    WaitReason.SHAPE_DIFFERS,
                    f"container {container.name!r} requests {name}: a unit of a machine has what"
                    " its shape says, and no devices by class",
                )
    return None


def shape_differs(shape: UnitShape, request: PodRequest) -> Waiting | None:
    """Whether the pod's requests are not those of a unit."""
    has = dict(request.amounts)
    for name, amount in shape.amounts.items():
        if has.get(name, 0) != amount:
            return Waiting(
                WaitReason.SHAPE_DIFFERS,
                f"requests {has.get(name, 0)} of {name} where a unit of {shape.name} has {amount}:"
                " it was created by another specification of the type",
            )
    return None


def group_missing(pod: Pod, sold: int) -> int:
    """How many units its group is sold at once. Pods beyond that, and those that come in the place
    of others when all were there, get theirs one by one."""
    return max((unit_group_size(pod) or 0) - sold, 1)


def group_lacking(members: Sequence[Pod], sold: int) -> Waiting | None:
    """Why a unit group cannot be sold yet: not all of its pods are there."""
    size = unit_group_size(members[0])
    name = unit_group_of(members[0]).partition("/")[2]
    if size is None or any(unit_group_size(each) != size for each in members):
        return Waiting(
            WaitReason.GROUP_INCOMPLETE,
            f"unit group {name!r}: its pods have to say how many they are, all the same number, in"
            " the annotation imperator.tenzen-y.io/unit-group-size",
        )
    if len(members) + sold < size:
        return Waiting(
            WaitReason.GROUP_INCOMPLETE,
            f"unit group {name!r} waits for {size - len(members) - sold} more of its {size} pods",
        )
    return None
