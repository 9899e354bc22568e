"""The work queue: each key once, one worker per key, failures later and later."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core.errors import DovetailError
from dovetail.kube.runtime.workqueue import WorkQueue
from tests.support.kube.virtual import now, run

pytestmark = pytest.mark.virtual_time


async def worked(
    queue: WorkQueue, work: Callable[[str], Awaitable[None]], seconds: float, workers: int = 1
) -> None:
    """Let it run for a while."""
    task = asyncio.create_task(queue.run(work, workers))
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.wait([task])
    queue.close()


async def test_a_key_added_often_is_worked_on_once_and_in_order() -> None:
    queue, done = WorkQueue("test"), list[str]()

    async def work(key: str) -> None:
        done.append(key)

    for key in "abacab":
        queue.add(key)
    assert len(queue) == 3
    await worked(queue, work, 1)
    assert done == ["a", "b", "c"]


async def test_a_key_added_while_it_is_worked_on_comes_again_behind_the_others() -> None:
    queue, done = WorkQueue("test"), list[str]()

    async def work(key: str) -> None:
        if key == "a" and "a" not in done:
            queue.add("a")
            queue.add("a")
        done.append(key)

    for key in "abc":
        queue.add(key)
    await worked(queue, work, 1)
    assert done == ["a", "b", "c", "a"]


async def test_failures_come_again_later_each_time_up_to_a_cap_and_are_forgotten_on_success() -> (
    None
):
    queue, tries = WorkQueue("test", first=1, cap=8), list[float]()
    fail = True

    async def work(key: str) -> None:
        tries.append(now())
        if fail:
            raise DovetailError("not yet")

    queue.add("a")
    await worked(queue, work, 100)
    gaps = [later - sooner for sooner, later in pairwise(tries)]
    for gap, longest in zip(gaps, [1, 2, 4, 8, 8, 8], strict=False):
        assert longest / 2 <= gap <= longest
    assert max(gaps) <= 8

    fail = False
    queue.add("a")
    await worked(queue, work, 10)
    fail = True
    del tries[:]
    queue.add("a")
    await worked(queue, work, 1.2)
    assert len(tries) == 2


async def test_a_key_that_keeps_failing_does_not_hold_up_others() -> None:
    queue, done = WorkQueue("test"), Counter[str]()

    async def work(key: str) -> None:
        done[key] += 1
        if key == "bad":
            raise ValueError("a bug")

    queue.add("bad")
    for n in range(100):
        queue.add(f"good-{n}")
    await worked(queue, work, 10)
    assert done["bad"] > 5
    assert all(done[f"good-{n}"] == 1 for n in range(100))


async def test_of_several_delays_the_shortest_counts() -> None:
    queue, done = WorkQueue("test"), list[tuple[str, float]]()
    started = now()

    async def work(key: str) -> None:
        done.append((key, round(now() - started, 3)))

    queue.add_after("a", 10)
    queue.add_after("a", 5)
    queue.add_after("a", 20)
    queue.add_after("b", 7)
    await worked(queue, work, 100)
    assert done == [("a", 5), ("b", 7)]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 5)), max_size=30),
    st.integers(1, 4),
    st.integers(0, 3),
)
def test_the_last_change_of_every_key_is_seen_by_one_worker_at_a_time(
    added: list[tuple[str, float]], workers: int, failures: int
) -> None:
    async def main() -> None:
        queue = WorkQueue("test")
        wanted, seen, busy, failed = Counter[str](), Counter[str](), set[str](), Counter[str]()
        overlaps: list[str] = []

        async def work(key: str) -> None:
            overlaps.extend(busy & {key})
            busy.add(key)
            version = wanted[key]
            await asyncio.sleep(0.7)
            busy.discard(key)
            if failed[key] < failures:
                failed[key] += 1
                raise DovetailError("not yet")
            seen[key] = version

        async def add() -> None:
            for key, wait in added:
                wanted[key] += 1
                queue.add(key)
                await asyncio.sleep(wait)

        adding = asyncio.create_task(add())
        await worked(queue, work, 300, workers)
        await adding
        assert seen == wanted
        assert overlaps == []

    run(main())


def test_whiles_of_less_than_a_millisecond_on_the_loop_of_the_daemons() -> None:
    """uvloop calls soon then, and gives no timer."""

    async def added_twice() -> list[str]:
        queue, done = WorkQueue("test"), list[str]()

        async def work(key: str) -> None:
            done.append(key)

        queue.add_after("a", 0.0001)
        queue.add_after("a", 0.0002)
        queue.add_after("a", 0.0)
        await worked(queue, work, 0.01)
        return done

    assert uvloop.run(added_twice()) == ["a"]
