"""The agent may end at any point: assignments stay, and plugins keep nothing of nobody."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dovetail.node.common.pods import Pod
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.sdk.files import write_atomically
from dovetail.node.state.checkpoint import Checkpoint
from dovetail.node.wire.resource_plugin import ContainerType
from tests.support.node.fakes import Node, Pieces, container, pod

PODS = [
    pod("a", container(cpu=2, gpu=1)),
    pod(
        "b",
        container("init", cpu=1, type=ContainerType.INIT),
        container(cpu=1),
        container("more", 1, cpu=1, type=ContainerType.SIDECAR),
    ),
    pod("c", container(cpu=9)),
    pod("d", container(cpu=1, gpu=1)),
]


class Crash(BaseException):
    """Nothing runs after that: whoever tries meets it again."""


class World:
    """What outlives the agent: the plugins' own state and the directory."""

    def __init__(self, directory: Path, last_step: int) -> None:
        self.directory, self.last_step, self.step = directory, last_step, 0
        self.cpu = Pieces()
        self.gpu = Pieces("gpu", {0: [0, 1], 1: [2, 3]}, property_name="")
        for plugin in (self.cpu, self.gpu):
            plugin.before = plugin.after = self.tick

    def tick(self, what: str = "") -> None:
        self.step += 1
        if self.step > self.last_step:
            raise Crash(what)

    def node(self) -> Node:
        return Node(
            self.directory,
            [self.cpu, self.gpu],
            PODS,
            checkpoint=Checkpoint(self.directory, self.write),
        )

    def write(self, path: Path, data: bytes) -> None:
        self.tick("before writing")
        write_atomically(path, data)
        self.tick("after writing")


async def started(node: Node, own: Pod) -> object:
    try:
        return await node.start(own)
    except AdmissionRejected as error:
        return error.reason


async def script(node: Node, results: dict[str, object]) -> None:
    """What the kubelet does; what has been done already it does not do again."""
    for name, own in (("a", PODS[0]), ("b", PODS[1]), ("c", PODS[2])):
        if name not in results:
            results[name] = await started(node, own)
    if "a is gone" not in results:
        await node.manager.collector.release("a")
        results["a is gone"] = True
    if "d" not in results:
        results["d"] = await started(node, PODS[3])
    if "b again" not in results:
        results["b again"] = await started(node, PODS[1])


def life(world: World) -> tuple[dict[str, object], World]:
    """Until the script is done, with as many restarts as it takes."""
    results: dict[str, object] = {}
    while True:
        node = world.node()
        try:
            asyncio.run(run(node, results))
        except Crash:
            world.last_step = 10**9
        else:
            return results, world


async def run(node: Node, results: dict[str, object]) -> None:
    await node.manager.removals.deliver()
    await script(node, results)


def test_a_life_without_a_crash(tmp_path: Path) -> None:
    results, world = life(World(tmp_path, 10**9))
    assert results["a"] == {"main": "0-1"}
    assert results["b"] == results["b again"] == {"init": "2", "main": "3", "more": "4"}
    assert results["c"] == "topology_affinity"
    assert results["d"] == {"main": "0"}
    assert world.step > 30


def test_a_crash_at_any_step_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    expected, whole = life(World(tmp_path / "whole", 10**9))
    for at in range(whole.step):
        directory = tmp_path / str(at)
        directory.mkdir()
        results, world = life(World(directory, at))
        assert results == expected, f"crashed at step {at}"
        assert world.cpu.held == whole.cpu.held, f"crashed at step {at}"
        assert world.gpu.held == whole.gpu.held, f"crashed at step {at}"
        node = world.node()
        asyncio.run(all_released(node))
        assert not world.cpu.held, f"crashed at step {at}"
        assert not world.gpu.held, f"crashed at step {at}"


async def all_released(node: Node) -> None:
    for uid in list(node.store.pods):
        await node.manager.collector.release(uid)
    await node.manager.removals.deliver()
    assert not node.store.state.removals


def test_after_a_crash_at_any_step_what_was_started_is_held_and_nothing_else(
    tmp_path: Path,
) -> None:
    """Nobody asks for the interrupted pod again: its plugins are told nevertheless."""
    (tmp_path / "whole").mkdir()
    steps = life(World(tmp_path / "whole", 10**9))[1].step
    for at in range(steps):
        directory = tmp_path / str(at)
        directory.mkdir()
        world, results = World(directory, at), dict[str, object]()
        with pytest.raises(Crash):
            asyncio.run(run(world.node(), results))
        world.last_step = 10**9
        node = world.node()
        asyncio.run(as_before(node, results))
        asyncio.run(all_released(node))
        assert not world.cpu.held, f"crashed at step {at}"
        assert not world.gpu.held, f"crashed at step {at}"


async def as_before(node: Node, results: dict[str, object]) -> None:
    for own in PODS:
        found = results.get(own.uid)
        if isinstance(found, dict) and own.uid in node.store.pods:
            assert await node.start(own) == found
