"""Event loops of tests: how asynchronous tests are run, and how they wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

SETTLE_SECONDS = 10.0
"""gRPC's own tasks need a moment to end after the server did."""


def run_on_own_loop(
    test: Coroutine[Any, Any, object],
    seconds: float = SETTLE_SECONDS,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> None:
    """Tasks that the test leaves behind are a failure."""

    async def run() -> None:
        await test
        own = {asyncio.current_task()}
        with suppress(TimeoutError):
            await eventually(lambda: asyncio.all_tasks() == own, seconds)
        assert asyncio.all_tasks() == own, "tasks are left behind"

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(run())


async def eventually(true: Callable[[], Any], seconds: float = 60.0) -> None:
    """Until it is; the test fails if it takes too long."""
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
