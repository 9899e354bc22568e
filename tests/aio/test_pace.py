"""Long work gives way, and keeps what it has in its hands from the garbage collector."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Generator, Iterator

import pytest

from dovetail.aio import pace
from dovetail.aio.pace import Pace, collect_again, collector_paused, spare_collector


@pytest.fixture(autouse=True)
def _nothing_spared() -> Iterator[None]:
    yield
    collect_again()


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


def test_what_is_spared_the_collector_is_given_back() -> None:
    held = [[n] for n in range(1000)]
    before = gc.get_freeze_count()
    spare_collector()
    assert gc.get_freeze_count() >= before + len(held)
    collect_again()
    assert gc.get_freeze_count() == 0
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    collect_again()
    # Whoever froze something for reasons of his own keeps it.
    gc.freeze()
    collect_again()
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
