"""Followers of the map: one look at a time for all of them, and what changed, told to each.

`views.fleet_map` lets each stream join. While anybody follows, a task looks twice a second and
hands the same change to everybody; whoever encodes it does that once (`FleetChange.once`). A
follower that does not keep up is let go: it comes again and asks for the whole map.

Whoever follows asks for the map by itself, at any moment between two looks. So a change leads on
from every state that this process has shown since the change before (`trail`), not only from the
one that was told last: a follower that has any of them has, with the change, the new one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar
from weakref import WeakSet

import structlog

from dovetail.core.errors import DovetailError
from dovetail.ledger import LedgerBusy
from dovetail.service.fleet_map.maps import FleetMap, FleetMaps, made_once
from dovetail.service.fleet_map.trail import FleetTrail

T = TypeVar("T")

LOOK_SECONDS = 0.5
HEARTBEAT_SECONDS = 15.0
MOST_FOLLOWERS = 1000
"""Of one server process."""
MOST_OF_ONE_USER = 20
"""A browser has one, however many pages it shows."""
MOST_WAITING = 8
"""Changes that a follower may be behind."""

log = structlog.get_logger("dovetail.service")


class TooManyFollowers(DovetailError):
    def __init__(self, message: str, *, is_user: bool) -> None:
        super().__init__(message)
        self.is_user = is_user
        """Whether it is the user who has too many, not the server."""


class FleetChange:
    """What `trail` saw between two looks, for everybody who is told."""

    def __init__(self, trail: FleetTrail) -> None:
        self.trail, self.now = trail, trail.now
        self._made: dict[str, Any] = {}

    def once(self, name: str, make: Callable[[], T]) -> T:
        return made_once(self._made, name, make)


class Follower:
    """A place among those who are told, from joining until `leave`, or until nobody holds it."""

    def __init__(self, user: str) -> None:
        self.user = user
        self.has_left = False
        self._waiting: asyncio.Queue[FleetChange | None] = asyncio.Queue(MOST_WAITING)

    def leave(self) -> None:
        self.has_left = True

    def tell(self, change: FleetChange) -> None:
        try:
            self._waiting.put_nowait(change)
        except asyncio.QueueFull:
            # Whatever it missed is in the map that it asks for when it comes again.
            self.leave()
            while not self._waiting.empty():
                self._waiting.get_nowait()
            self._waiting.put_nowait(None)

    async def changes(self) -> AsyncIterator[FleetChange | None]:
        """Those since joining, and None every `HEARTBEAT_SECONDS`, whatever else there is to tell.
        Ends if the follower does not keep up."""
        clock = asyncio.get_running_loop().time
        beat = clock() + HEARTBEAT_SECONDS
        try:
            while True:
                left = beat - clock()
                try:
                    if left <= 0:
                        raise TimeoutError
                    change = await asyncio.wait_for(self._waiting.get(), left)
                except TimeoutError:
                    beat = clock() + HEARTBEAT_SECONDS
                    yield None
                    continue
                if change is None:
                    return
                yield change
        finally:
            self.leave()


class FleetFollowers:
    """Used on the event loop only."""

    def __init__(self, maps: FleetMaps) -> None:
        self.maps = maps
        # An answer that is never sent (its reader is gone already) is not ended by anybody, either.
        self._joined: WeakSet[Follower] = WeakSet()
        self._trail: FleetTrail | None = None
        self._looking: asyncio.Task[None] | None = None
        maps.when_shown(self._note)

    def __len__(self) -> int:
        return len(self._present())

    def join(self, user: str) -> Follower:
        """Be told of changes from now on: of all that the map has not that is asked for next.
        Raises TooManyFollowers."""
        present = self._present()
        if len(present) >= MOST_FOLLOWERS:
            raise TooManyFollowers(f"{MOST_FOLLOWERS} streams are open.", is_user=False)
        if Counter(each.user for each in present)[user] >= MOST_OF_ONE_USER:
            raise TooManyFollowers(f"You have {MOST_OF_ONE_USER} streams open.", is_user=True)
        follower = Follower(user)
        self._joined.add(follower)
        if not self._is_looking:
            self._trail = None
            self._looking = asyncio.create_task(self._look())
        return follower

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    @property
    def _is_looking(self) -> bool:
        return self._looking is not None and not self._looking.done()

    def _present(self) -> list[Follower]:
        return [each for each in self._joined if not each.has_left]

    def _note(self, shown: FleetMap) -> None:
        if not self._is_looking:
            return
        if self._trail is None:
            self._trail = FleetTrail(shown)
        else:
            self._trail.add(shown)

    async def _look(self) -> None:
        while self._present():
            try:
                await self.maps.now()
            except LedgerBusy as error:
                log.warning("the map is not looked at", error=str(error))
            else:
                self._tell()
            await asyncio.sleep(LOOK_SECONDS)

    def _tell(self) -> None:
        trail = self._trail
        if trail is None or not trail.has_moved:
            return
        self._trail = FleetTrail(trail.now)
        change = FleetChange(trail)
        for each in self._present():
            each.tell(change)
