"""Results of threads: what they return or raise arrives, and who stops waiting cancels."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from dovetail.aio.thread_results import result_of


async def test_what_the_thread_returns_arrives() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert [await result_of(pool.submit(pow, 2, each)) for each in range(20)] == [
            2**each for each in range(20)
        ]


async def test_what_is_there_already_is_not_waited_for() -> None:
    future: Future[int] = Future()
    future.set_result(7)
    assert await result_of(future) == 7


async def test_what_the_thread_raises_is_raised() -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(ZeroDivisionError):
        await result_of(pool.submit(lambda: 1 // 0))


async def test_who_stops_waiting_cancels_what_has_not_begun() -> None:
    gate = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        first, second = pool.submit(gate.wait), pool.submit(gate.wait)
        waiting = asyncio.create_task(result_of(second))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert second.cancelled()
        gate.set()
        assert await result_of(first)


def test_a_result_that_comes_after_the_loop_has_ended_is_nobodys() -> None:
    future: Future[int] = Future()

    async def stop_waiting() -> None:
        future.set_running_or_notify_cancel()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(result_of(future), 0.01)

    asyncio.run(stop_waiting())
    future.set_result(1)
    assert future.result() == 1
