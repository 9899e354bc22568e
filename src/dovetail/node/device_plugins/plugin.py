"""A device plugin as the agent has it: up or down, its devices, and calls of it with deadlines.

One object stands for the resource, whichever process serves it; its follower attaches and detaches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import grpc.aio
import msgspec

from dovetail.node.common.device_plugins import DeviceGrant, PluginDevice, PluginOptions
from dovetail.node.common.ports import PluginError, PluginFailure
from dovetail.node.device_plugins.changes import ChangeFeed
from dovetail.node.device_plugins.grants import grant_of, preferred_of
from dovetail.node.device_plugins.holders import PluginDeviceHolders
from dovetail.node.device_plugins.limits import DevicePluginDeadlines
from dovetail.node.device_plugins.metrics import DEVICE_PLUGIN_CALLS, DEVICE_PLUGINS_UP
from dovetail.node.registry.endpoint import ask, failure_of
from dovetail.node.wire.device_plugin import (
    ALLOCATE,
    DEALLOCATE,
    GET_PREFERRED_ALLOCATION,
    PRE_START_CONTAINER,
    AllocateRequest,
    ContainerAllocateRequest,
    ContainerPreferredAllocationRequest,
    DeallocateRequest,
    DevicePluginOptions,
    PreferredAllocationRequest,
    PreStartContainerRequest,
)
from dovetail.wire.codec import BadMessage
from dovetail.wire.rpc import A, Method, Q


class KnownDevicePlugin:
    """A `device_plugins.DevicePlugin`."""

    def __init__(
        self,
        resource: str,
        options: PluginOptions,
        deadlines: DevicePluginDeadlines,
        clock: Callable[[], float],
        devices: Mapping[str, PluginDevice] | None = None,
    ) -> None:
        """Down at first, with the devices that it had before."""
        self.resource, self.options = resource, options
        self.deadlines, self.clock = deadlines, clock
        self.holders = PluginDeviceHolders(clock)
        self.changes = ChangeFeed()
        """Of its devices, of whether it is there, and of what classes hold."""
        self.channel: grpc.aio.Channel | None = None
        self.down_since: float | None = clock()
        self.devices: Mapping[str, PluginDevice] = unhealthy(devices or {})
        DEVICE_PLUGINS_UP.labels(resource).set(0)

    @property
    def up(self) -> bool:
        return self.channel is not None

    def attach(self, channel: grpc.aio.Channel, options: PluginOptions) -> None:
        self.channel, self.options, self.down_since = channel, options, None
        DEVICE_PLUGINS_UP.labels(self.resource).set(1)
        self.changes.tell()

    def listed(self, devices: Mapping[str, PluginDevice]) -> bool:
        """Whether that is news."""
        if devices == self.devices:
            return False
        self.devices = devices
        self.changes.tell()
        return True

    def detach(self) -> None:
        if self.channel is None:
            return
        self.channel, self.down_since = None, self.clock()
        self.devices = unhealthy(self.devices)
        DEVICE_PLUGINS_UP.labels(self.resource).set(0)
        self.changes.tell()

    def set_held(self, ids: Collection[str]) -> None:
        if self.holders.set_held(ids):
            self.changes.tell()

    def held_elsewhere(self, ids: Collection[str]) -> Sequence[str]:
        return self.holders.held_elsewhere(ids)

    @property
    def held_elsewhere_unknown(self) -> str:
        return self.holders.unknown

    async def allocate(self, ids: Sequence[str]) -> DeviceGrant:
        if not ids:
            return DeviceGrant()
        self._there()
        self._good(ids)
        if why := self.holders.take_for_class(ids):
            raise PluginError(self.resource, PluginFailure.REFUSED, f"{self.resource}: {why}")
        self.changes.tell()
        request = ContainerAllocateRequest(devices_ids=tuple(ids))
        try:
            answer = await self._call(ALLOCATE, AllocateRequest(container_requests=(request,)))
            with self._readable("Allocate"):
                return grant_of(answer)
        except BaseException:
            self.holders.give_back(ids)
            self.changes.tell()
            raise

    async def pre_start(self, ids: Sequence[str]) -> None:
        if ids and self.options.pre_start_required:
            await self._call(PRE_START_CONTAINER, PreStartContainerRequest(devices_ids=tuple(ids)))

    async def preferred(
        self, available: Collection[str], must_include: Collection[str], size: int
    ) -> Sequence[str]:
        if not self.options.preferred_allocation:
            words = f"the device plugin for {self.resource} prefers none"
            raise PluginError(self.resource, PluginFailure.UNIMPLEMENTED, words)
        question = ContainerPreferredAllocationRequest(
            available_deviceIDs=tuple(available),
            must_include_deviceIDs=tuple(must_include),
            allocation_size=size,
        )
        answer = await self._call(
            GET_PREFERRED_ALLOCATION, PreferredAllocationRequest(container_requests=(question,))
        )
        with self._readable("GetPreferredAllocation"):
            return preferred_of(answer, available, must_include, size)

    async def deallocate(self, ids: Sequence[str]) -> None:
        if ids and self.options.deallocates:
            await self._call(DEALLOCATE, DeallocateRequest(devices_ids=tuple(ids)))
        self.holders.give_back(ids)
        self.changes.tell()

    async def pass_on(self, method: Method[Q, A], question: bytes) -> bytes:
        """The kubelet's question, and its answer as it came. Raises grpc.aio.AioRpcError."""
        channel = self._there()
        asking: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method.path)
        with self._measured(method.name):
            return await asking(question, timeout=self.deadlines.of(method))

    async def _call(self, method: Method[Q, A], question: Q) -> A:
        with self._measured(method.name):
            deadline = self.deadlines.of(method)
            return await ask(self._there(), method, question, deadline, self.resource)

    @contextmanager
    def _measured(self, name: str) -> Iterator[None]:
        began, result = self.clock(), "ok"
        try:
            yield
        except PluginError as error:
            result = error.failure.value
            raise
        except grpc.aio.AioRpcError as error:
            result = failure_of(error).value
            raise
        except BaseException:
            result = PluginFailure.DOWN.value
            raise
        finally:
            elapsed = self.clock() - began
            DEVICE_PLUGIN_CALLS.labels(self.resource, name, result).observe(elapsed)

    @contextmanager
    def _readable(self, name: str) -> Iterator[None]:
        try:
            yield
        except BadMessage as error:
            words = f"{name} of the device plugin for {self.resource}: {error}"
            raise PluginError(self.resource, PluginFailure.GARBAGE, words) from None

    def _there(self) -> grpc.aio.Channel:
        if self.channel is None:
            words = f"the device plugin for {self.resource} is not there"
            raise PluginError(self.resource, PluginFailure.DOWN, words)
        return self.channel

    def _good(self, ids: Sequence[str]) -> None:
        """Raises PluginError: only what it lists, and lists as healthy, can be had."""
        for each in ids:
            found = self.devices.get(each)
            why = "is not among its devices" if found is None else "is unhealthy"
            if found is None or not found.healthy:
                words = f"the device plugin for {self.resource}: {each} {why}"
                raise PluginError(self.resource, PluginFailure.REFUSED, words)


def unhealthy(devices: Mapping[str, PluginDevice]) -> Mapping[str, PluginDevice]:
    return {
        id_: msgspec.structs.replace(each, healthy=False) if each.healthy else each
        for id_, each in devices.items()
    }


def options_of(told: DevicePluginOptions | None) -> PluginOptions:
    told = told or DevicePluginOptions()
    return PluginOptions(
        pre_start_required=told.pre_start_required,
        preferred_allocation=told.get_preferred_allocation_available,
        deallocates=told.deallocates,
    )
