"""Stock: how many sleepers of each type there should be, and where those that wait may go.

The planner places stock after selling: what is sold has gone from the room by then. What can be on
one node only comes first, the rest of opened units, then whole units, the largest first. First fit
is exact for units that are alike. Where nodes serve several types, or whole units are in the way of
such a rest, exact packing follows where first fit fails (`arranging`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dovetail.machines.stock.arranging import packed_nodes, sleepers_in_the_way
from dovetail.machines.stock.families import ANYWHERE, FamilyBook
from dovetail.machines.stock.room import Room
from dovetail.machines.stock.sleepers import Sleeper, SleeperBook
from dovetail.podfit.objects import Node, Pod
from dovetail.podfit.pod_request import PodRequest


class StockPlace(msgspec.Struct, frozen=True):
    """A sleeper that waits behind its gate, and the node it may go to."""

    pod: Pod
    type: str
    node: str


class StockShortage(msgspec.Struct, frozen=True):
    type: str
    count: int
    """Units that find no place."""
    node: str
    """The one that comes nearest, or empty if no node serves the type now."""
    words: str


class StockPlan(msgspec.Struct, frozen=True):
    places: tuple[StockPlace, ...]
    shortages: tuple[StockShortage, ...]


class MissingStock(msgspec.Struct, frozen=True):
    type: str
    nodes: tuple[str, ...]
    """Where it may go."""
    count: int
    is_part: bool
    """It holds the rest of an opened unit."""


def wanted_replicas(book: FamilyBook) -> Counter[str]:
    """Sleepers by type."""
    wanted: Counter[str] = Counter()
    for (name, _), count in book.stock().items():
        wanted[name] += count
    return wanted


class Stocking:
    """One plan's placing of stock; what it places is taken from the room."""

    def __init__(
        self,
        books: Iterable[FamilyBook],
        *,
        requests: Mapping[str, PodRequest],
        serving: Mapping[str, Sequence[str]],
        gated: Mapping[str, Sequence[Pod]],
        sleepers: SleeperBook,
        room: Room,
    ) -> None:
        """`requests` of a sleeper, serving nodes and sleepers that wait for a place, by type."""
        self.requests = requests
        self.sleepers = sleepers
        self.room = room
        self._serving = serving
        self._gated = gated
        self._wanted = {key: count for book in books for key, count in book.stock().items()}
        """By type and node."""

    def place(self, nodes: Iterable[Node], *, is_mixed: bool) -> tuple[StockPlan, list[Sleeper]]:
        """All of it if that is possible at all, perhaps after some sleepers have gone: they are
        placed by the next plan, and so is everything else. `is_mixed`: nodes serve several types.
        """
        before = self.room.taken()
        missing = self._missing()
        found = [(each, self._nodes_for(each)) for each in missing]
        shortages = {
            each: self._shortage(each, each.count - len(taken))
            for each, taken in found
            if len(taken) < each.count
        }
        places = self._places((each.type, taken) for each, taken in found)
        plan = StockPlan(places, tuple(shortages.values()))
        if not any(each.nodes and (is_mixed or each.is_part) for each in shortages):
            return plan, []
        self.room.restore(before)
        hopeless = tuple(each for each in plan.shortages if not each.node)
        return self._place_exactly(
            [each for each in missing if each.nodes], list(nodes), hopeless
        ) or (plan, [])

    def _place_exactly(
        self,
        missing: Sequence[MissingStock],
        nodes: Sequence[Node],
        hopeless: tuple[StockShortage, ...],
    ) -> tuple[StockPlan, list[Sleeper]] | None:
        """Of what some node serves; None: not all of it finds room, whoever goes."""
        parts = [each for each in missing if each.is_part]
        found = [(each.type, self._nodes_for(each)) for each in parts]
        if all(len(taken) == each.count for each, (_, taken) in zip(parts, found, strict=True)):
            whole = {each.type: each.count for each in missing if not each.is_part}
            chosen = packed_nodes(whole, self.requests, nodes, self.room)
            if chosen is not None:
                return StockPlan(self._places((*found, *chosen.items())), hopeless), []
        for name, taken in found:
            for node in taken:
                self.room.take(node, self.requests[name].amounts, -1)
        wanted = {
            name: count
            for (name, node), count in self._wanted.items()
            if node == ANYWHERE and self._serving.get(name)
        }
        coming = [
            (node, self.requests[each.type])
            for each in parts
            for node in each.nodes
            for _ in range(each.count)
        ]
        moved = sleepers_in_the_way(
            wanted,
            coming,
            requests=self.requests,
            nodes=nodes,
            sleepers=self.sleepers,
            room=self.room,
        )
        return (StockPlan((), hopeless), moved) if moved else None

    def _missing(self) -> list[MissingStock]:
        parts, whole = [], []
        for (name, node), count in self._wanted.items():
            if node == ANYWHERE:
                lacking = count - self.sleepers.count(name)
                whole.append(MissingStock(name, tuple(self._serving.get(name, ())), lacking, False))
            else:
                lacking = count - self.sleepers.count_on(name, node)
                serving = (node,) if node in self._serving.get(name, ()) else ()
                parts.append(MissingStock(name, serving, lacking, True))
        whole.sort(key=lambda each: [-n for _, n in self.requests[each.type].amounts])
        return [each for each in (*parts, *whole) if each.count > 0]

    def _nodes_for(self, missing: MissingStock) -> list[str]:
        """Nodes for as many of the sleepers as find room, taken from the room."""
        request = self.requests[missing.type]
        eligible = self.room.eligible(request)
        found: list[str] = []
        for node in missing.nodes:
            while (
                len(found) < missing.count
                and node in eligible
                and self.room.fits(node, request.amounts)
            ):
                self.room.take(node, request.amounts)
                found.append(node)
        return found

    def _places(self, found: Iterable[tuple[str, Sequence[str]]]) -> tuple[StockPlace, ...]:
        """Each place gets one of the sleepers that wait, as far as there are any yet."""
        waiting = {name: iter(pods) for name, pods in self._gated.items()}
        return tuple(
            StockPlace(pod, name, node)
            for name, nodes in found
            for pod, node in zip(waiting.get(name, iter(())), nodes, strict=False)
        )

    def _shortage(self, missing: MissingStock, count: int) -> StockShortage:
        name, request = missing.type, self.requests[missing.type]
        if not missing.nodes:
            return StockShortage(name, count, "", "no node that serves it is ready")
        eligible = self.room.eligible(request)
        nearest = max(
            missing.nodes,
            key=lambda node: (node in eligible, self.room.nearness(node, request)),
        )
        return StockShortage(name, count, nearest, self.room.lacking_words(nearest, request))
