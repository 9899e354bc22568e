"""The hooks that run tests: a loop for each asynchronous one, and coverage that costs little."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import COVERED_EXAMPLES, pytest_runtest_call
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


def test_coverage_sees_the_first_examples_only(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    measuring = SimpleNamespace(
        stop=lambda: seen.append("stop"), start=lambda: seen.append("start")
    )
    loaded = SimpleNamespace(Coverage=SimpleNamespace(current=lambda: measuring))
    monkeypatch.setitem(sys.modules, "coverage", loaded)

    @settings(max_examples=3 * COVERED_EXAMPLES, database=None)
    @given(st.integers())
    def test(_: int) -> None:
        seen.append("example")

    inner = test.hypothesis.inner_test  # type: ignore[attr-defined]
    item: Any = SimpleNamespace(obj=test)
    around = pytest_runtest_call(item)
    next(around)
    test()
    with pytest.raises(StopIteration):
        next(around)
    assert seen.index("stop") == COVERED_EXAMPLES
    assert (seen.count("stop"), seen.count("start"), seen[-1]) == (1, 1, "start")
    assert len(seen) > 2 * COVERED_EXAMPLES
    assert test.hypothesis.inner_test is inner  # type: ignore[attr-defined]


def test_coverage_that_was_not_paused_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collector that is started twice cannot be stopped any more."""
    seen: list[str] = []
    measuring = SimpleNamespace(
        stop=lambda: seen.append("stop"), start=lambda: seen.append("start")
    )
    loaded = SimpleNamespace(Coverage=SimpleNamespace(current=lambda: measuring))
    monkeypatch.setitem(sys.modules, "coverage", loaded)

    @settings(max_examples=COVERED_EXAMPLES - 1, database=None)
    @given(st.integers())
    def test(_: int) -> None: ...

    item: Any = SimpleNamespace(obj=test)
    around = pytest_runtest_call(item)
    next(around)
    test()
    with pytest.raises(StopIteration):
        next(around)
    assert seen == []
