"""The smallest changes to a request that would give candidates.

Smallest means: as few constraints touched as possible, and each of them only as far as needed (the
largest amount that fits, as few groups as possible let out of a subtree or allowed to share a
provider). All sets of one and of two constraints are found, through the conflicts of each kind of
tree (`conflicts`); if all are larger, sets no part of which would do.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dovetail.core.constraints import Constraint, with_changes
from dovetail.core.request import Request
from dovetail.engine.explain.conflicts import Conflicts
from dovetail.engine.explain.fit_test.demands import Kept, numbers_in
from dovetail.engine.explain.fit_test.distance import fewest_changes
from dovetail.engine.explain.fit_test.fits import Work
from dovetail.engine.explain.fit_test.fleet_problem import FleetProblem
from dovetail.engine.explain.refine import Changes, refined
from dovetail.engine.snapshot import Snapshot

EXACT_SIZE = 2
"""Sets of up to so many constraints are all found."""
MOST_GROWN = 32
"""Kinds of trees for which a larger set is grown."""
MOST_SHOWN = 16
"""Relaxations told of: the others touch as many constraints, and are only counted."""


class RelaxedRequest(msgspec.Struct, frozen=True):
    """A request that fits somewhere, and how it differs from the one that was asked."""

    changes: Changes
    request: Request
    trees: int
    smallest: bool = True
    """Whether it is certain that no fewer constraints would do."""
    vanishing: Sequence[Constraint] = ()
    """What goes with a group that asks for nothing any more."""


def relaxations(
    snapshot: Snapshot, request: Request, found: list[RelaxedRequest]
) -> Work[list[RelaxedRequest]]:
    """Add to `found` as they are found; those that touch the fewest constraints, and no others."""
    yield from relaxations_in(FleetProblem(snapshot, request), found)
    return found


def relaxations_in(fleet: FleetProblem, found: list[RelaxedRequest]) -> Work[int]:
    """The same; and how many more there are that touch as few and are not told of."""
    request = fleet.demands.request
    yield from fleet.look()
    sets, smallest = yield from smallest_sets(fleet)
    for dropped in sorted(sets, key=lambda one: [*numbers_in(one)])[:MOST_SHOWN]:
        changes, trees = yield from refined(fleet, dropped)
        relaxed = with_changes(request, changes)
        if relaxed is None:
            continue
        found.append(
            RelaxedRequest(changes, relaxed, trees, smallest, vanishing(fleet, changes, relaxed))
        )
        yield
    return max(len(sets) - MOST_SHOWN, 0)


def smallest_sets(fleet: FleetProblem) -> Work[tuple[set[Kept], bool]]:
    """Of constraints without which some tree fits; and whether there are certainly no smaller."""
    conflicts = Conflicts(fleet.demands)
    for size in range(1, EXACT_SIZE + 1):
        found: set[Kept] = set()
        for tree in fleet.within(size):
            yield from conflicts.resolutions(tree, size, found)
            yield
        if found:
            return found, True
    grown: list[Kept] = []
    nearest = list(fleet.kinds.values())[:MOST_GROWN]
    for alike in nearest:
        dropped = yield from conflicts.grown(fleet.problem(alike[0]))
        if dropped is not None:
            grown.append(dropped)
        yield
    fewest = min((one.bit_count() for one in grown), default=0)
    nearly = sorted({one for one in grown if one.bit_count() == fewest})[:MOST_SHOWN]
    grown = yield from needed(fleet, conflicts, nearly)
    fewest = min((one.bit_count() for one in grown), default=0)
    least = min((int(fleet.distance[alike[0]]) for alike in nearest), default=0)
    proven = fewest <= max(least, EXACT_SIZE + 1)
    return {one for one in grown if one.bit_count() == fewest}, proven


def needed(fleet: FleetProblem, conflicts: Conflicts, sets: Sequence[Kept]) -> Work[list[Kept]]:
    """Of each set what is left without constraints that some tree, of whatever kind, could keep."""
    found: list[Kept] = []
    for dropped in sets:
        left, untried = dropped, dropped
        while untried and left.bit_count() > EXACT_SIZE + 1:
            lowest = untried & -untried
            untried ^= lowest
            if (yield from anywhere(fleet, conflicts, left ^ lowest)):
                left ^= lowest
                untried = left
        found.append(left)
    return found


def anywhere(fleet: FleetProblem, conflicts: Conflicts, dropped: Kept) -> Work[bool]:
    """Whether some tree fits without these."""
    distance = yield from fewest_changes(fleet.conditions, dropped)
    for alike in fleet.kinds.values():
        if distance[alike[0]] == 0:
            if (yield from conflicts.fits_without(fleet.problem(alike[0]), dropped)):
                return True
            yield
    return False


def vanishing(fleet: FleetProblem, changes: Changes, relaxed: Request) -> list[Constraint]:
    left = {group.suffix for group in relaxed.groups}
    return [
        one
        for one in fleet.demands.constraints
        if one.group is not None and one.group not in left and one not in changes
    ]
