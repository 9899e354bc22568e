"""Plugins for one resource that come, go and die in any order: the newest that lives is called."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from dovetail.node.common.ports import PluginError
from dovetail.node.registry.registry import Registry
from dovetail.node.sdk.serving import PluginServer
from dovetail.node.wire.resource_plugin import ALLOCATE
from tests.node.registry.rig import REQUEST, TICK, Pinner, registry_of

PLACES = ("a.sock", "b.sock", "below/c.sock")
STEPS = 25


class World:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.living: dict[str, tuple[PluginServer, Pinner]] = {}
        """The newest last."""

    async def start(self, place: str) -> None:
        if place in self.living:
            await self.stop(place)
        plugin = Pinner()
        server = PluginServer(plugin, self.directory / place, period=60, grace=0)
        await asyncio.sleep(TICK)
        await server.start()
        self.living[place] = server, plugin

    async def stop(self, place: str) -> None:
        if place in self.living:
            await self.living.pop(place)[0].stop()

    async def kill(self, place: str) -> None:
        """It leaves its socket behind."""
        if place in self.living:
            server, _ = self.living.pop(place)
            server.inode = None
            await server.stop()

    async def whom(self, registry: Registry) -> Pinner | None:
        """Who answers."""
        for _, plugin in self.living.values():
            plugin.asked.clear()
        found = registry.of("cpu")
        try:
            if found:
                await found.call(ALLOCATE, REQUEST)
        except PluginError:
            return None
        return next((each for _, each in self.living.values() if each.asked), None)


@pytest.mark.parametrize("seed", range(4))
async def test_the_newest_that_lives_is_called(directory: Path, seed: int) -> None:
    drawn, world = Random(seed), World(directory)
    (directory / "below").mkdir()
    async with registry_of(directory) as registry:
        for _ in range(STEPS):
            step = drawn.choice([world.start, world.start, world.stop, world.kill])
            await step(drawn.choice(PLACES))
            newest = list(world.living.values())[-1][1] if world.living else None
            async with asyncio.timeout(20):
                while await world.whom(registry) is not newest:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        for place in PLACES:
            await world.stop(place)
