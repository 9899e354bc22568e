"""What plugins hold for pods that nobody knows is given back, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from dovetail.node.common.cpus import CpuSet
from dovetail.node.common.pods import Pod, Sandbox
from dovetail.node.wire.resource_plugin import ContainerType
from tests.node.reconcile.test_reconciler import World
from tests.support.loops import eventually
from tests.support.node.fakes import FakeRuntime, Node, Pieces, container, pod, sandbox

LOST = {"main": CpuSet([0, 1])}
"""Of a pod whose checkpoint was lost."""


async def test_of_a_pod_that_ended_it_is_given_back(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.cpu.held["lost"] = LOST
    await world.reconciler.look()
    assert not world.cpu.held
    assert not world.node.store.state.removals


async def test_of_one_that_runs_it_is_not(tmp_path: Path) -> None:
    """Its source does not list it, but the runtime has its sandbox."""
    world = World(tmp_path)
    world.cpu.held["lost"] = LOST
    world.runtime.present = [sandbox("lost")]
    for _ in range(5):
        await world.reconciler.look()
    assert world.cpu.held == {"lost": LOST}


async def test_of_one_that_is_listed_it_is_not(tmp_path: Path) -> None:
    world = World(tmp_path, "lost")
    world.cpu.held["lost"] = LOST
    for _ in range(5):
        await world.reconciler.look()
    assert world.cpu.held == {"lost": LOST}


async def test_nor_while_nobody_knows_who_is_listed(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.cpu.held["lost"] = LOST
    assert world.node.source
    world.node.source.known = False
    for _ in range(5):
        await world.reconciler.look()
    assert world.cpu.held == {"lost": LOST}


async def test_of_one_that_is_being_admitted_it_is_not(tmp_path: Path) -> None:
    """The plugin has told of it, and its second container is still to come."""
    world = World(tmp_path)
    own = pod("new", container(cpu=2), container("second", 1, cpu=2, type=ContainerType.SIDECAR))
    assert world.node.source
    world.node.source.pods["new"] = own
    go_on = asyncio.Event()
    asked = world.cpu.call

    async def held_up(method: object, question: object) -> object:
        if getattr(question, "container_name", "") == "second":
            await go_on.wait()
        return await asked(method, question)

    world.cpu.call = held_up  # type: ignore[method-assign]
    admitting = asyncio.create_task(world.node.manager.admit_pod(sandbox(own)))
    await eventually(lambda: world.cpu.held)
    world.node.source.pods.clear()
    looking = asyncio.create_task(world.reconciler.look())
    await asyncio.sleep(0.01)
    go_on.set()
    await asyncio.gather(admitting, looking)
    assert list(world.cpu.held["new"]) == ["main", "second"]
    await world.reconciler.stop()


@pytest.mark.parametrize(("period", "given_back"), [(0.005, True), (300.0, False)])
async def test_without_a_source_after_a_period_without_sandbox(
    tmp_path: Path, period: float, given_back: bool
) -> None:
    cpu = Pieces()
    cpu.held["lost"] = LOST
    collector = Node(tmp_path, [cpu], None).manager.collector
    told = {"lost": {"cpu"}}
    await collector.collect(FakeRuntime(sandbox("lost")), period, told)
    await asyncio.sleep(0.01)
    await collector.collect(FakeRuntime(), period, told)
    assert cpu.held, "it ran a moment ago"
    await asyncio.sleep(0.01)
    await collector.collect(FakeRuntime(), period, told)
    assert bool(cpu.held) is not given_back


async def test_of_one_that_came_while_it_was_looked_for_it_is_not(tmp_path: Path) -> None:
    cpu = Pieces()
    own = pod("lost", container(cpu=2))
    cpu.held["lost"] = LOST
    node = Node(tmp_path, [cpu], [own])
    assert node.source

    class Late(FakeRuntime):
        async def sandboxes(self) -> Sequence[Sandbox]:
            await node.start(own)
            return ()

    listed = node.source.pods
    node.source.active = lambda: answer(())  # type: ignore[method-assign]
    await node.manager.collector.collect(Late(), 0, {"lost": {"cpu"}})
    assert listed
    assert cpu.held == {"lost": LOST}


async def answer(pods: Sequence[Pod]) -> Sequence[Pod]:
    return pods
