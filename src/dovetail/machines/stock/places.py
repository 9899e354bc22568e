"""Stock: how many sleepers of each type there should be, and where those that wait may go.

The planner places stock after selling: what is sold has gone from the room by then. Where nodes
serve one type each, first fit is exact, for units of a type are alike. Where they serve several,
first fit is tried, the largest units first, and exact packing where it fails (`arranging`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from dovetail.machines.stock.arranging import packed_nodes, sleepers_in_the_way
from dovetail.machines.stock.families import FamilyBook
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


def wanted_replicas(book: FamilyBook) -> Counter[str]:
    """Sleepers by type: whole units of the root, and what holds the rest of opened ones."""
    wanted = Counter({book.family.root.name: max(book.whole, 0)})
    for (name, _), count in book.parts().items():
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
        self.books = sorted(
            books, key=lambda book: [-n for _, n in requests[book.family.root.name].amounts]
        )
        self.requests = requests
        self.sleepers = sleepers
        self.room = room
        self._serving = serving
        self._gated = gated

    def place(self) -> StockPlan:
        """By first fit."""
        found = [
            (name, self._nodes_for(name, nodes, missing), nodes, missing)
            for book in self.books
            for name, nodes, missing in self._missing(book)
        ]
        shortages = [
            self._shortage(name, missing - len(taken), nodes)
            for name, taken, nodes, missing in found
            if len(taken) < missing
        ]
        return StockPlan(
            self._places((name, taken) for name, taken, _, _ in found), tuple(shortages)
        )

    def place_exactly(self, nodes: Iterable[Node]) -> tuple[StockPlan, list[Sleeper]]:
        """Where nodes serve several types: all of it if that is possible at all, perhaps after
        some sleepers have gone. They are placed by the next plan, and so is everything else."""
        before = self.room.taken()
        plan = self.place()
        if not plan.shortages:
            return plan, []
        self.room.restore(before)
        there = list(nodes)
        chosen = packed_nodes(self.books, self.requests, there, self.sleepers, self.room)
        if chosen is not None:
            for name, taken in chosen.items():
                for node in taken:
                    self.room.take(node, self.requests[name].amounts)
            parts = self._parts()
            return StockPlan(self._places((*chosen.items(), *parts)), ()), []
        moved = sleepers_in_the_way(self.books, self.requests, there, self.sleepers, self.room)
        return (StockPlan((), ()), moved) if moved else (plan, [])

    def _parts(self) -> list[tuple[str, list[str]]]:
        """Nodes for what holds the rest of opened units."""
        return [
            (name, self._nodes_for(name, nodes, missing))
            for book in self.books
            for name, nodes, missing in self._missing(book)
            if name != book.family.root.name
        ]

    def _missing(self, book: FamilyBook) -> Iterator[tuple[str, Sequence[str], int]]:
        """Type, the nodes it may go to, and how many more sleepers it should have there."""
        # The rest of an opened unit is on its node, and nowhere else.
        for (name, node), count in book.parts().items():
            lacking = count - self.sleepers.count_on(name, node)
            if lacking > 0 and node in self._serving.get(name, ()):
                yield name, (node,), lacking
        root = book.family.root.name
        lacking = max(book.whole, 0) - self.sleepers.count(root)
        if lacking > 0:
            yield root, self._serving.get(root, ()), lacking

    def _nodes_for(self, name: str, nodes: Sequence[str], count: int) -> list[str]:
        """Nodes for up to `count` sleepers, taken from the room."""
        request = self.requests[name]
        eligible = self.room.eligible(request)
        found: list[str] = []
        for node in nodes:
            while len(found) < count and node in eligible and self.room.fits(node, request.amounts):
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

    def _shortage(self, name: str, count: int, nodes: Sequence[str]) -> StockShortage:
        if not nodes:
            return StockShortage(name, count, "", "no node that serves it is ready")
        request = self.requests[name]
        eligible = self.room.eligible(request)
        nearest = max(
            nodes, key=lambda node: (node in eligible, self.room.share_free(node, request))
        )
        return StockShortage(name, count, nearest, self.room.lacking_words(nearest, request))
