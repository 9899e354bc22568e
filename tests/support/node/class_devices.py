"""Device plugins in memory, and pods that were given their devices by class."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dovetail.core.device import Origin, PluginOrigin
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.devices.allocation_document import ALLOCATION, write_allocation
from dovetail.node.admission.configuration import AdmissionConfiguration
from dovetail.node.agent.manager import Manager
from dovetail.node.class_devices.source import ClassDevices
from dovetail.node.class_devices.trust import Trust, Trusting
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.device_plugins import DeviceGrant, PluginDevice, PluginOptions
from dovetail.node.common.pods import ContainerSpec, Pod
from dovetail.node.common.ports import AdmissionRejected, PluginError, PluginFailure
from dovetail.node.state.checkpoint import Checkpoint
from dovetail.node.state.store import StateStore
from dovetail.node.wire.resource_plugin import DeviceSpec, Mount
from dovetail.podfit.pod_sum import CLASS_PREFIX
from tests.support.node.fakes import (
    TWO_NODES,
    FakePlugin,
    FakePlugins,
    FakeSource,
    Node,
    pod,
    sandbox,
)

GPU = "vendor.com/gpu"
NODE = "here"


class FakeDevicePlugin:
    """Two GPUs on each of two NUMA nodes; it remembers what it was asked, and what it gave."""

    def __init__(self, resource: str = GPU, devices: Mapping[str, Sequence[int]] | None = None):
        self.resource = resource
        numa = devices or {"GPU-0": [0], "GPU-1": [0], "GPU-2:1": [1], "GPU-3:1": [1]}
        self.devices: dict[str, PluginDevice] = {
            id_: PluginDevice(id_, numa_nodes=tuple(nodes)) for id_, nodes in numa.items()
        }
        self.options = PluginOptions(deallocates=True)
        self.up = True
        self.down_since: float | None = None
        self.held_elsewhere_unknown = ""
        self.elsewhere: set[str] = set()
        self.failure: PluginFailure | None = None
        self.calls: list[tuple[str, tuple[str, ...]]] = []
        self.refuses_back: set[str] = set()
        """Deallocate fails for these."""
        self.given: set[str] = set()
        """What it gave and was not given back: an ID that is given twice is a mistake."""
        self.tick: Callable[[str], None] = lambda what: None
        self.prefers: Sequence[str] = ()
        self.grant: Callable[[Sequence[str]], DeviceGrant] = granted

    def held_elsewhere(self, ids: Collection[str]) -> Sequence[str]:
        return sorted(self.elsewhere & {*ids})

    async def allocate(self, ids: Sequence[str]) -> DeviceGrant:
        await self._asked("Allocate", ids)
        self.given |= {*ids}
        self.tick("allocated")
        return self.grant(ids)

    async def pre_start(self, ids: Sequence[str]) -> None:
        await self._asked("PreStartContainer", ids)

    async def preferred(
        self, available: Collection[str], must_include: Collection[str], size: int
    ) -> Sequence[str]:
        assert not must_include
        await self._asked("GetPreferredAllocation", sorted(available))
        return self.prefers or sorted(available)[-size:]

    async def deallocate(self, ids: Sequence[str]) -> None:
        await self._asked("Deallocate", ids)
        if self.refuses_back & {*ids}:
            raise PluginError(self.resource, PluginFailure.REFUSED, f"what are {ids}?")
        self.given -= {*ids}
        self.tick("deallocated")

    def asked(self, call: str) -> list[tuple[str, ...]]:
        return [ids for name, ids in self.calls if name == call]

    async def _asked(self, call: str, ids: Sequence[str]) -> None:
        self.tick(call)
        await asyncio.sleep(0)
        if not self.up:
            raise PluginError(self.resource, PluginFailure.DOWN, f"{self.resource} is not there")
        self.calls.append((call, tuple(ids)))
        if self.failure and call != "Deallocate":
            raise PluginError(self.resource, self.failure, f"{self.resource} fails")


def granted(ids: Sequence[str]) -> DeviceGrant:
    return DeviceGrant(
        envs={"GPUS": ",".join(ids)},
        annotations={"vendor.com/gpus": ",".join(ids)},
        mounts=(Mount(container_path="/opt/gpu", host_path="/opt/gpu", read_only=True),),
        devices=tuple(
            DeviceSpec(container_path=f"/dev/{each}", host_path="/dev/null", permissions="rw")
            for each in ids
        ),
        cdi_devices=tuple(f"vendor.com/gpu={each}" for each in ids),
    )


class FakeDevicePlugins:
    def __init__(self, *plugins: FakeDevicePlugin) -> None:
        self.known = {each.resource: each for each in plugins}
        self.held: dict[str, set[str]] = {}

    def of(self, resource: str) -> FakeDevicePlugin | None:
        return self.known.get(resource)

    def all(self) -> Sequence[FakeDevicePlugin]:
        return [self.known[each] for each in sorted(self.known)]

    def set_held(self, resource: str, ids: Collection[str]) -> None:
        self.held[resource] = {*ids}


def given(
    uid: str,
    *containers: ContainerSpec,
    held: Mapping[str, Sequence[str]],
    resource: str = GPU,
    origins: Mapping[str, Origin] | None = None,
    holdings: Sequence[DeviceHolding] | None = None,
    node: str = NODE,
    **more: Any,
) -> Pod:
    """A pod that holds these devices, by container; each device is called as its ID is."""
    listed = holdings or [
        DeviceHolding(id_, 1, "gpu", name) for name, ids in held.items() for id_ in ids
    ]
    from_plugins = {each.device: PluginOrigin(resource, each.device) for each in listed}
    text = write_allocation(node, listed, origins or from_plugins)
    annotations = {**more.pop("annotations", {}), ALLOCATION: text}
    return pod(uid, *containers, annotations=annotations, **more)


GPUS = f"{CLASS_PREFIX}gpu"
"""What a container asks for."""


class DeviceNode(Node):
    """A node with device plugins, whose pods are believed."""

    source: FakeSource

    def __init__(
        self,
        directory: Path,
        plugins: Sequence[FakePlugin],
        devices: FakeDevicePlugins,
        *,
        pods: Sequence[Pod] = (),
        configuration: AdmissionConfiguration = TWO_NODES,
        checkpoint: Checkpoint | None = None,
        trust: Trust | None = None,
        **timing: Any,
    ) -> None:
        self.plugins, self.devices = FakePlugins(*plugins), devices
        self.source = FakeSource(*pods)
        self.store = StateStore(checkpoint or Checkpoint(directory))
        source = ClassDevices(self.source, trust or Trusting(), NODE)
        self.manager = Manager(
            configuration, self.plugins, self.store, source, devices=devices, **timing
        )

    async def settings(self, own: Pod, name: str = "main") -> ContainerSettings:
        """Of a container that starts, after its pod was let in."""
        return await self.manager.admit_container(sandbox(own), name, ContainerSettings())

    async def admit(self, own: Pod) -> None:
        self.source.pods[own.uid] = own
        await self.manager.admit_pod(sandbox(own))

    async def refusal(self, own: Pod) -> AdmissionRejected:
        with pytest.raises(AdmissionRejected) as refused:
            await self.admit(own)
        return refused.value

    async def end(self, own: Pod) -> None:
        self.source.pods.pop(own.uid, None)
        await self.manager.collector.release(own.uid)
