"""Bipartite matching: whether slots that share with nobody can have an option of their own each.

Walks ask before they try combinations. Kuhn's algorithm: slots are placed one by one along an
augmenting path, found breadth first, so nothing is recursive. It ends after one search per slot,
each of which looks at an option once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from dovetail.engine.work import Work


def has_distinct_options(options: Sequence[Sequence[int]]) -> Work[bool]:
    """By slot its options; yields after each slot."""
    holder: dict[int, int] = {}
    for slot in range(len(options)):
        if not _place(options, slot, holder):
            return False
        yield
    return True


def _place(options: Sequence[Sequence[int]], slot: int, holder: dict[int, int]) -> bool:
    """Give the slot an option, moving others where they have to; False if that is impossible."""
    free = next((option for option in options[slot] if option not in holder), None)
    if free is not None:
        holder[free] = slot
        return True
    tried_by: dict[int, int] = {}
    waiting = deque([slot])
    held = {of: option for option, of in holder.items()}
    while waiting:
        current = waiting.popleft()
        for option in options[current]:
            if option in tried_by:
                continue
            tried_by[option] = current
            if option in holder:
                waiting.append(holder[option])
                continue
            # Free: everybody on the way here moves on to the option that he tried.
            last: int | None = option
            while last is not None:
                mover = tried_by[last]
                holder[last], last = mover, held.get(mover)
            return True
    return False
