"""Devices of classes in the pod resources API, and as people are shown them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from dovetail.cli.agent import explain, state
from dovetail.node.common.device_plugins import PluginDevice
from dovetail.node.hints.policy import TopologyPolicy
from dovetail.node.wire import pod_resources as wire
from tests.support.node.class_devices import (
    GPU,
    GPUS,
    DeviceNode,
    FakeDevicePlugin,
    FakeDevicePlugins,
    given,
)
from tests.support.node.fakes import TWO_NODES, Pieces, container


async def a_node(directory: Path, gpu: FakeDevicePlugin) -> DeviceNode:
    here = DeviceNode(
        directory,
        [Pieces()],
        FakeDevicePlugins(gpu),
        configuration=msgspec.structs.replace(TWO_NODES, policy=TopologyPolicy.BEST_EFFORT),
    )
    held = {"main": ["GPU-0", "GPU-2:1", "GPU-3:1"]}
    await here.admit(given("a", container("main", cpu=1, **{GPUS: 3}), held=held))
    return here


def told(devices: Any) -> list[tuple[str, tuple[str, ...], list[int]]]:
    return [
        (each.resource_name, each.device_ids, [node.ID for node in each.topology.nodes])
        if each.topology
        else (each.resource_name, each.device_ids, [])
        for each in devices
    ]


async def asked(here: DeviceNode, method: Any, question: Any) -> Any:
    served = {each.method.name: each.handler for each in here.manager.pod_resources()}
    return await served[method.name](question)


async def test_devices_are_listed_by_resource_and_node(tmp_path: Path) -> None:
    gpu = FakeDevicePlugin()
    here = await a_node(tmp_path, gpu)
    answer = await asked(here, wire.LIST, wire.ListPodResourcesRequest())
    (main,) = answer.pod_resources[0].containers
    expected = [(GPU, ("GPU-0",), [0]), (GPU, ("GPU-2:1", "GPU-3:1"), [1])]
    assert told(main.devices) == expected
    assert [each.resource_name for each in main.resources] == ["cpu"]
    gpu.devices["GPU-1"] = PluginDevice("GPU-1", healthy=False)
    allocatable = await asked(
        here, wire.GET_ALLOCATABLE_RESOURCES, wire.AllocatableResourcesRequest()
    )
    assert told(allocatable.devices) == expected


async def test_devices_are_listed_while_their_plugin_is_unknown(tmp_path: Path) -> None:
    here = await a_node(tmp_path, FakeDevicePlugin())
    here.devices.known.clear()
    answer = await asked(here, wire.LIST, wire.ListPodResourcesRequest())
    (main,) = answer.pod_resources[0].containers
    assert told(main.devices) == [(GPU, ("GPU-0", "GPU-2:1", "GPU-3:1"), [0, 1])]


async def test_people_see_which_device_and_what_came_with_it(tmp_path: Path) -> None:
    here = await a_node(tmp_path, FakeDevicePlugin())
    text = "\n".join(state.lines(dict(here.manager.state())))
    assert "class:vendor.com/gpu" in text
    assert "device GPU-0, GPU-2:1, GPU-3:1" in text
    assert "cdi vendor.com/gpu=GPU-0" in text
    assert "/dev/GPU-0" in text
    found = here.manager.explanation("pod-a")
    assert found is not None
    text = "\n".join(explain.lines(dict(found)))
    assert "class:vendor.com/gpu 3" in text
    assert "the plugin offered node 0-1 (preferred)" in text
    assert "given 3: device GPU-0, GPU-2:1, GPU-3:1" in text
