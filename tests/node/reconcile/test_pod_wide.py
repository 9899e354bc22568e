"""What a pod has as a whole is followed in all its containers, and given again to all of them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from dovetail.node.common.cpus import CpuSet
from tests.node.reconcile.test_reconciler import Pools, World
from tests.support.node.fakes import PodPieces, container, pod, sandbox


class PodPools(Pools, PodPieces):
    """Tells what a pod has as a whole under no name."""


def a_world(directory: Path) -> World:
    own = pod("a", container(), container("more", 1), requests={"cpu": Fraction(2)})
    return World(directory, cpu=PodPools(aligned=False), pods=[own])


def cpus(world: World) -> dict[str, str]:
    return {each: world.runtime.cpus(f"a-{each}") for each in ("main", "more")}


async def test_a_pool_that_changed_is_applied_to_all(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    await world.start()
    assert cpus(world) == {"main": "0-1", "more": "0-1"}
    world.cpu.held["a"] = {"": CpuSet.parse("4-6")}
    await world.look()
    assert cpus(world) == {"main": "4-6", "more": "4-6"}
    assert len(world.cpu.asked("AllocateForPod")) == 1


async def test_what_the_plugin_forgot_is_allocated_again_once(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    await world.start()
    world.cpu.held.clear()
    world.cpu.held["other"] = {"main": CpuSet({0, 1})}
    for _ in range(3):
        await world.look()
    assert world.cpu.held["a"] == {"": CpuSet({2, 3})}
    assert cpus(world) == {"main": "2-3", "more": "2-3"}
    assert len(world.cpu.asked("AllocateForPod")) == 2
    state = world.node.store.pods["a"]
    assert state.pod_wide == ("cpu",)
    assert [each.missing for each in state.containers.values()] == [(), ()]


async def test_what_cannot_be_allocated_again_stays_as_it_runs(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    await world.start()
    before = world.node.store.pods["a"]
    world.cpu.held.clear()
    world.cpu.held["other"] = {"main": CpuSet(range(8))}
    world.runtime.present.append(sandbox("other"))
    for _ in range(5):
        await world.look()
    assert world.node.store.pods["a"] == before
    assert world.runtime.updates == []
