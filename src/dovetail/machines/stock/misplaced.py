"""Misplaced sleepers: those whose room others have taken.

Between a plan and the scheduler anybody may take room on a node, and a node may have less to give
than before. The planner asks before it sells. Sleepers go that would not get to their node now, and
others as long as a node has given more than it has: so a guest that is on its way finds room.
"""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.machines.pods import is_bound
from dovetail.machines.stock.room import Room
from dovetail.machines.stock.sleepers import Sleeper, SleeperBook


def remove_misplaced(sleepers: Iterable[Sleeper], book: SleeperBook, room: Room) -> list[Sleeper]:
    """Those that went: first who holds no unit any more, then who is not on its node yet."""
    ordered = sorted(sleepers, key=lambda each: (each.is_held, is_bound(each.pod), -each.ordinal))
    roomy: set[tuple[str, str]] = set()
    going: list[Sleeper] = []
    for each in ordered:
        at = (each.node, each.type)
        if at not in roomy and all(
            room.free(each.node, name) >= 0 for name, _ in each.request.amounts
        ):
            roomy.add(at)
        is_shut_out = not is_bound(each.pod) and not room.still_takes(each.pod, each.node)
        if at not in roomy or is_shut_out:
            book.remove(each)
            going.append(each)
    return going
