"""Results of threads, awaited on the event loop: `asyncio.wrap_future` for what is done often.

Every call of the ledger is one. `wrap_future` makes a second future and has each cancel and copy
the other; here the event loop is woken once and reads the thread's own.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def result_of(future: Future[T]) -> T:
    """What the thread returned, or raised. Who stops waiting cancels it, if it has not begun."""
    if not future.done():
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()

        def wake(_: Future[T]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, woken)

        future.add_done_callback(wake)
        try:
            await woken
        except asyncio.CancelledError:
            future.cancel()
            raise
    return future.result()


def _settle(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
