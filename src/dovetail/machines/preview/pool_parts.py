"""Parts of a pool: families of types and nodes that have to do with each other, as tables.

Forecast and dry run ask packing part by part. Where each node serves one type, a part is a family
and its nodes, and packing has next to nothing to search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from dovetail.core.rows import Rows
from dovetail.machines.objects import sleeper_request
from dovetail.machines.selling.standing import MachineStanding
from dovetail.machines.stock.families import ANYWHERE, FamilyBook
from dovetail.podfit.objects import Pod
from dovetail.podfit.packing import PodsToPack, Unpackable
from dovetail.podfit.pod_request import PodRequest, pod_request_of
from dovetail.podfit.table import NodeTable

Used = Counter[tuple[str, str]]
"""By node and resource."""


NOT_READY_WORDS = "no node that serves it is ready"
UNSERVED_WORDS = "no node of the pool serves it"


class PoolPart(msgspec.Struct, frozen=True):
    books: tuple[FamilyBook, ...]
    nodes: tuple[str, ...]
    """Those that serve them, and are ready."""

    @property
    def tops(self) -> tuple[str, ...]:
        """Types as which whole units are held."""
        return tuple(top.name for book in self.books for top in book.family.tops)


def pool_parts(standing: MachineStanding) -> list[PoolPart]:
    """Families that share a node, directly or by way of others, are in one part."""
    parts: list[PoolPart] = []
    for book in standing.families:
        nodes = dict.fromkeys(
            node for name in book.family.available for node in standing.survey.serving[name]
        )
        joined = [part for part in parts if not nodes.keys().isdisjoint(part.nodes)]
        parts = [part for part in parts if part not in joined]
        for part in joined:
            nodes |= dict.fromkeys(part.nodes)
        books = (*(each for part in joined for each in part.books), book)
        parts.append(PoolPart(books, tuple(nodes)))
    return parts


def request_of(standing: MachineStanding, name: str) -> PodRequest:
    """What a unit of the type asks of its node."""
    snapshot = standing.snapshot
    return sleeper_request(standing.shapes[name], snapshot.machine.group, snapshot.settings)


def whole_stock(standing: MachineStanding, part: PoolPart) -> list[PodsToPack]:
    """Whole units of each of its tops, as far as they are neither sold nor opened."""
    return [
        PodsToPack(request_of(standing, top.name), stock[top.name, ANYWHERE])
        for book in part.books
        for stock in [book.stock()]
        for top in book.family.tops
    ]


def lacking_words(answer: Unpackable) -> str:
    """What the blocking node lacks for one more."""
    nearest = answer.explanation.nearest
    if not nearest:
        return NOT_READY_WORDS
    return "; ".join(finding.words for finding in nearest[0].findings)


def table_of(standing: MachineStanding, part: PoolPart, *, moving: bool) -> NodeTable:
    """The part's nodes with what is on them, but for sleepers that are to go in any case.

    `moving`: also without those of whole units, which may be anywhere.
    """
    given_back = Counter(_amounts(standing, (pod for pod, _ in standing.survey.removals)))
    if moving:
        for name in part.tops:
            for sleeper in standing.sleepers.of_type(name):
                for resource, amount in sleeper.request.amounts:
                    given_back[sleeper.node, resource] += amount
    table, room = standing.snapshot.table, standing.room
    used: Used = Counter()
    for node in part.nodes:
        for resource in _resources(standing, part):
            free = room.free(node, resource) + given_back[node, resource]
            used[node, resource] = table.allocatable(node, resource) - free
    return _table(standing, part, used)


def idle_table(standing: MachineStanding, part: PoolPart) -> NodeTable:
    """The part's nodes with guests, and what holds the rest of units that they opened, alone."""
    used = Counter(_amounts(standing, standing.survey.holders))
    for book in part.books:
        for (name, node), count in book.parts().items():
            for resource, amount in request_of(standing, name).amounts:
                used[node, resource] += amount * count
    return _table(standing, part, used)


def _amounts(standing: MachineStanding, pods: Iterable[Pod]) -> dict[tuple[str, str], int]:
    """Of pods, where the plan has them or where they are."""
    found: Used = Counter()
    for pod in pods:
        uid = pod.metadata.uid
        node = standing.survey.places.get(uid) or standing.snapshot.table.node_of(uid)
        if node is not None:
            for resource, amount in pod_request_of(pod).amounts:
                found[node, resource] += amount
    return found


def _resources(standing: MachineStanding, part: PoolPart) -> Iterator[str]:
    names = [name for book in part.books for name in book.family.available]
    return iter({key: None for name in names for key, _ in request_of(standing, name).amounts})


def _table(standing: MachineStanding, part: PoolPart, used: Used) -> NodeTable:
    table = NodeTable(Rows())
    for name in part.nodes:
        table.set_node(standing.snapshot.nodes[name])
        table.set_aside(
            name, {resource: amount for (node, resource), amount in used.items() if node == name}
        )
    return table
