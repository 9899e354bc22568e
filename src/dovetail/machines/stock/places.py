"""Stock: how many sleepers of each type there should be, and where those that wait may go.

The planner calls `place_stock` after selling: what is sold has gone from the room by then. Where
nodes serve one type each, first fit is exact, for units of a type are alike. Where they serve
several, the types with the largest units choose first, the node with the least left over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dovetail.machines.stock.families import FamilyBook
from dovetail.machines.stock.room import Room
from dovetail.machines.stock.sleepers import SleeperBook
from dovetail.podfit.objects import Pod
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


def place_stock(
    books: Iterable[FamilyBook],
    *,
    requests: Mapping[str, PodRequest],
    serving: Mapping[str, Sequence[str]],
    gated: Mapping[str, Sequence[Pod]],
    sleepers: SleeperBook,
    room: Room,
) -> StockPlan:
    """`requests` of a sleeper, serving nodes and sleepers that wait for a place, by type."""
    places: list[StockPlace] = []
    shortages: list[StockShortage] = []
    ordered = sorted(books, key=lambda book: [-n for _, n in requests_of(book, requests)])
    for book in ordered:
        for name, nodes, missing in _missing(book, serving, sleepers):
            waiting = list(gated.get(name, ()))
            found = _places(requests[name], nodes, missing, room)
            places += [
                StockPlace(pod, name, node) for pod, node in zip(waiting, found, strict=False)
            ]
            if len(found) < missing:
                shortages.append(_shortage(name, missing - len(found), requests[name], nodes, room))
    return StockPlan(tuple(places), tuple(shortages))


def requests_of(
    book: FamilyBook, requests: Mapping[str, PodRequest]
) -> tuple[tuple[str, int], ...]:
    return requests[book.family.root.name].amounts


def _missing(
    book: FamilyBook, serving: Mapping[str, Sequence[str]], sleepers: SleeperBook
) -> list[tuple[str, Sequence[str], int]]:
    """Type, the nodes it may go to, and how many more sleepers it should have there."""
    root = book.family.root.name
    found: list[tuple[str, Sequence[str], int]] = []
    # The rest of an opened unit is on its node, and nowhere else.
    for (name, node), count in book.parts().items():
        lacking = count - sleepers.count_on(name, node)
        if lacking > 0 and node in serving.get(name, ()):
            found.append((name, (node,), lacking))
    lacking = max(book.whole, 0) - sleepers.count(root)
    if lacking > 0:
        found.append((root, serving.get(root, ()), lacking))
    return found


def _places(request: PodRequest, nodes: Sequence[str], count: int, room: Room) -> list[str]:
    """Nodes for up to `count` sleepers, taken from the room."""
    eligible = room.eligible(request)
    found: list[str] = []
    for node in nodes:
        while len(found) < count and node in eligible and room.fits(node, request.amounts):
            room.take(node, request.amounts)
            found.append(node)
    return found


def _shortage(
    name: str, count: int, request: PodRequest, nodes: Sequence[str], room: Room
) -> StockShortage:
    if not nodes:
        return StockShortage(name, count, "", "no node that serves it is ready")
    eligible = room.eligible(request)
    nearest = max(nodes, key=lambda node: (node in eligible, room.share_free(node, request)))
    words = room.lacking_words(nearest, request)
    return StockShortage(name, count, nearest, words)
