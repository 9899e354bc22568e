"""A lock for each pod, for gate, collector and queue: other pods do not wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class PodLocks:
    """Of those that somebody holds or waits for; the others cost nothing."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def of(self, uid: str) -> AsyncIterator[None]:
        lock, users = self._locks.get(uid) or (asyncio.Lock(), 0)
        self._locks[uid] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks[uid]
            if users == 1:
                del self._locks[uid]
            else:
                self._locks[uid] = lock, users - 1
