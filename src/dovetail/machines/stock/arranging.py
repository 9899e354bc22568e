"""Arranging: finds room for all stock where first fit does not.

The planner asks in two steps. `packed_nodes`: would what is missing fit beside the sleepers that
are there? `sleepers_in_the_way`: would all stock fit if it were placed anew, and who has to go for
it? Sleepers hold nothing that anybody would miss: their StatefulSet makes them again, and the next
plan has the answer to the first question. Both ask `podfit.packing`, which is exact, so that the
second step is taken at most once for one state of the pool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from dovetail.core.rows import Rows
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
    missing: Mapping[str, int],
    requests: Mapping[str, PodRequest],
    nodes: Iterable[Node],
    room: Room,
) -> dict[str, list[str]] | None:
    """By type, a node for each whole unit that is missing; None: not all of them fit so."""
    kinds = [PodsToPack(requests[name], count) for name, count in missing.items()]
    table = free_table(nodes, (), (), requests.values(), room)
    answer = pack(table, kinds, budget=STEPS) if table is not None else None
    if not isinstance(answer, Packed):
        return None
    return {
        name: [node for node, count in sorted(wanted.items()) for _ in range(count)]
        for name, wanted in zip(missing, answer.assignment, strict=True)
    }


def sleepers_in_the_way(
    whole: Mapping[str, int],
    parts: Iterable[tuple[str, PodRequest]],
    *,
    requests: Mapping[str, PodRequest],
    nodes: Iterable[Node],
    sleepers: SleeperBook,
    room: Room,
) -> list[Sleeper]:
    """Those that have to go so that the whole units of all types fit, and the parts that are
    missing, each on its node; none, if that is not so. Parts that are there stay: they can be
    nowhere else.
    """
    kinds = [PodsToPack(requests[name], count) for name, count in whole.items()]
    moving = [each for name in whole for each in sleepers.of_type(name)]
    table = free_table(nodes, moving, parts, requests.values(), room)
    if table is None:
        return []
    answer = pack(table, kinds, budget=STEPS)
    if not isinstance(answer, Packed):
        return []
    going: list[Sleeper] = []
    for name, wanted in zip(whole, answer.assignment, strict=True):
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
    parts: Iterable[tuple[str, PodRequest]],
    requests: Iterable[PodRequest],
    room: Room,
) -> NodeTable | None:
    """The nodes with what would be free of them if these sleepers were gone and these parts there,
    and nothing else; None: there is no room for the parts."""
    kinds = list(requests)
    names = sorted({name for request in kinds for name, _ in request.amounts})
    eligible = frozenset[str]().union(*map(room.eligible, kinds))
    given_back: Counter[tuple[str, str]] = Counter()
    for sleeper in moving:
        for name, amount in sleeper.request.amounts:
            given_back[sleeper.node, name] += amount
    taken: set[tuple[str, str]] = set()
    for at, request in parts:
        for name, amount in request.amounts:
            given_back[at, name] -= amount
            taken.add((at, name))
    if any(room.free(at, name) + given_back[at, name] < 0 for at, name in taken):
        return None
    table = NodeTable(Rows())
    for node in nodes:
        at = node.metadata.name
        if at in eligible:
            free = {name: max(room.free(at, name) + given_back[at, name], 0) for name in names}
            table.set_node(replace(node, status=NodeStatus(allocatable=as_quantities(free))))
    return table


def as_quantities(amounts: Mapping[str, int]) -> dict[str, str]:
    """Amounts in smallest units as the API writes them."""
    return {name: f"{amount}m" if name == CPU else str(amount) for name, amount in amounts.items()}
