"""Selling: which of those who wait get a unit now, on which node, and which sleepers make room.

The planner calls `Seller.sell` once a plan. Guests are served by priority, then age; one that
cannot be served does not hold up those behind it. For each the first of these nodes is taken:
where its family has an opened unit with enough left, where a sleeper holds the unit that it gets
(the highest ordinal first, which its StatefulSet would delete anyway), where there is room. Every
guest is looked at once, so selling ends; the pods of a unit group try several ways to find places
for all of them, so many at the most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from math import inf

import msgspec

from dovetail.machines.pods import line_order, other_gates, type_of, unit_group_of, unit_group_size
from dovetail.machines.selling.buying import Buying
from dovetail.machines.selling.waiting import Waiting, WaitReason
from dovetail.machines.shapes import UnitShape
from dovetail.machines.stock.families import ANYWHERE, FamilyBook
from dovetail.machines.stock.room import Room
from dovetail.machines.stock.sleepers import Sleeper, SleeperBook
from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_request import PodRequest, pod_request_of, unsupported_reason
from dovetail.podfit.pod_sum import CLASS_PREFIX

MOST_TRIES = 100
"""To find places for a unit group, beyond one for each of its pods."""


class UnitOrder(msgspec.Struct, frozen=True):
    """A guest that gets a unit there."""

    pod: Pod
    type: str
    node: str


class Sale(msgspec.Struct, frozen=True):
    """Units that change hands in one transaction, and the sleepers that go for them."""

    orders: tuple[UnitOrder, ...]
    victims: tuple[Sleeper, ...]


class SoldUnit(msgspec.Struct, frozen=True):
    """One order, and the sleepers that go for it."""

    order: UnitOrder
    victims: list[Sleeper]


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
        lacking: Mapping[str, Waiting],
    ) -> None:
        """`books` and `serving` by type; serving nodes are those that may get units now. `lacking`
        by uid: what keeps a guest from every node."""
        self._shapes = shapes
        self._books = books
        self._serving = serving
        self._serving_sets = {name: frozenset(nodes) for name, nodes in serving.items()}
        self._room = room
        self._sleepers = sleepers
        self._buying = buying
        self._lacking = lacking

    def sell(
        self, waiting: Iterable[Pod], sold_by_group: Counter[str], enough: float = inf
    ) -> tuple[list[Sale], dict[str, Waiting]]:
        """Sales, and why the others wait, by uid; when so many units are sold, it is the turn of
        those behind them another time."""
        line = sorted(waiting, key=line_order)
        with self._room.supposing(line):
            return self._serve(line, sold_by_group, enough)

    def _serve(
        self, line: Sequence[Pod], sold_by_group: Counter[str], enough: float
    ) -> tuple[list[Sale], dict[str, Waiting]]:
        groups: dict[str, list[Pod]] = {}
        for pod in line:
            if name := unit_group_of(pod):
                groups.setdefault(name, []).append(pod)
        sales: list[Sale] = []
        reasons: dict[str, Waiting] = {}
        served: set[str] = set()
        for pod in line:
            if len(served) >= enough:
                break
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
        if len(members) == 1 and (refusal := self._refusal(members[0])):
            return {members[0].metadata.uid: refusal}
        found = self._search(members)
        if isinstance(found, list):
            return Sale(
                tuple(each.order for each in found),
                tuple(victim for each in found for victim in each.victims),
            )
        at, why, placed = found
        if len(members) == 1:
            return {at.metadata.uid: why}
        for_all = Waiting(
            WaitReason.GROUP_DOES_NOT_FIT,
            f"unit group {unit_group_of(at).partition('/')[2]!r} gets all units or none:"
            f" {placed} of {len(members)} could be sold now; then, for {at.metadata.name}:"
            f" {why.message}",
        )
        return {each.metadata.uid: self._unfit(each) or for_all for each in members}

    def _search(self, members: Sequence[Pod]) -> list[SoldUnit] | tuple[Pod, Waiting, int]:
        """Places for all of them, or who was the first to find none, why, and after how many.

        Depth first, and exact as far as the number of tries goes. Those that the fewest nodes
        would take come first: the others find their places after.
        """
        line = members
        if len(members) > 1:
            line = sorted(members, key=lambda pod: len(self._room.eligible(pod_request_of(pod))))
        done: list[SoldUnit] = []
        ways: list[Iterator[str]] = []
        failure: tuple[Pod, Waiting, int] | None = None
        tries = len(line) + MOST_TRIES
        while len(done) < len(line):
            pod = line[len(done)]
            if len(ways) == len(done):
                ways.append(iter(self._nodes_for(pod)))
            sold = None
            while sold is None and tries and (node := next(ways[-1], None)) is not None:
                tries -= len(line) > 1
                sold = self._sell_on(pod, node)
            if sold is not None:
                done.append(sold)
                continue
            failure = failure or (pod, self._refusal(pod) or self._no_place(pod), len(done))
            ways.pop()
            if not done or not tries:
                for each in reversed(done):
                    self._undo(each)
                return failure
            self._undo(done.pop())
        return done

    def _nodes_for(self, pod: Pod) -> Iterable[str]:
        """Nodes that the counts and the pod's own demands leave, the best first."""
        if self._refusal(pod) is not None:
            return ()
        nodes = self._ordered_nodes(type_of(pod), pod_request_of(pod))
        # Whoever has a group comes back to them after others were sold units.
        return list(nodes) if unit_group_of(pod) else nodes

    def _sell_on(self, pod: Pod, node: str) -> SoldUnit | None:
        """Take a unit for the pod there; None: there is no room, whoever goes."""
        name = type_of(pod)
        going = self._making_room(name, node, pod_request_of(pod))
        if going is None:
            return None
        for sleeper in going:
            self._sleepers.remove(sleeper)
        self._room.put(pod, node)
        self._books[name].add(name, node)
        self._buying.bought(pod, name)
        return SoldUnit(UnitOrder(pod, name, node), going)

    def _undo(self, sold: SoldUnit) -> None:
        order = sold.order
        self._buying.returned(order.pod, order.type)
        self._books[order.type].remove(order.type, order.node)
        self._room.lift(order.pod, order.node)
        self._sleepers.put_back(sold.victims)

    def _unfit(self, pod: Pod) -> Waiting | None:
        """Why the guest gets no unit even if it is the only one who wants any."""
        refusal = self._refusal(pod)
        if refusal is not None:
            return refusal
        is_placed = next(self.places(type_of(pod), pod_request_of(pod)), None) is not None
        return None if is_placed else self._no_place(pod)

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
            or self._lacking.get(pod.metadata.uid)
        )

    def places(self, name: str, request: PodRequest) -> Iterator[tuple[str, list[Sleeper]]]:
        """Nodes for one unit, with the sleepers that have to go for it; the best first."""
        for node in self._ordered_nodes(name, request):
            going = self._making_room(name, node, request)
            if going is not None:
                yield node, going

    def _ordered_nodes(self, name: str, request: PodRequest) -> Iterator[str]:
        book = self._books[name]
        possible = self._room.eligible(request) & self._serving_sets.get(name, frozenset())
        if not possible:
            return iter(())
        held_as = dict.fromkeys((name, *(each.name for each in book.family.tops)))
        sleepers = chain.from_iterable(map(self._sleepers.of_type, held_as))
        ordered = chain((each.node for each in sleepers), self._serving.get(name, ()))
        nodes: Iterable[str] = (node for node in unique(ordered) if node in possible)
        if book.family.children:
            nodes = sorted(nodes, key=lambda node: book.opens_unit(name, node))
        held_relative = self._buying.held_relative
        return (
            node
            for node in nodes
            if book.has_stock_on(name, node)
            and not held_relative(request.namespace, name, node, book)
        )

    def _making_room(self, name: str, node: str, request: PodRequest) -> list[Sleeper] | None:
        """Sleepers that go if a unit is sold there: those that hold more than is left to hold then,
        and of its family as many others as are in the way. None: there is no room without them.
        """
        book = self._books[name]
        book.add(name, node)
        going = self._excess(book, node)
        book.remove(name, node)
        known = {each.uid for each in going}
        others = [
            sleeper
            for each in (name, *(one.name for one in reversed(book.family.shapes)))
            for sleeper in self._sleepers.on_node(each, node)
            if sleeper.uid not in known
        ]
        given_back = [each for each in going if each.node == node]
        for sleeper in given_back:
            self._room.take(node, sleeper.request.amounts, -1)
        while not self._room.fits(node, request.amounts) and others:
            sleeper = others.pop(0)
            if sleeper.uid not in known:
                known.add(sleeper.uid)
                going.append(sleeper)
                given_back.append(sleeper)
                self._room.take(node, sleeper.request.amounts, -1)
        fits = self._room.fits(node, request.amounts)
        for sleeper in given_back:
            self._room.take(node, sleeper.request.amounts)
        return going if fits else None

    def remove_excess(self, book: FamilyBook) -> list[Sleeper]:
        """Sleepers that hold more than is left to hold, removed."""
        going = self._excess(book)
        for sleeper in going:
            self._sleepers.remove(sleeper)
        return going

    def _excess(self, book: FamilyBook, first_on: str = "") -> list[Sleeper]:
        """Sleepers that hold more than is left to hold; on a certain node first."""
        wanted = book.stock()
        tops = {each.name for each in book.family.tops}
        going: list[Sleeper] = []
        for name in (each.name for each in book.family.shapes):
            if name in tops:
                excess = self._sleepers.count(name) - wanted[name, ANYWHERE]
                there = self._sleepers.on_node(name, first_on)
                more = (each for each in self._sleepers.of_type(name) if each.node != first_on)
                going += islice(chain(there, more), max(excess, 0))
                continue
            for node in self._sleepers.nodes_of(name):
                there = self._sleepers.on_node(name, node)
                going += there[: max(len(there) - wanted[name, node], 0)]
        return going

    def _no_place(self, pod: Pod) -> Waiting:
        """A unit is left, but no node of the pool takes this pod."""
        name, request = type_of(pod), pod_request_of(pod)
        serving = self._serving.get(name, ())
        if not serving:
            return Waiting(
                WaitReason.NO_NODE_FITS, f"no node that serves {name} is ready at present"
            )
        words = [f"{node}: {self._room.words_against(request, node)}" for node in serving[:3]]
        more = f"; and {len(serving) - 3} more" if len(serving) > 3 else ""
        return Waiting(
            WaitReason.NO_NODE_FITS,
            f"no node that serves {name} takes it: {'; '.join(words)}{more}",
        )


def unique(names: Iterable[str]) -> Iterator[str]:
    """Each once, in the order in which they come first."""
    seen: set[str] = set()
    for name in names:
        if name not in seen:
            seen.add(name)
            yield name


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
