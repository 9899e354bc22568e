"""Arranging: finds room for all stock where nodes serve several types and first fit does not.

The planner asks in two steps. `packed_nodes`: would what is missing fit beside the sleepers that
are there? `sleepers_in_the_way`: would all stock fit if it were placed anew, and who has to go for
it? Sleepers hold nothing that anybody would miss: their StatefulSet makes them again, and the next
plan has the answer to the first question. Both ask `podfit.packing`, which is exact, so that the
second step is taken at most once for one state of the pool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from dovetail.core.rows import Rows
from dovetail.machines.stock.families import FamilyBook
from dovetail.machines.stock.room import Room
from dovetail.machines.stock.sleepers import Sleeper, SleeperBook
from dovetail.podfit.objects import Node, NodeStatus
from dovetail.podfit.packing import Packed, PodsToPack, pack
from dovetail.podfit.pod_request import PodRequest
from dovetail.podfit.pod_sum import CPU
from dovetail.podfit.table import NodeTable

STEPS = 20_000
"""Of the search: a plan must not keep the others waiting."""


def packed_nodes(
    books: Sequence[FamilyBook],
    requests: Mapping[str, PodRequest],
    nodes: Iterable[Node],
    sleepers: SleeperBook,
    room: Room,
) -> dict[str, list[str]] | None:
    """By type, a node for each whole unit that is missing; None: not all of them fit so."""
    missing = {
        book.family.root.name: book.whole - sleepers.count(book.family.root.name) for book in books
    }
    names = [name for name, count in missing.items() if count > 0]
    kinds = [PodsToPack(requests[name], missing[name]) for name in names]
    answer = pack(free_table(nodes, (), requests.values(), room), kinds, budget=STEPS)
    if not isinstance(answer, Packed):
        return None
    return {
        name: [node for node, count in sorted(wanted.items()) for _ in range(count)]
        for name, wanted in zip(names, answer.assignment, strict=True)
    }


def sleepers_in_the_way(
    books: Sequence[FamilyBook],
    requests: Mapping[str, PodRequest],
    nodes: Iterable[Node],
    sleepers: SleeperBook,
    room: Room,
) -> list[Sleeper]:
    """Those that have to go so that the whole units of all types fit; none, if that is not so.

    Parts of opened units stay: they can be nowhere else.
    """
    names = [book.family.root.name for book in books if book.whole > 0]
    kinds = [
        PodsToPack(requests[book.family.root.name], book.whole) for book in books if book.whole > 0
    ]
    moving = [each for name in names for each in sleepers.of_type(name)]
    table = free_table(nodes, moving, requests.values(), room)
    answer = pack(table, kinds, budget=STEPS)
    if not isinstance(answer, Packed):
        return []
    going: list[Sleeper] = []
    for name, wanted in zip(names, answer.assignment, strict=True):
        left = Counter(wanted)
        for sleeper in sleepers.of_type(name):
            if left[sleeper.node] > 0:
                left[sleeper.node] -= 1
            else:
                going.append(sleeper)
    return going


def free_table(
    nodes: Iterable[Node],
    moving: Iterable[Sleeper],
    requests: Iterable[PodRequest],
    room: Room,
) -> NodeTable:
    """The nodes with what would be free of them if these sleepers were gone, and nothing else."""
    names = sorted({name for request in requests for name, _ in request.amounts})
    given_back: Counter[tuple[str, str]] = Counter()
    for sleeper in moving:
        for name, amount in sleeper.request.amounts:
            given_back[sleeper.node, name] += amount
    table = NodeTable(Rows())
    for node in nodes:
        at = node.metadata.name
        free = {name: max(room.free(at, name) + given_back[at, name], 0) for name in names}
        table.set_node(replace(node, status=NodeStatus(allocatable=as_quantities(free))))
    return table


def as_quantities(amounts: Mapping[str, int]) -> dict[str, str]:
    """Amounts in smallest units as the API writes them."""
    return {name: f"{amount}m" if name == CPU else str(amount) for name, amount in amounts.items()}
