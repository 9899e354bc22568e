"""Allocations are believed while it is known that only those who may can write them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dovetail.core.errors import DovetailError
from dovetail.node.class_devices import guard_trust
from dovetail.node.class_devices.guard_trust import AGAIN_SECONDS, FRESH_SECONDS, GuardTrust


class PlayedGuard:
    """What an API server says of the guard."""

    def __init__(self) -> None:
        self.lacking: str | None = None
        self.away = self.hangs = False
        self.asked = 0

    async def __call__(self) -> str | None:
        self.asked += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.away:
            raise DovetailError("connection refused")
        return self.lacking


class World:
    def __init__(self, directory: Path) -> None:
        self.guard, self.now, self._file = PlayedGuard(), 0.0, directory / "guard"
        self.restart()

    def restart(self) -> None:
        self.trust = GuardTrust(self.guard, self._file, clock=lambda: self.now)

    async def why_not(self, after: float = 0.0) -> str:
        self.now += after
        return await self.trust.why_not() or ""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_a_guard_that_is_there_is_asked_about_now_and_then(world: World) -> None:
    assert [await world.why_not() for _ in range(5)] == [""] * 5
    assert world.guard.asked == 1
    assert await world.why_not(FRESH_SECONDS) == ""
    assert world.guard.asked == 2


async def test_without_a_guard_nothing_is_believed_and_the_remedy_is_named(world: World) -> None:
    world.guard.lacking = "there is no policy"
    said = await world.why_not()
    assert "anybody may have written which devices the pod has: there is no policy;" in said
    assert "dovetail manifests guard" in said
    assert "devices.trust_annotations" in said
    world.guard.lacking = None
    assert await world.why_not(AGAIN_SECONDS) == ""


async def test_a_guard_that_was_there_counts_while_nobody_answers(world: World) -> None:
    assert await world.why_not() == ""
    world.guard.away = True
    assert await world.why_not(FRESH_SECONDS) == ""
    world.restart()
    assert await world.why_not() == ""


async def test_a_guard_that_was_taken_away_does_not(world: World) -> None:
    assert await world.why_not() == ""
    world.guard.lacking = "there is no policy"
    assert "there is no policy" in await world.why_not(FRESH_SECONDS)
    world.guard.away = True
    world.restart()
    assert "connection refused" in await world.why_not()


async def test_who_was_never_told_believes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.guard.away = True
    assert "cannot be read: connection refused" in await world.why_not()
    monkeypatch.setattr(guard_trust, "ANSWER_SECONDS", 0.01)
    world.guard.hangs = True
    assert "the API server does not answer" in await world.why_not(AGAIN_SECONDS)


async def test_many_pods_ask_once(world: World) -> None:
    assert await asyncio.gather(*(world.trust.why_not() for _ in range(20))) == [None] * 20
    assert world.guard.asked == 1
