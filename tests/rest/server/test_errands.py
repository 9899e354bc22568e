"""Work beside requests begins and ends with the server, and goes on after a failure."""

from __future__ import annotations

import asyncio

from dovetail.rest.server.backend import kept_going


async def test_an_errand_that_fails_is_begun_anew() -> None:
    begun = 0
    done = asyncio.Event()

    async def errand() -> None:
        nonlocal begun
        begun += 1
        if begun < 3:
            raise RuntimeError("it does not work yet")
        done.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(kept_going(errand))
    async with asyncio.timeout(10):
        await done.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert begun == 3
