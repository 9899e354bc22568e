"""Helpers for tests of the parts that talk over sockets."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any


def story(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an asynchronous test on a loop of its own; tasks it leaves behind are a failure."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def whole() -> None:
            await test(*args, **kwargs)
            # gRPC's own tasks need a moment to end after the server did.
            await eventually(lambda: asyncio.all_tasks() == {asyncio.current_task()})

        asyncio.run(whole())

    return run


async def eventually(true: Callable[[], Any], seconds: float = 10.0) -> None:
    """Until it is; the test fails if it takes too long."""
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
