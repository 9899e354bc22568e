"""Long work gives way, and keeps what it has in its hands from the garbage collector."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import weakref
from collections.abc import Generator, Iterator

import pytest

from dovetail.aio import pace
from dovetail.aio.pace import (
    NEVER,
    Pace,
    collector_spared,
    retire_startup_objects,
    spare_collector,
    work_of_any_length,
)


def turns_of_others(steps: int) -> int:
    """How often others get their turn while work of so many steps is done."""

    async def count() -> int:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        def work() -> Iterator[None]:
            for _ in range(steps):
                yield

        beside = asyncio.create_task(others())
        await Pace().run(iter_as_generator(work()))
        beside.cancel()
        return turns

    return asyncio.run(count())


def iter_as_generator(steps: Iterator[None]) -> Generator[None, None, None]:
    yield from steps


def test_others_have_their_turn_whenever_it_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "GIVE_WAY_AFTER_SECONDS", 0.0)
    assert turns_of_others(steps=50) >= 45
    monkeypatch.setattr(pace, "GIVE_WAY_AFTER_SECONDS", 3600.0)
    assert turns_of_others(steps=50) == 0


def test_the_result_of_work_is_handed_on() -> None:
    def work() -> Generator[None, None, str]:
        yield
        return "done"

    assert asyncio.run(Pace().run(work())) == "done"


def looks_at_old_objects() -> bool:
    """Whether the collector goes through all objects now and then."""
    return gc.get_threshold()[2] < NEVER


def test_who_never_gives_way_spares_nothing() -> None:
    with work_of_any_length():
        assert looks_at_old_objects()
    spare_collector()
    assert looks_at_old_objects(), "only work for a request is known to end"


def test_from_giving_way_to_the_end_of_the_request_old_objects_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pace, "GIVE_WAY_AFTER_SECONDS", 0.0)
    seen = []

    async def request() -> None:
        with work_of_any_length():
            seen.append(looks_at_old_objects())
            await Pace().give_way()
            await Pace().give_way()
            # In the hands of the ledger, say: nobody gives way, and the document is still there.
            seen.append(looks_at_old_objects())

    asyncio.run(request())
    assert seen == [True, False]
    assert looks_at_old_objects()


def test_one_request_that_ends_does_not_end_the_work_of_others() -> None:
    def request() -> Iterator[None]:
        with work_of_any_length():
            spare_collector()
            yield

    first, second = request(), request()
    # Each in a context of its own, as tasks have.
    contexts = [contextvars.copy_context() for _ in range(2)]
    contexts[0].run(next, first)
    contexts[1].run(next, second)
    contexts[0].run(next, first, None)
    assert not looks_at_old_objects()
    contexts[1].run(next, second, None)
    assert looks_at_old_objects()


def test_threads_of_a_request_count_and_those_that_outlive_it_do_not() -> None:
    async def request() -> None:
        with work_of_any_length():
            outliving = contextvars.copy_context()
            await asyncio.to_thread(spare_collector)
            assert not looks_at_old_objects()
        assert looks_at_old_objects()
        outliving.run(spare_collector)
        assert looks_at_old_objects()

    asyncio.run(request())


def test_young_objects_are_collected_all_the_while() -> None:
    class Cycle:
        def __init__(self) -> None:
            self.itself = self

    with collector_spared():
        gone = weakref.ref(Cycle())
        kept = [[] for _ in range(10 * gc.get_threshold()[0])]  # type: ignore[var-annotated]
        assert gone() is None
    assert kept


def test_work_that_never_stops_overlapping_is_not_spared_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with collector_spared():
        with collector_spared():
            assert not looks_at_old_objects()
        monkeypatch.setattr(pace, "MOST_SPARED_SECONDS", -1)
        with collector_spared():
            assert looks_at_old_objects()
    assert looks_at_old_objects()
    with collector_spared():
        assert not looks_at_old_objects()


def test_what_a_server_starts_with_is_never_looked_at_again() -> None:
    held = [[n] for n in range(1000)]
    retire_startup_objects()
    try:
        assert gc.get_freeze_count() >= len(held)
        with collector_spared():
            pass
        assert gc.get_freeze_count() >= len(held)
    finally:
        gc.unfreeze()
