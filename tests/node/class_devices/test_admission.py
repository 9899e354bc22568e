"""Pods with devices of classes at the gate: what is asked of whom, and what containers get."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dovetail.core.device import PluginOrigin
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.node.admission.configuration import AdmissionConfiguration, Outage, Scope
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.device_plugins import DeviceGrant, PluginDevice, PluginOptions
from dovetail.node.common.ports import AdmissionRejected, PluginFailure
from dovetail.node.hints.policy import TopologyPolicy
from dovetail.node.wire.resource_plugin import ContainerType
from tests.support.node.class_devices import (
    GPU,
    GPUS,
    DeviceNode,
    FakeDevicePlugin,
    FakeDevicePlugins,
    given,
    granted,
)
from tests.support.node.fakes import TWO_NODES, FakePlugin, Pieces, container, sandbox

CLASS_GPU = f"class:{GPU}"
RESTRICTED = msgspec.structs.replace(TWO_NODES, policy=TopologyPolicy.RESTRICTED)


def node(directory: Path, *devices: FakeDevicePlugin, **more: Any) -> DeviceNode:
    plugins = more.pop("plugins", [Pieces()])
    more.setdefault("device_wait", 0.05)
    return DeviceNode(directory, plugins, FakeDevicePlugins(*devices), **more)


def one_gpu(uid: str, id_: str, **more: Any) -> Any:
    return given(uid, container("main", cpu=1, **{GPUS: 1}), held={"main": [id_]}, **more)


def nothing_held(here: DeviceNode) -> bool:
    state = here.store.state
    held = any(here.devices.held.values())
    return not held and not state.pods and not state.removals and not state.ended_devices


async def test_a_device_is_allocated_once_and_injected_at_every_start(tmp_path: Path) -> None:
    gpu = FakeDevicePlugin()
    gpu.options = PluginOptions(pre_start_required=True, deallocates=True)
    here, own = node(tmp_path, gpu), one_gpu("a", "GPU-2:1")
    await here.admit(own)
    assert here.devices.held == {GPU: {"GPU-2:1"}}
    first = await here.settings(own)
    expected = granted(["GPU-2:1"])
    assert first.envs == expected.envs
    assert first.annotations == expected.annotations
    assert first.mounts == expected.mounts
    assert first.devices == expected.devices
    assert first.cdi_devices == expected.cdi_devices
    assert first.cpus == "4", "on the NUMA node of the device"
    assert await here.settings(own) == first
    again = node(tmp_path, gpu, pods=[own])
    await again.admit(own)
    assert await again.settings(own) == first
    assert again.devices.held == {GPU: {"GPU-2:1"}}, "from the checkpoint"
    assert gpu.asked("Allocate") == [("GPU-2:1",)]
    assert gpu.asked("PreStartContainer") == [("GPU-2:1",)] * 3
    await again.end(own)
    assert gpu.asked("Deallocate") == [("GPU-2:1",)]
    assert nothing_held(again)


async def test_each_container_is_asked_for_with_its_own_devices(tmp_path: Path) -> None:
    gpu = FakeDevicePlugin()
    here = node(tmp_path, gpu, configuration=RESTRICTED)
    own = given(
        "a",
        container("init", cpu=1, type=ContainerType.INIT, **{GPUS: 1}),
        container("main", cpu=1, **{GPUS: 1}),
        container("more", 1, cpu=1, type=ContainerType.SIDECAR, **{GPUS: 2}),
        held={"main": ["GPU-0"], "more": ["GPU-2:1", "GPU-3:1"]},
    )
    await here.admit(own)
    assert gpu.asked("Allocate") == [("GPU-0",), ("GPU-0",), ("GPU-2:1", "GPU-3:1")]
    assert (await here.settings(own, "init")).envs == {"GPUS": "GPU-0"}
    assert (await here.settings(own, "main")).envs == {"GPUS": "GPU-0"}
    assert (await here.settings(own, "more")).envs == {"GPUS": "GPU-2:1,GPU-3:1"}
    await here.end(own)
    assert gpu.asked("Deallocate") == [("GPU-0", "GPU-2:1", "GPU-3:1")]


@pytest.mark.parametrize(
    ("change", "reason", "words"),
    [
        (lambda gpu: gpu.devices.pop("GPU-0"), "device_unknown", "its plugin does not list it"),
        (
            lambda gpu: gpu.devices.update({"GPU-0": PluginDevice("GPU-0", healthy=False)}),
            "device_unhealthy",
            "its plugin says that it is unhealthy",
        ),
        (lambda gpu: gpu.elsewhere.add("GPU-0"), "device_taken", "asked the kubelet"),
        (
            lambda gpu: setattr(gpu, "held_elsewhere_unknown", "it does not answer"),
            "device_taken",
            "it does not answer",
        ),
        (lambda gpu: setattr(gpu, "up", False), "plugin_down", "is not there"),
        (lambda gpu: setattr(gpu, "failure", PluginFailure.TIMEOUT), "plugin_timeout", "fails"),
        (lambda gpu: setattr(gpu, "failure", PluginFailure.GARBAGE), "plugin_garbage", "fails"),
        (lambda gpu: setattr(gpu, "failure", PluginFailure.REFUSED), "plugin_refused", "fails"),
    ],
)
async def test_what_cannot_be_given_is_refused_with_the_reason_and_nothing_is_held(
    tmp_path: Path, change: Any, reason: str, words: str
) -> None:
    gpu, cpu = FakeDevicePlugin(), Pieces()
    here = node(tmp_path, gpu, plugins=[cpu])
    change(gpu)
    refused = await here.refusal(one_gpu("a", "GPU-0"))
    assert (refused.reason, words in str(refused)) == (reason, True), str(refused)
    gpu.up = True
    await here.manager.removals.deliver()
    assert nothing_held(here)
    assert not cpu.held
    assert not gpu.given


async def test_a_plugin_that_never_registered_is_down(tmp_path: Path) -> None:
    refused = await node(tmp_path).refusal(one_gpu("a", "GPU-0"))
    assert refused.reason == "plugin_down"
    assert str(refused) == "the device plugin for vendor.com/gpu is not there"


async def test_a_device_that_another_pod_has_is_taken_until_that_is_over(tmp_path: Path) -> None:
    gpu = FakeDevicePlugin()
    here, first = node(tmp_path, gpu), one_gpu("a", "GPU-0")
    await here.admit(first)
    refused = await here.refusal(one_gpu("b", "GPU-0"))
    assert refused.reason == "device_taken"
    assert refused.later
    assert str(refused) == "device GPU-0 of vendor.com/gpu is held by pod default/pod-a"
    assert gpu.asked("Allocate") == [("GPU-0",)]
    await here.end(first)
    await here.admit(one_gpu("b", "GPU-0"))
    assert gpu.asked("Allocate") == [("GPU-0",), ("GPU-0",)]


async def test_who_comes_before_the_end_of_the_one_before_waits_for_it(tmp_path: Path) -> None:
    gpu = FakeDevicePlugin()
    here, first = node(tmp_path, gpu, device_wait=60.0), one_gpu("a", "GPU-0")
    await here.admit(first)
    waiting = asyncio.create_task(here.admit(one_gpu("b", "GPU-0")))
    await here.manager.collector.look_soon.wait()
    assert not waiting.done()
    await here.end(first)
    await waiting
    assert {uid for uid, pod in here.store.pods.items() if pod.admitted} == {"b"}


async def test_a_device_is_free_only_when_its_plugin_heard_of_the_end(tmp_path: Path) -> None:
    gpu = FakeDevicePlugin()
    here, first = node(tmp_path, gpu), one_gpu("a", "GPU-0")
    await here.admit(first)
    gpu.up = False
    await here.end(first)
    assert here.devices.held == {GPU: {"GPU-0"}}
    gpu.up = True
    again = node(tmp_path, gpu)
    refused = await again.refusal(one_gpu("b", "GPU-0"))
    assert "a pod that went (uid a)" in str(refused)
    await again.manager.removals.deliver()
    assert gpu.asked("Deallocate") == [("GPU-0",)]
    await again.admit(one_gpu("b", "GPU-0"))


async def test_a_plugin_that_does_not_take_one_back_hears_of_the_others(tmp_path: Path) -> None:
    gpu = FakeDevicePlugin()
    gpu.refuses_back = {"GPU-0"}
    here, first, second, third = (
        node(tmp_path, gpu),
        one_gpu("a", "GPU-0"),
        one_gpu("b", "GPU-1"),
        one_gpu("c", "GPU-2:1"),
    )
    for each in (first, second, third):
        await here.admit(each)
    await here.end(first)
    await here.end(second)
    assert here.devices.held == {GPU: {"GPU-0", "GPU-2:1"}}
    gpu.up = False
    await here.end(third)
    gpu.up = True
    again = node(tmp_path, gpu)
    await again.manager.removals.deliver()
    assert again.devices.held == {GPU: {"GPU-0"}}, "the first in order, and still refused"


async def test_a_plugin_without_deallocate_is_not_told(tmp_path: Path) -> None:
    gpu = FakeDevicePlugin()
    gpu.options = PluginOptions()
    here, own = node(tmp_path, gpu), one_gpu("a", "GPU-0")
    await here.admit(own)
    await here.end(own)
    assert nothing_held(here)
    assert gpu.asked("Deallocate") == []


async def test_a_pod_is_let_in_with_devices_and_cpus_or_with_neither(tmp_path: Path) -> None:
    gpu = FakeDevicePlugin()
    here = node(tmp_path, gpu)
    own = given("a", container("main", cpu=9, **{GPUS: 1}), held={"main": ["GPU-0"]})
    refused = await here.refusal(own)
    assert refused.reason == "topology_affinity"
    assert nothing_held(here)
    assert gpu.calls == []
    await here.admit(one_gpu("b", "GPU-0"))


async def test_a_device_that_vanishes_keeps_its_container_from_starting(tmp_path: Path) -> None:
    gpu = FakeDevicePlugin()
    here, own = node(tmp_path, gpu), one_gpu("a", "GPU-0")
    await here.admit(own)
    there = gpu.devices.pop("GPU-0")
    with pytest.raises(AdmissionRejected, match="does not list it") as refused:
        await here.settings(own)
    assert refused.value.reason == "device_unknown"
    gpu.devices["GPU-0"] = there
    await here.settings(own)
    gpu.up = False
    await here.settings(own)
    gpu.options = PluginOptions(pre_start_required=True)
    with pytest.raises(AdmissionRejected) as refused:
        await here.settings(own)
    assert refused.value.reason == "plugin_down"


async def test_nobody_starts_without_the_device_that_was_chosen(tmp_path: Path) -> None:
    """Of roles that fail open neither: a device is not brought in later, as CPUs are."""
    gpu = FakeDevicePlugin()
    gpu.up = False
    open_ = msgspec.structs.replace(TWO_NODES, outage=Outage.FAIL_OPEN)
    here, own = node(tmp_path, gpu, configuration=open_), one_gpu("a", "GPU-0")
    refused = await here.refusal(own)
    assert (refused.reason, refused.later) == ("plugin_down", True)
    assert nothing_held(here)
    gpu.up = True
    await here.admit(own)
    assert (await here.settings(own)).envs == {"GPUS": "GPU-0"}


async def test_devices_that_contradict_each_other_are_told(tmp_path: Path) -> None:
    def grant(value: str) -> Any:
        return lambda ids: DeviceGrant(envs={"VISIBLE": value})

    gpu, fpga = FakeDevicePlugin(), FakeDevicePlugin("vendor.com/fpga", {"F": [0]})
    gpu.grant, fpga.grant = grant("1"), grant("2")
    here = node(tmp_path, gpu, fpga)
    own = given(
        "a",
        container("main", **{GPUS: 2}),
        held={"main": ["GPU-0", "F"]},
        origins={"GPU-0": PluginOrigin(GPU, "GPU-0"), "F": PluginOrigin("vendor.com/fpga", "F")},
    )
    refused = await here.refusal(own)
    assert refused.reason == "conflicting_settings"
    assert "class:vendor.com/fpga and class:vendor.com/gpu" in str(refused)
    assert nothing_held(here)


# Topology.


@pytest.mark.parametrize("policy", [TopologyPolicy.RESTRICTED, TopologyPolicy.SINGLE_NUMA_NODE])
async def test_cpus_are_on_the_node_of_the_device_or_the_pod_is_refused(
    tmp_path: Path, policy: TopologyPolicy
) -> None:
    aligned = msgspec.structs.replace(TWO_NODES, policy=policy)
    gpu = FakeDevicePlugin(devices={f"G{number}": [1] for number in range(3)})
    here = node(tmp_path, gpu, configuration=aligned)
    for number, cpus in enumerate(["4-5", "6-7"]):
        own = container("main", cpu=2, **{GPUS: 1})
        each = given(f"{number}", own, held={"main": [f"G{number}"]})
        await here.admit(each)
        assert (await here.settings(each)).cpus == cpus
    full = given("c", container("main", cpu=2, **{GPUS: 1}), held={"main": ["G2"]})
    refused = await here.refusal(full)
    assert refused.reason == "topology_affinity"
    assert "class:vendor.com/gpu" in str(refused), str(refused)
    assert gpu.given == {"G0", "G1"}
    await here.end(here.source.pods["0"])
    await here.admit(full)


async def test_devices_of_two_nodes_do_not_fit_on_a_single_one(tmp_path: Path) -> None:
    here = node(tmp_path, FakeDevicePlugin())
    own = given("a", container("main", cpu=1, **{GPUS: 2}), held={"main": ["GPU-0", "GPU-2:1"]})
    refused = await here.refusal(own)
    assert refused.reason == "topology_affinity"
    assert nothing_held(here)


async def test_all_containers_of_a_pod_are_near_to_all_of_its_devices(tmp_path: Path) -> None:
    whole = msgspec.structs.replace(TWO_NODES, scope=Scope.POD)
    here = node(tmp_path, FakeDevicePlugin(), configuration=whole)
    own = given(
        "a",
        container("main", cpu=1, **{GPUS: 1}),
        container("more", 1, cpu=1, type=ContainerType.SIDECAR),
        held={"main": ["GPU-2:1"]},
    )
    await here.admit(own)
    assert (await here.settings(own, "main")).cpus == "4"
    assert (await here.settings(own, "more")).cpus == "5"
    apart = given(
        "b",
        container("main", cpu=1, **{GPUS: 1}),
        container("more", 1, cpu=1, type=ContainerType.SIDECAR, **{GPUS: 1}),
        held={"main": ["GPU-0"], "more": ["GPU-3:1"]},
    )
    assert (await here.refusal(apart)).reason == "topology_affinity"


# Open IDs.


def two_of_the_pool(uid: str) -> Any:
    return given(
        uid,
        container("init", type=ContainerType.INIT, **{GPUS: 1}),
        container("main", cpu=1, **{GPUS: 2}),
        held={},
        holdings=[DeviceHolding("pool", 2, "gpu", "main")],
        origins={"pool": PluginOrigin(GPU, "")},
    )


async def test_ids_that_were_left_open_are_chosen_by_the_plugin(tmp_path: Path) -> None:
    gpu = FakeDevicePlugin()
    gpu.options = PluginOptions(preferred_allocation=True, deallocates=True)
    gpu.prefers = ["GPU-3:1", "GPU-2:1"]
    here, own = node(tmp_path, gpu), two_of_the_pool("a")
    await here.admit(own)
    first = (await here.settings(own, "main")).envs["GPUS"]
    assert first == "GPU-2:1,GPU-3:1"
    assert (await here.settings(own, "init")).envs["GPUS"] in first.split(",")
    gpu.prefers = ["GPU-0", "GPU-3:1"]
    other = two_of_the_pool("b")
    await here.admit(other)
    assert (await here.settings(other, "main")).envs["GPUS"] == "GPU-0,GPU-1", "it may not choose"
    refused = await here.refusal(two_of_the_pool("c"))
    assert refused.reason == "device_taken"
    assert "2 of vendor.com/gpu are wanted, and 0 of 4 are free" in str(refused)
    await here.end(own)
    assert gpu.asked("Deallocate") == [("GPU-2:1", "GPU-3:1")]


async def test_without_a_preference_devices_of_one_numa_node_are_chosen(tmp_path: Path) -> None:
    gpu = FakeDevicePlugin(devices={"a": [0], "b": [1], "c": [1], "d": []})
    here, own = node(tmp_path, gpu), two_of_the_pool("a")
    await here.admit(own)
    assert (await here.settings(own, "main")).envs["GPUS"] == "b,c"
    assert gpu.asked("GetPreferredAllocation") == []


async def test_many_at_once_never_have_the_same(tmp_path: Path) -> None:
    gpu = FakeDevicePlugin(devices={f"G{each}": [] for each in range(20)})
    gpu.options = PluginOptions(preferred_allocation=True)
    here = node(tmp_path, gpu, plugins=[])
    pods = [two_of_the_pool(f"{each}") for each in range(10)]
    await asyncio.gather(*(here.admit(each) for each in pods))
    held = [id_ for pod in here.store.pods.values() for id_ in pod.devices[CLASS_GPU].values()]
    assert len(held) == len({*held}) == 20


# What is in the way.


class NoInjector:
    def __init__(self, why: str, *, of_cdi: bool = False) -> None:
        self.why, self.of_cdi = why, of_cdi

    async def why_not(self, settings: ContainerSettings) -> str | None:
        return self.why if settings.cdi_devices or not self.of_cdi else None


@pytest.mark.parametrize("of_cdi", [False, True])
async def test_what_the_runtime_would_leave_out_keeps_the_pod_out(
    tmp_path: Path, *, of_cdi: bool
) -> None:
    gpu = FakeDevicePlugin()
    here = node(tmp_path, gpu)
    here.manager.attach(NoInjector("it leaves it out", of_cdi=of_cdi))
    refused = await here.refusal(one_gpu("a", "GPU-0"))
    assert (refused.reason, str(refused)) == ("cannot_inject", "it leaves it out")
    assert bool(gpu.asked("Allocate")) is of_cdi
    assert nothing_held(here)
    assert not gpu.given


async def test_a_plugin_that_does_not_know_of_choices_is_not_relied_on(tmp_path: Path) -> None:
    """A resource plugin of somebody else, in the place of ours."""

    class Nic(FakePlugin):
        def Allocate(self, question: Any) -> Any:
            return Pieces("NIC", {0: [0]}, property_name="").Allocate(question)

    here = node(tmp_path, plugins=[Nic("NIC")])
    own = given("a", container("main", **{GPUS: 1}), held={"main": ["eth0"]}, resource="nic")
    refused = await here.refusal(own)
    assert refused.reason == "plugin_garbage"
    assert "was asked for eth0" in str(refused)
    (tmp_path / "other").mkdir()
    nobody = node(tmp_path / "other", plugins=[])
    refused = await nobody.refusal(own)
    assert refused.reason == "plugin_down"
    assert "there is no plugin for NIC on this node" in str(refused)


async def test_pods_that_are_skipped_have_their_devices_all_the_same(tmp_path: Path) -> None:
    gpu, cpu = FakeDevicePlugin(), Pieces()
    skipping = msgspec.structs.replace(TWO_NODES, skip_owners=frozenset({"DaemonSet"}))
    here = node(tmp_path, gpu, plugins=[cpu], configuration=skipping)
    own = one_gpu("a", "GPU-0", owner_kind="DaemonSet")
    await here.admit(own)
    settings = await here.settings(own)
    assert (settings.envs, settings.cpus) == ({"GPUS": "GPU-0"}, "")
    assert not cpu.held


async def test_a_container_that_asks_the_kubelet_for_the_same_is_no_business_of_ours(
    tmp_path: Path,
) -> None:
    gpu = FakeDevicePlugin()
    here = node(tmp_path, gpu)
    own = given("a", container("main", **{GPU: 1}), held={}, holdings=[])
    await here.admit(own)
    assert await here.settings(own) == ContainerSettings()
    assert gpu.calls == []


def test_the_configuration_needs_nothing_for_devices() -> None:
    assert "device" not in " ".join(AdmissionConfiguration.__struct_fields__)


async def test_the_sandbox_alone_tells_enough_to_refuse(tmp_path: Path) -> None:
    """Where nobody knows pods but the runtime."""
    own = one_gpu("a", "GPU-0")
    here = node(tmp_path, FakeDevicePlugin())
    here.manager.gate._source = None
    with pytest.raises(AdmissionRejected, match=r"pods\.source is none"):
        await here.manager.admit_pod(sandbox(own))
