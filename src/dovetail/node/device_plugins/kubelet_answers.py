"""What the agent answers the kubelet in place of a device plugin that both share.

Questions and answers go on as they came, so that what is new in them is not lost; only the IDs are
read. Devices of classes are listed as unhealthy, and refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import grpc
import grpc.aio

from dovetail.node.common.device_plugins import PluginDevice
from dovetail.node.common.ports import PluginError
from dovetail.node.device_plugins.plugin import KnownDevicePlugin
from dovetail.node.wire.device_plugin import (
    ALLOCATE,
    GET_DEVICE_PLUGIN_OPTIONS,
    GET_PREFERRED_ALLOCATION,
    HEALTHY,
    LIST_AND_WATCH,
    PRE_START_CONTAINER,
    SERVICE,
    UNHEALTHY,
    Device,
    DevicePluginOptions,
    ListAndWatchResponse,
)
from dovetail.node.wire.resource_plugin import NUMANode, TopologyInfo
from dovetail.wire.codec import BadMessage, Message, decode, encode
from dovetail.wire.rpc import Method

Context = grpc.aio.ServicerContext[bytes, bytes]


class KubeletAnswers:
    def __init__(self, plugin: KnownDevicePlugin) -> None:
        self._plugin = plugin
        self.streams = 0
        """Of the kubelet, which reads our lists."""
        self._again = 0
        self._ended = False

    def again(self) -> None:
        """Send the list once more, though nothing changed: the kubelet then writes a checkpoint."""
        self._again += 1
        self._plugin.changes.tell()

    def end(self) -> None:
        """Streams end by themselves: this server is being closed."""
        self._ended = True
        self._plugin.changes.tell()

    def handler(self) -> grpc.GenericRpcHandler:
        unary: dict[Method[Any, Any], Callable[[bytes], Awaitable[bytes]]] = {
            GET_DEVICE_PLUGIN_OPTIONS: self._options,
            ALLOCATE: self._allocate,
            PRE_START_CONTAINER: self._pre_start,
            GET_PREFERRED_ALLOCATION: self._preferred,
        }
        handlers: dict[str, Any] = {
            method.name: grpc.unary_unary_rpc_method_handler(_answering(answer))
            for method, answer in unary.items()
        }
        handlers[LIST_AND_WATCH.name] = grpc.unary_stream_rpc_method_handler(self._list_and_watch)
        return grpc.method_handlers_generic_handler(SERVICE, handlers)

    async def _list_and_watch(self, _: bytes, __: Context) -> AsyncIterator[bytes]:
        self.streams += 1
        told: tuple[int, bytes] | None = None
        try:
            while not self._ended:
                count = self._plugin.changes.count
                made = (self._again, encode(self.list()))
                if made != told:
                    told = made
                    yield made[1]
                await self._plugin.changes.after(count)
        finally:
            self.streams -= 1

    def list(self) -> ListAndWatchResponse:
        held = self._plugin.holders.held_by_classes()
        return ListAndWatchResponse(
            devices=tuple(
                as_told(each, healthy=each.healthy and id_ not in held)
                for id_, each in self._plugin.devices.items()
            )
        )

    async def _options(self, _: bytes) -> bytes:
        options = self._plugin.options
        return encode(
            DevicePluginOptions(
                pre_start_required=options.pre_start_required,
                get_preferred_allocation_available=options.preferred_allocation,
            )
        )

    async def _allocate(self, data: bytes) -> bytes:
        asked = decode(ALLOCATE.question, data)
        ids = [id_ for each in asked.container_requests for id_ in each.devices_ids]
        holders = self._plugin.holders
        if why := holders.take_for_kubelet(ids):
            raise KubeletRefused(f"{self._plugin.resource}: {why}")
        given = False
        try:
            answer = await self._plugin.pass_on(ALLOCATE, data)
            given = True
        finally:
            holders.passed_to_kubelet(ids, given=given)
        return answer

    async def _pre_start(self, data: bytes) -> bytes:
        asked = decode(PRE_START_CONTAINER.question, data)
        taken = self._plugin.holders.held_by_classes() & {*asked.devices_ids}
        if taken:
            words = f"{', '.join(sorted(taken))} is held by a pod that got it by a resource class"
            raise KubeletRefused(f"{self._plugin.resource}: {words}")
        return await self._plugin.pass_on(PRE_START_CONTAINER, data)

    async def _preferred(self, data: bytes) -> bytes:
        _checked(GET_PREFERRED_ALLOCATION, data)
        return await self._plugin.pass_on(GET_PREFERRED_ALLOCATION, data)


class KubeletRefused(Exception):
    """The kubelet may not have that device."""


def as_told(device: PluginDevice, *, healthy: bool) -> Device:
    nodes: Sequence[NUMANode] = [NUMANode(ID=each) for each in device.numa_nodes]
    return Device(
        ID=device.id,
        health=HEALTHY if healthy else UNHEALTHY,
        topology=TopologyInfo(nodes=tuple(nodes)) if nodes else None,
    )


def _checked(method: Method[Any, Any], data: bytes) -> Message:
    found: Message = decode(method.question, data)
    return found


def _answering(
    answer: Callable[[bytes], Awaitable[bytes]],
) -> Callable[[bytes, Context], Awaitable[bytes]]:
    async def handle(data: bytes, context: Context) -> bytes:
        try:
            return await answer(data)
        except BadMessage as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except KubeletRefused as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        except PluginError as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details() or "")
        except (asyncio.CancelledError, grpc.aio.UsageError):
            # The plugin's channel was closed under the call, unless the kubelet itself went.
            asking = asyncio.current_task()
            if asking is None or asking.cancelling():
                raise
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the device plugin went meanwhile")

    return handle
