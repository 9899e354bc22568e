"""Places for consumers that have to leave, and an order in which they can go there.

`service/explanations` asks for each set of consumers. A place is one that the consumer needs
(`wanted_places`), beside the request and what the others take. First one is looked for that is free
while everybody is still there: such a move can be carried out at any time. If there is none, one
that is free once the others have left: then they have to go first, and where they wait for each
other one has to leave before it can move (a swap). All of it is tried out: the request is searched
in the fleet as it would be after the moves.

Places are chosen by depth first search with backtracking: consumer by consumer, those beside a
place of the request first, then others that leave the request another one; and the fewest consumers
stay without. It ends when nobody is without a place who could have one by himself, or when
MOST_TRIED places were tried; what was best so far is told then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from dovetail.engine.explain.fit_test.fits import Work, any_fits
from dovetail.engine.explain.fit_test.fleet_problem import FleetProblem
from dovetail.engine.moves.holders import Holder, RowClass
from dovetail.engine.moves.leaving import LeavingSet
from dovetail.engine.moves.wanted_places import Requests, WantedPlace, wanted_place
from dovetail.engine.moves.worlds import SupposedFleet
from dovetail.engine.search import search
from dovetail.engine.snapshot import Snapshot

Amounts = Mapping[RowClass, int]
MOST_TRIED = 32
"""Places tried for one set of consumers, once each of them was looked at."""
MOST_OTHERS = 32
"""Places of one consumer that may be in the way of the request, and are tried all the same."""


class PlannedMove(msgspec.Struct, frozen=True):
    holder: Holder
    to: Amounts
    """What it would hold there; nothing if no place was found."""
    after: tuple[str, ...] = ()
    """Consumers that have to be gone before."""


class PlannedMoves(msgspec.Struct, frozen=True):
    leaving: LeavingSet
    root: int
    """The row of the host's root."""
    moves: Sequence[PlannedMove]
    swap: bool


class ChosenPlace(msgspec.Struct, frozen=True):
    to: Amounts
    """Nothing: the consumer stays without."""
    waits: bool = False
    """Whether others have to leave before."""


def planned_moves(
    fleet: FleetProblem, leaving: LeavingSet, requests: Requests
) -> Work[PlannedMoves | None]:
    """None if the request would not fit after all."""
    choosing = ChoosingPlaces(fleet, leaving, requests)
    chosen = yield from choosing.best()
    after = choosing.emptied.copy()
    first: list[PlannedMove] = []
    waiting: list[PlannedMove] = []
    for holder, place in zip(leaving.leaving, chosen, strict=True):
        after.take(place.to)
        (waiting if place.waits else first).append(PlannedMove(holder, place.to))
    if not (yield from any_fits(after.snapshot(), fleet.demands.request)):
        return None
    first.sort(key=lambda move: bool(move.to))
    moves, swap = in_order(fleet.snapshot, first, waiting)
    root = int(fleet.snapshot.tree_start.values[leaving.tree])
    return PlannedMoves(leaving, root, moves, swap)


class ChoosingPlaces:
    """One set of consumers: where each could go, so that the tree that they leave fits."""

    def __init__(self, fleet: FleetProblem, leaving: LeavingSet, requests: Requests) -> None:
        self._snapshot, self._leaving = fleet.snapshot, leaving.leaving
        self._problem = fleet.problem(leaving.tree)
        self._partial = fleet.demands.only(fleet.demands.droppable)
        self._wanted = [
            wanted_place(fleet.snapshot, holder, requests) for holder in leaving.leaving
        ]
        self.emptied = SupposedFleet(fleet.snapshot)
        """Without any of them."""
        for holder in leaving.leaving:
            self.emptied.free(holder.held)
        self._best: list[ChosenPlace] | None = None
        self._without = len(leaving.leaving)
        """Those that have no place in the best choice so far."""
        self._homeless: set[int] = set()
        """Those that have none even if nobody else is there."""
        self._tried = 0

    def best(self) -> Work[list[ChosenPlace]]:
        """A place for each, or none."""
        yield from self._choose([])
        return self._best or [ChosenPlace({})] * len(self._leaving)

    def _choose(self, chosen: list[ChosenPlace]) -> Work[None]:
        """Choose for the next; worlds are told anew from what was chosen, which is little."""
        without = sum(not place.to for place in chosen)
        if self._best is not None and without >= self._without:
            return
        if len(chosen) == len(self._leaving):
            self._best, self._without = chosen, without
            return
        at = len(chosen)
        tried: list[Amounts] = []
        for places in (self._free_at_once, self._free_later, self._others):
            for place in (yield from places(at, chosen)):
                if place.to in tried:
                    continue
                tried.append(place.to)
                self._tried += 1
                yield from self._choose([*chosen, place])
                if self._is_done():
                    return
        if not tried and not (yield from places_in(self.emptied, self._wanted[at], 1)):
            self._homeless.add(at)
        yield from self._choose([*chosen, ChosenPlace({})])

    def _is_done(self) -> bool:
        if self._best is None:
            return False
        return self._without <= len(self._homeless) or self._tried >= MOST_TRIED

    def _after(self, chosen: Sequence[ChosenPlace]) -> SupposedFleet:
        """Everybody gone, and those who chose in their places."""
        world = self.emptied.copy()
        for place in chosen:
            world.take(place.to)
        return world

    def _beside_request(self, chosen: Sequence[ChosenPlace]) -> Work[SupposedFleet]:
        """The same with the request at one of its places."""
        world = self._after(chosen)
        taken = yield from self._taken_in(world)
        world.take(taken or {})
        return world

    def _taken_in(self, world: SupposedFleet) -> Work[Amounts | None]:
        """What the request takes at a place of its tree; None if it has none there."""
        problem = self._problem
        free = {
            (place, name): held.free + world.freed[problem.rows[place], name]
            for (place, name), held in problem.supplies.items()
        }
        chosen = yield from problem.with_free(free).assignment(self._partial)
        if chosen is None:
            return None
        taken: Counter[RowClass] = Counter()
        for slot, place in zip(self._partial.slots, chosen, strict=True):
            taken.update({(problem.rows[place], name): amount for name, amount in slot.amounts})
        return taken

    def _free_at_once(self, at: int, chosen: list[ChosenPlace]) -> Work[list[ChosenPlace]]:
        """Free as long as everybody is there but the consumer itself: one, if there is any."""
        now = SupposedFleet(self._snapshot)
        for place in chosen:
            now.take(place.to)
        now.free(self._leaving[at].held)
        after = yield from self._beside_request(chosen)
        found = yield from places_in(now.scarcer(after), self._wanted[at], 1)
        return [ChosenPlace(to) for to in found]

    def _free_later(self, at: int, chosen: list[ChosenPlace]) -> Work[list[ChosenPlace]]:
        after = yield from self._beside_request(chosen)
        found = yield from places_in(after, self._wanted[at], 1)
        return [ChosenPlace(to, waits=True) for to in found]

    def _others(self, at: int, chosen: list[ChosenPlace]) -> Work[list[ChosenPlace]]:
        """Places that leave the request another than the one it was given first."""
        places: list[ChosenPlace] = []
        for to in (yield from places_in(self._after(chosen), self._wanted[at], MOST_OTHERS)):
            place = ChosenPlace(to, waits=True)
            if (yield from self._taken_in(self._after([*chosen, place]))) is not None:
                places.append(place)
            yield
        return places


def in_order(
    snapshot: Snapshot, first: Sequence[PlannedMove], waiting: Sequence[PlannedMove]
) -> tuple[list[PlannedMove], bool]:
    """The moves in an order in which each finds its place free; and whether one has to swap."""
    world = SupposedFleet(snapshot)
    done: list[PlannedMove] = []

    def carry_out(move: PlannedMove) -> None:
        world.free(move.holder.held)
        world.take(move.to)
        done.append(move)

    def is_ready(move: PlannedMove) -> bool:
        """What a consumer holds itself is in nobody's way: it gives that back as it moves."""
        without = world.copy()
        without.free(move.holder.held)
        return without.has_room(move.to)

    for move in first:
        carry_out(move)
    left, swap = list(waiting), False
    while left:
        ready = next((move for move in left if is_ready(move)), None)
        swap = swap or ready is None
        move = ready or left[0]
        needs = tuple(
            each.holder.consumer for each in done if any(at in each.holder.held for at in move.to)
        )
        left.remove(move)
        carry_out(msgspec.structs.replace(move, after=needs))
    return done, swap


def places_in(world: SupposedFleet, wanted: WantedPlace, most: int) -> Work[list[Amounts]]:
    """The first places of this kind that are free there: amounts by row and class."""
    searching = search(world.snapshot(), wanted.request)
    places: list[Amounts] = []
    for block in searching.candidates(None):
        if block is None:
            yield
            continue
        for found in block:
            rows = found.tolist()
            by_group = {
                slot.group.suffix: row for slot, row in zip(searching.slots, rows, strict=True)
            }
            if not wanted.is_kept_by(searching.snapshot, by_group):
                continue
            taken: Counter[RowClass] = Counter()
            for slot, row in zip(searching.slots, rows, strict=True):
                taken.update({(row, name): amount for name, amount in slot.resources.items()})
            places.append(taken)
            if len(places) == most:
                return places
    return places
