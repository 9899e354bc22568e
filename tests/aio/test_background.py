"""Work beside its caller: kept alive, done to its end, ended together."""

from __future__ import annotations

import asyncio

import structlog
from structlog.testing import capture_logs

from dovetail.aio.background import Background, NamedBackground


class TestBackground:
    async def test_work_ends_though_its_caller_left(self) -> None:
        done: list[str] = []

        background = Background()

        async def work() -> None:
            await asyncio.sleep(0.01)
            done.append("done")

        impatient = asyncio.create_task(background.complete(work()))
        await asyncio.sleep(0)
        impatient.cancel()
        await background.stop(grace_seconds=5.0)
        assert done == ["done"]

    async def test_what_does_not_end_in_time_is_cancelled(self) -> None:
        async def story() -> bool:
            background = Background()
            hanging = background.start(asyncio.sleep(3600))
            await background.stop(grace_seconds=0.01)
            return hanging.cancelled()

        assert await story()


class TestNamedBackground:
    async def test_one_of_a_name_at_a_time_and_nobody_waits_long(self) -> None:
        started: list[str] = []

        background = NamedBackground(0.01, structlog.get_logger())

        async def hang() -> None:
            started.append("hang")
            await asyncio.sleep(3600)

        await background.run("look", hang)
        await background.run("look", hang)
        await background.run("other", hang)
        await background.stop()
        assert started == ["hang", "hang"]

    async def test_a_failure_is_logged_and_the_next_run_may_begin(self) -> None:
        with capture_logs() as logs:
            background = NamedBackground(1.0, structlog.get_logger())

            async def fail() -> None:
                raise ValueError("no")

            await background.run("look", fail)
            await background.run("look", fail)
        assert [(each["event"], each["errand"]) for each in logs] == [("failed", "look")] * 2
