"""Asynchronous tests run on a loop of their own, and must not leave tasks behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.loops import run_on_own_loop

loops: list[asyncio.AbstractEventLoop] = []


@pytest.mark.parametrize("turn", [0, 1])
async def test_each_has_its_own_loop(turn: int) -> None:
    assert len(loops) == turn
    assert asyncio.get_running_loop() not in loops
    loops.append(asyncio.get_running_loop())


class TestOfAClass:
    async def test_fixtures_are_given(self, tmp_path: Path) -> None:
        await asyncio.sleep(0)
        assert tmp_path.name


def test_a_task_left_behind_is_a_failure() -> None:
    left: list[asyncio.Task[None]] = []

    async def test() -> None:
        left.append(asyncio.create_task(asyncio.sleep(3600)))

    with pytest.raises(AssertionError, match="tasks are left behind"):
        run_on_own_loop(test(), seconds=0.1)
    assert left[0].cancelled()


def test_what_a_test_raises_is_its_failure() -> None:
    async def test() -> None:
        raise LookupError("none")

    with pytest.raises(LookupError, match="none"):
        run_on_own_loop(test())
