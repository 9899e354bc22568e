"""Claims under way in this process: what they are about to take counts before it is written.

A claim is decided on the event loop and written elsewhere, so that others are decided before it
shows in the ledger. `service.claims` begins and ends them here; the snapshot keeper shows the fleet
without what they take to those who look for a place, and as the ledger has it to everybody else.
A claim that was granted counts until the snapshot has taken in a look at the ledger that began
after the commit: never is its place free in between. Used on the event loop only.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable, Mapping

from dovetail.engine import Snapshot
from dovetail.service.claiming.equals import Shifted

Place = tuple[int, int]
"""provider id, class id"""
PlaceAmounts = Mapping[Place, int]
"""What one claim takes."""
Usages = list[tuple[int, int, int]]
"""provider id, class id, used: as `Snapshot.update_usage` takes it."""


MET_SECONDS = 60.0
"""So long after others took a place first, claims begin elsewhere among equals."""


class ClaimsUnderWay:
    def __init__(self) -> None:
        self.taken: dict[Place, int] = {}
        """By all of them together."""
        self.changed: set[Place] = set()
        """Places at which `taken` became another since somebody emptied this."""
        self.granted: list[PlaceAmounts] = []
        """Those that were written, but may not be in the snapshot yet; oldest first."""
        self._ended = 0
        self._next_end = asyncio.Event()
        self._start = 0.0
        self._met_until = 0.0

    def begin(self, amounts: PlaceAmounts) -> None:
        for place, amount in amounts.items():
            self.taken[place] = self.taken.get(place, 0) + amount
        self.changed.update(amounts)

    def grant(self, amounts: PlaceAmounts) -> None:
        """It was written."""
        self.granted.append(amounts)
        self._tell_waiting()

    def forget(self, amounts: PlaceAmounts) -> None:
        """It takes nothing, or what it takes shows in the snapshot."""
        for place, amount in amounts.items():
            left = self.taken[place] - amount
            if left:
                self.taken[place] = left
            else:
                del self.taken[place]
        self.changed.update(amounts)
        self._tell_waiting()

    @property
    def ended(self) -> int:
        """How often one of them was granted or forgotten so far."""
        return self._ended

    async def end_after(self, ended: int) -> None:
        """Wait until one more was granted or forgotten than so many."""
        while self._ended == ended:
            await self._next_end.wait()

    def meet_others(self) -> None:
        """A place that was free here was taken: by another replica, or by a claim of its own.

        Others look for places in the same order; from now on, claims begin at a place of theirs.
        """
        self._start = random.random()
        self._met_until = time.monotonic() + MET_SECONDS

    @property
    def order(self) -> Shifted | None:
        """Among equals; None as long as there is nobody else."""
        return Shifted(self._start) if time.monotonic() < self._met_until else None

    def _tell_waiting(self) -> None:
        self._ended += 1
        self._next_end.set()
        self._next_end = asyncio.Event()


def usages_with(snapshot: Snapshot, amounts: Iterable[tuple[Place, int]]) -> Usages:
    """What is in use at these places when so much more is; places that are no more are left out."""
    found = []
    for (provider_id, class_id), amount in amounts:
        used = used_at(snapshot, provider_id, class_id)
        if used is not None:
            found.append((provider_id, class_id, used + amount))
    return found


def has_room(snapshot: Snapshot, amounts: PlaceAmounts) -> bool:
    """Whether all the amounts are free, by what the snapshot shows."""
    return all(
        (free := free_at(snapshot, *place)) is not None and free >= amount
        for place, amount in amounts.items()
    )


def used_at(snapshot: Snapshot, provider_id: int, class_id: int) -> int | None:
    entry = entry_at(snapshot, provider_id, class_id)
    if entry is None:
        return None
    inventories = snapshot.inventories[class_id]
    return int(inventories.capacity.values[entry]) - int(inventories.free.values[entry])


def free_at(snapshot: Snapshot, provider_id: int, class_id: int) -> int | None:
    entry = entry_at(snapshot, provider_id, class_id)
    return None if entry is None else int(snapshot.inventories[class_id].free.values[entry])


def entry_at(snapshot: Snapshot, provider_id: int, class_id: int) -> int | None:
    """Where the inventory stands in the columns of its class; None if there is none."""
    inventories = snapshot.inventories.get(class_id)
    if inventories is None or provider_id >= snapshot.row_of.size:
        return None
    row = int(snapshot.row_of.values[provider_id])
    return None if row < 0 else inventories.entry(row)
