"""Supervision: long-running tasks that stand and fall together; daemons and controllers call it.

`run_together` propagates: a part that ends before its time has failed, and everything with it.
Whoever runs the process starts it anew, which is better than a daemon of which a part is missing.
`end` cancels tasks and waits for them, whatever happens meanwhile.
`retry_until_done` restarts: work that is to succeed once, against something that may be away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any


async def run_together(*parts: Coroutine[Any, Any, Any]) -> None:
    """Run the parts until one of them ends, and raise its failure if it failed.

    Then, or when this is cancelled, the others are cancelled from the last to the first, each
    waited for before the next: what comes later may rely on what comes before it to its very end.
    """
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
    finally:
        await end(reversed(tasks))


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel the tasks, each waited for before the next; their failures are nobody's any more.

    Whoever is cancelled meanwhile goes on with it, and is cancelled then: else those that were not
    waited for would be left behind.
    """
    is_cancelled = False
    for task in tasks:
        task.cancel()
        while not task.done():
            try:
                await asyncio.wait((task,))
            except asyncio.CancelledError:
                is_cancelled = True
        if not task.cancelled():
            task.exception()  # So that the loop does not complain of it.
    if is_cancelled:
        raise asyncio.CancelledError


async def retry_until_done(
    work: Callable[[], Awaitable[None]],
    *,
    on: type[Exception],
    pause_seconds: float,
    log: Callable[[Exception], object],
) -> None:
    """Do the work again after each failure of this kind, until it succeeds; others are raised."""
    while True:
        try:
            return await work()
        except on as error:
            log(error)
            await asyncio.sleep(pause_seconds)
