"""Places for consumers that have to leave, and an order in which they can go there.

A consumer goes to a place like the one it has: providers with at least the traits of those that
serve it now, one each, lying to each other as they do. First a place is looked for that is free
while everybody is still there, and that the request does not need: such a move can be carried out
at any time. If there is none, a place that is free once the others have left: then they have to go
first, and where they wait for each other one has to leave before it can move (a swap). All of it is
tried out: the request is searched in the fleet as it would be after the moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from dovetail.core.request import Affinity, Group, Request
from dovetail.engine.explain.fits import Work, any_fits
from dovetail.engine.moves.holders import Holder, RowClass
from dovetail.engine.moves.leaving import LeavingSet
from dovetail.engine.moves.worlds import SupposedFleet
from dovetail.engine.search import search
from dovetail.engine.sharing import SHARES
from dovetail.engine.snapshot import Snapshot

TOP = "_TOP"


class PlannedMove(msgspec.Struct, frozen=True):
    holder: Holder
    to: Mapping[RowClass, int]
    """What it would hold there; nothing if no place was found."""
    after: tuple[str, ...] = ()
    """Consumers that have to be gone before."""


class PlannedMoves(msgspec.Struct, frozen=True):
    leaving: LeavingSet
    root: int
    """The row of the host's root."""
    moves: Sequence[PlannedMove]
    swap: bool


def planned_moves(
    snapshot: Snapshot, request: Request, leaving: LeavingSet
) -> Work[PlannedMoves | None]:
    """None if the request would not fit after all."""
    now = SupposedFleet(snapshot)
    after = SupposedFleet(snapshot)
    for holder in leaving.leaving:
        after.free(holder.held)
    taken = yield from place_in(after, msgspec.structs.replace(request, rank=(), limit=1))
    if taken is None:
        return None
    after.take(taken)
    free_at_once: list[PlannedMove] = []
    waiting: list[PlannedMove] = []
    leave: list[PlannedMove] = []
    for holder in leaving.leaving:
        wanted = like_place(snapshot, holder)
        to = yield from place_in(now.scarcer(after), wanted)
        where = free_at_once
        if to is None:
            to, where = (yield from place_in(after, wanted)), waiting
        if to is None:
            leave.append(PlannedMove(holder, {}))
            continue
        where.append(PlannedMove(holder, to))
        now.take(to)
        after.take(to)
        yield
    after.free(taken)
    if not (yield from any_fits(after.snapshot(), request)):
        return None
    moves, swap = in_order(snapshot, [*leave, *free_at_once], waiting)
    root = int(snapshot.tree_start.values[leaving.tree])
    return PlannedMoves(leaving, root, moves, swap)


def in_order(
    snapshot: Snapshot, first: Sequence[PlannedMove], waiting: Sequence[PlannedMove]
) -> tuple[list[PlannedMove], bool]:
    """The moves in an order in which each finds its place free; and whether one has to swap."""
    world = SupposedFleet(snapshot)
    done: list[PlannedMove] = []

    def carry_out(move: PlannedMove) -> None:
        world.take(move.to)
        world.free(move.holder.held)
        done.append(move)

    for move in first:
        carry_out(move)
    left, swap = list(waiting), False
    while left:
        ready = next((move for move in left if world.has_room(move.to)), None)
        swap = swap or ready is None
        move = ready or left[0]
        needs = tuple(
            each.holder.consumer for each in done if any(at in each.holder.held for at in move.to)
        )
        left.remove(move)
        carry_out(msgspec.structs.replace(move, after=needs))
    return done, swap


def place_in(world: SupposedFleet, request: Request) -> Work[dict[RowClass, int] | None]:
    """The first place that the request has there: amounts by row and class."""
    searching = search(world.snapshot(), request)
    for block in searching.candidates(1):
        if block is None:
            yield
        elif len(block):
            found: dict[RowClass, int] = {}
            for slot, row in zip(searching.slots, block[0].tolist(), strict=True):
                for name, amount in slot.resources.items():
                    found[row, name] = found.get((row, name), 0) + amount
            return found
    return None


def like_place(snapshot: Snapshot, holder: Holder) -> Request:
    """A request for a place like the one that a consumer has."""
    rows = sorted({row for row, _ in holder.held})
    suffixes = {row: f"_{at}" for at, row in enumerate(rows)}
    groups = [
        Group(
            suffix=suffixes[row],
            resources={name: amount for (own, name), amount in holder.held.items() if own == row},
            required=traits_of(snapshot, row),
        )
        for row in rows
    ]
    isolated = frozenset(suffixes.values())
    affinities = [
        Affinity(frozenset((suffixes[above], suffixes[row])))
        for row in rows
        for above in path(snapshot, row)[1:]
        if above in suffixes
    ]
    for alike in by_tree(snapshot, rows):
        top = lowest_common(snapshot, alike)
        if len(alike) > 1 and top not in suffixes and snapshot.parent.values[top] >= 0:
            suffix = f"{TOP}{top}"
            groups.append(Group(suffix=suffix, required=traits_of(snapshot, top)))
            affinities.append(Affinity(frozenset((suffix, *(suffixes[row] for row in alike)))))
    return Request(groups=tuple(groups), isolated=isolated, affinities=tuple(affinities), limit=1)


def by_tree(snapshot: Snapshot, rows: Sequence[int]) -> list[list[int]]:
    found: dict[int, list[int]] = {}
    for row in rows:
        found.setdefault(int(snapshot.tree.values[row]), []).append(row)
    return list(found.values())


def lowest_common(snapshot: Snapshot, rows: Sequence[int]) -> int:
    """The lowest provider that all of these are below, or are."""
    common = path(snapshot, rows[0])
    for row in rows[1:]:
        above = path(snapshot, row)
        common = [one for one in common if one in above]
    return common[0]


def path(snapshot: Snapshot, row: int) -> list[int]:
    """The row, its parent and so on up to its root."""
    found = [row]
    while (up := int(snapshot.parent.values[found[-1]])) >= 0:
        found.append(up)
    return found


def traits_of(snapshot: Snapshot, row: int) -> tuple[frozenset[str], ...]:
    numbers = snapshot.trait_sets.members(int(snapshot.traits.values[row]))
    names = sorted(snapshot.trait_names[number] for number in numbers)
    return tuple(frozenset([name]) for name in names if name != SHARES)
