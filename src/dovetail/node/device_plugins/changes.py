"""A counter of changes that can be waited for: streams to the kubelet wait for the next one."""

from __future__ import annotations

import asyncio


class ChangeFeed:
    def __init__(self) -> None:
        self.count = 0
        self._next = asyncio.Event()

    def tell(self) -> None:
        self.count += 1
        self._next.set()
        self._next = asyncio.Event()

    async def after(self, count: int) -> int:
        """The number of changes, once it is not that any more."""
        while self.count == count:
            await self._next.wait()
        return self.count
