"""Parts that run together: the first to end ends all, the last to start is the first to stop."""

from __future__ import annotations

import asyncio

import pytest

from dovetail.aio.supervise import retry_until_done, run_together


async def forever(log: list[str], name: str) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        log.append(name)


async def test_the_first_to_end_ends_the_others_from_the_last_to_the_first() -> None:
    log: list[str] = []
    await run_together(forever(log, "first"), asyncio.sleep(0), forever(log, "last"))
    assert log == ["last", "first"]


async def test_a_failure_is_raised_after_the_others_have_ended() -> None:
    log: list[str] = []

    async def failing() -> None:
        await asyncio.sleep(0)
        raise RuntimeError("a fault")

    with pytest.raises(RuntimeError, match="a fault"):
        await run_together(forever(log, "other"), failing())
    assert log == ["other"]


async def test_whoever_is_cancelled_ends_the_parts_too() -> None:
    log: list[str] = []
    task = asyncio.create_task(run_together(forever(log, "a"), forever(log, "b")))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["b", "a"]


async def test_work_is_done_again_until_it_succeeds_but_not_after_a_failure_of_another_kind() -> (
    None
):

    failures: list[Exception] = [OSError("away"), OSError("still away")]
    told: list[str] = []

    async def work() -> None:
        if failures:
            raise failures.pop(0)

    def log(error: Exception) -> None:
        told.append(str(error))

    await retry_until_done(work, on=OSError, pause_seconds=0.0, log=log)
    assert told == ["away", "still away"]
    failures.append(ValueError("a bug"))
    with pytest.raises(ValueError, match="a bug"):
        await retry_until_done(work, on=OSError, pause_seconds=0.0, log=log)


async def test_who_is_cancelled_while_parts_end_leaves_none_behind() -> None:
    ended = []

    async def slow(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            ended.append(name)

    async def failing() -> None:
        await asyncio.sleep(0.01)
        raise RuntimeError("broken")

    task = asyncio.create_task(run_together(slow("one"), slow("two"), failing()))
    await asyncio.sleep(0.015)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0.002)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["two", "one"]
