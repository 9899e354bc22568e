"""Plugins that were uninstalled are forgotten, others are not."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.reconcile.plugin_retirement import PluginRetirement
from dovetail.node.state.pod_state import ContainerHolding
from dovetail.node.state.store import StateStore
from tests.support.node.fakes import FakePlugins, Node, Pieces, container, pod, sandbox


class Forgetting(FakePlugins):
    def __init__(self, *plugins: Pieces) -> None:
        super().__init__(*plugins)
        self.has_socket = False

    def forget(self, resource: str) -> bool:
        return not self.has_socket and self.known.pop(resource, None) is not None


class World:
    """A node on which two pods ask for CPUs, whose plugin goes at second 100."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.cpu = directory, Pieces()
        self.pods = pod("a", container(cpu=1)), pod("b", container(cpu=1))
        self.node = Node(directory, [self.cpu], self.pods)
        self.plugins = Forgetting(self.cpu)
        self.node.store.remember("cpu", self.cpu.options)
        self.now = 100.0
        self.retirement = PluginRetirement(self.node.store, self.plugins, clock=lambda: self.now)

    def go(self) -> None:
        self.cpu.up, self.cpu.down_since = False, self.now

    async def look(self, second: float) -> bool:
        """Whether the plugin is known afterwards, here and after a restart."""
        self.now = second
        await self.retirement.look()
        known = "cpu" in self.plugins.known
        assert ("cpu" in StateStore.open(self.directory).state.plugins) is known
        return known


async def test_one_that_is_down_for_five_minutes_is_forgotten(tmp_path: Path) -> None:
    world = World(tmp_path)

    await world.node.store.commit()
    assert await world.look(10_000), "it is up"
    world.now = 100.0
    world.go()
    assert await world.look(399)
    assert not await world.look(400)


async def test_not_as_long_as_it_has_a_socket(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.plugins.has_socket = True

    await world.node.store.commit()
    world.go()
    assert await world.look(1000)
    world.plugins.has_socket = False
    assert not await world.look(1001)


async def test_not_as_long_as_a_pod_has_something_of_it(tmp_path: Path) -> None:
    world = World(tmp_path)

    await world.node.start(world.pods[0])
    world.go()
    assert await world.look(1000)
    with pytest.raises(AdmissionRejected, match="cpu is not there"):
        await world.node.manager.admit_pod(sandbox("b"))
    await world.node.manager.collector.release("a")
    assert not await world.look(1001)


async def test_not_as_long_as_a_pod_waits_for_it(tmp_path: Path) -> None:
    world = World(tmp_path)

    await world.node.start(world.pods[0])
    own = world.node.store.pods["a"]
    waiting = {"main": ContainerHolding(missing=("cpu",))}
    world.node.store.put(msgspec.structs.replace(own, plugins=(), containers=waiting))
    world.go()
    assert await world.look(1000)


async def test_it_hears_of_pods_that_went_should_it_come_back_after_all(tmp_path: Path) -> None:
    world = World(tmp_path)

    await world.node.start(world.pods[0])
    world.go()
    await world.node.manager.collector.release("a")
    assert not await world.look(1000)
    world.cpu.up = True
    await world.node.manager.removals.deliver()
    assert not world.cpu.held
