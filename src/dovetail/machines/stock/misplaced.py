"""Misplaced sleepers: those whose room others have taken.

Between a plan and the scheduler anybody may take room on a node, and a node may have less to give
than before. The planner asks before it sells. Sleepers go that would not get to their node now, and
others as long as a node has given more than it has: so a guest that is on its way finds room.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dovetail.machines.pods import is_bound
from dovetail.machines.stock.room import Room
from dovetail.machines.stock.sleepers import Sleeper, SleeperBook


def remove_misplaced(
    sleepers: Iterable[Sleeper], book: SleeperBook, room: Room, resources: Sequence[str]
) -> list[Sleeper]:
    """Those that went; `resources` are all that units are made of."""
    ordered = sorted(sleepers, key=lambda each: (each.is_held, is_bound(each.pod), -each.ordinal))
    going: list[Sleeper] = []
    for each in ordered:
        is_crowded = any(room.free(each.node, name) < 0 for name in resources)
        if is_crowded or not (is_bound(each.pod) or room.still_takes(each.pod, each.node)):
            book.remove(each)
            going.append(each)
    return going
