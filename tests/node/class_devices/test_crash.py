"""The agent may end at any point: no device is given twice, and none is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dovetail.core.device import PluginOrigin
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.node.common.pods import Pod
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.sdk.files import write_atomically
from dovetail.node.state.checkpoint import Checkpoint
from dovetail.node.wire.resource_plugin import ContainerType
from tests.support.node.class_devices import (
    GPU,
    GPUS,
    DeviceNode,
    FakeDevicePlugin,
    FakeDevicePlugins,
    given,
)
from tests.support.node.fakes import Pieces, container, sandbox

PODS = {
    "a": given("a", container("main", cpu=2, **{GPUS: 1}), held={"main": ["GPU-0"]}),
    "b": given(
        "b",
        container("init", cpu=1, type=ContainerType.INIT, **{GPUS: 1}),
        container("main", cpu=1, **{GPUS: 1}),
        container("more", 1, cpu=1, type=ContainerType.SIDECAR, **{GPUS: 1}),
        held={"main": ["GPU-2:1"], "more": ["GPU-3:1"]},
    ),
    "taken": given("taken", container("main", cpu=1, **{GPUS: 1}), held={"main": ["GPU-0"]}),
    "too big": given("too big", container("main", cpu=9, **{GPUS: 1}), held={"main": ["GPU-1"]}),
    "next": given("next", container("main", cpu=1, **{GPUS: 1}), held={"main": ["GPU-0"]}),
    "open": given(
        "open",
        container("main", **{GPUS: 1}),
        held={},
        holdings=[DeviceHolding("pool", 1, "gpu", "main")],
        origins={"pool": PluginOrigin(GPU, "")},
    ),
}


class Crash(BaseException):
    """Nothing runs after that: whoever tries meets it again."""


class DeviceWorld:
    """What outlives the agent: the plugins' own state and the directory."""

    def __init__(self, directory: Path, last_step: int) -> None:
        self.directory, self.last_step, self.step = directory, last_step, 0
        self.cpu, self.gpu = Pieces(), FakeDevicePlugin()
        self.cpu.before = self.cpu.after = self.gpu.tick = self.tick
        self.running: dict[str, str] = {}
        """Devices inside containers: by ID, the pod."""

    def tick(self, what: str = "") -> None:
        self.step += 1
        if self.step > self.last_step:
            raise Crash(what)

    def node(self) -> DeviceNode:
        return DeviceNode(
            self.directory,
            [self.cpu],
            FakeDevicePlugins(self.gpu),
            pods=list(PODS.values()),
            checkpoint=Checkpoint(self.directory, self.write),
            device_wait=0.0,
        )

    def write(self, path: Path, data: bytes) -> None:
        self.tick("before writing")
        write_atomically(path, data)
        self.tick("after writing")

    def started(self, uid: str, ids: str) -> None:
        for each in ids.split(","):
            assert self.running.setdefault(each, uid) == uid, f"{each} is in two pods"
            assert each in self.gpu.given, f"{each} is in a container, and its plugin knows nothing"

    def ended(self, uid: str) -> None:
        self.running = {each: holder for each, holder in self.running.items() if holder != uid}


async def started(world: DeviceWorld, node: DeviceNode, own: Pod) -> object:
    found = {}
    try:
        await node.manager.admit_pod(sandbox(own))
        for each in own.containers:
            settings = await node.settings(own, each.name)
            found[each.name] = settings.envs["GPUS"]
            world.started(own.uid, found[each.name])
    except AdmissionRejected as error:
        return error.reason
    return found


async def script(world: DeviceWorld, node: DeviceNode, results: dict[str, object]) -> None:
    """What the kubelet does; what has been done already it does not do again."""
    await node.manager.removals.deliver()
    for name in ("a", "b", "taken", "too big"):
        if name not in results:
            results[name] = await started(world, node, PODS[name])
    if "a is gone" not in results:
        # The container is over before the agent can know that its pod is.
        world.ended("a")
        await node.manager.collector.release("a")
        results["a is gone"] = True
    await node.manager.removals.deliver()
    for name in ("next", "open"):
        if name not in results:
            results[name] = await started(world, node, PODS[name])
    if "b again" not in results:
        results["b again"] = await started(world, node, PODS["b"])


def life(world: DeviceWorld, results: dict[str, object]) -> None:
    """Until the script is done, with as many restarts as it takes."""
    while True:
        try:
            asyncio.run(script(world, world.node(), results))
        except Crash:
            world.last_step = 10**9
        else:
            return


EXPECTED = {
    "a": {"main": "GPU-0"},
    "b": {"init": "GPU-2:1", "main": "GPU-2:1", "more": "GPU-3:1"},
    "taken": "device_taken",
    "too big": "topology_affinity",
    "a is gone": True,
    "next": {"main": "GPU-0"},
    "open": {"main": "GPU-1"},
    "b again": {"init": "GPU-2:1", "main": "GPU-2:1", "more": "GPU-3:1"},
}


def test_a_crash_at_any_step_gives_no_device_twice_and_loses_none(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    whole = DeviceWorld(tmp_path / "whole", 10**9)
    found: dict[str, object] = {}
    life(whole, found)
    assert found == EXPECTED
    assert whole.step > 50
    for at in range(whole.step):
        directory = tmp_path / str(at)
        directory.mkdir()
        world, results = DeviceWorld(directory, at), dict[str, object]()
        life(world, results)
        assert results == EXPECTED, f"crashed at step {at}"
        assert world.gpu.given == whole.gpu.given, f"crashed at step {at}"
        node = world.node()
        assert node.devices.held == {GPU: world.gpu.given}, f"crashed at step {at}"
        asyncio.run(all_released(node))
        assert not world.gpu.given, f"crashed at step {at}"
        assert not world.cpu.held, f"crashed at step {at}"


def test_after_a_crash_at_any_step_the_interrupted_pod_holds_nothing(tmp_path: Path) -> None:
    """Nobody asks for it again: its plugins are told nevertheless."""
    (tmp_path / "whole").mkdir()
    whole = DeviceWorld(tmp_path / "whole", 10**9)
    life(whole, {})
    for at in range(whole.step):
        directory = tmp_path / str(at)
        directory.mkdir()
        world, results = DeviceWorld(directory, at), dict[str, object]()
        try:
            asyncio.run(script(world, world.node(), results))
        except Crash:
            world.last_step = 10**9
        node = world.node()
        asyncio.run(delivered(node))
        held = {id_ for ids in held_by(node).values() for id_ in ids}
        assert node.devices.held.get(GPU, set()) == held, f"crashed at step {at}"
        assert world.gpu.given == held, f"crashed at step {at}"
        assert world.running.keys() <= held, f"crashed at step {at}"


async def delivered(node: DeviceNode) -> None:
    await node.manager.removals.deliver()
    assert not node.store.state.removals
    assert not node.store.state.ended_devices


def held_by(node: DeviceNode) -> dict[str, set[str]]:
    return {
        uid: {id_ for own in pod.devices.values() for id_ in own.values()}
        for uid, pod in node.store.pods.items()
    }


async def all_released(node: DeviceNode) -> None:
    for uid in list(node.store.pods):
        await node.manager.collector.release(uid)
    await delivered(node)
