"""What a device plugin answers, and how it is served: for plugins written in Python.

A plugin is a class derived from DevicePluginService; `run` serves it beside a `kubelet.sock`, the
kubelet's or the agent's, and registers it there: again whenever that socket was made anew. The one
call that the kubelet does not know, Deallocate, is what the agent adds.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import signal
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import grpc
import grpc.aio
import structlog

from dovetail.node.sdk.serving import BadSocket, inode_of
from dovetail.node.wire import device_plugin as wire
from dovetail.node.wire.resource_plugin import Empty, NUMANode, TopologyInfo
from dovetail.wire.rpc import OPTIONS, Served, Streamed, call, connect, offer, streaming

LOG = structlog.get_logger("dovetail.node.sdk")

DIRECTORY = Path("/var/lib/kubelet/device-plugins")
"""Where plugins find the kubelet, or the agent if its directory is mounted there."""

REGISTER_SECONDS = 10.0


class DevicePluginService:
    """A device plugin for one resource. To refuse, raise `refuse("why")` of `sdk.plugin`."""

    def __init__(self, resource: str, options: wire.DevicePluginOptions | None = None) -> None:
        """`resource`: such as vendor.com/gpu."""
        self.resource = resource
        self.options = options or wire.DevicePluginOptions()
        self._changed = asyncio.Event()

    def devices(self) -> Iterable[wire.Device]:
        """All there are, as `device` makes them. Call `changed` when that is not so any more."""
        raise NotImplementedError

    async def allocate(self, ids: Sequence[str]) -> wire.ContainerAllocateResponse:
        """What a container needs to use these. Asked again for the same, answer the same."""
        raise NotImplementedError

    async def pre_start(self, ids: Sequence[str]) -> None:
        """Before each start of a container; asked only with the option pre_start_required."""

    async def preferred(
        self, available: Sequence[str], must_include: Collection[str], size: int
    ) -> Sequence[str]:
        """Asked only with the option get_preferred_allocation_available."""
        return [*must_include, *(each for each in available if each not in must_include)][:size]

    async def deallocate(self, ids: Sequence[str]) -> None:
        """These are free again; asked only with the option deallocates, and only by the agent.

        It may come twice, and for what was not allocated. If it fails it comes again, and until
        then the devices go to nobody.
        """

    def changed(self) -> None:
        """Devices came, went, or fare otherwise: whoever follows the list is told."""
        self._changed.set()
        self._changed = asyncio.Event()

    def served(self) -> Sequence[Served]:
        return (
            Served(wire.GET_DEVICE_PLUGIN_OPTIONS, self._options),
            Served(wire.ALLOCATE, self._allocate),
            Served(wire.PRE_START_CONTAINER, self._pre_start),
            Served(wire.GET_PREFERRED_ALLOCATION, self._preferred),
            Served(wire.DEALLOCATE, self._deallocate),
        )

    async def list_and_watch(self, _: Empty) -> AsyncIterator[wire.ListAndWatchResponse]:
        while True:
            changed = self._changed
            yield wire.ListAndWatchResponse(devices=tuple(self.devices()))
            await changed.wait()

    async def _options(self, _: Empty) -> wire.DevicePluginOptions:
        return self.options

    async def _allocate(self, request: wire.AllocateRequest) -> wire.AllocateResponse:
        answers = [await self.allocate(each.devices_ids) for each in request.container_requests]
        return wire.AllocateResponse(container_responses=tuple(answers))

    async def _pre_start(
        self, request: wire.PreStartContainerRequest
    ) -> wire.PreStartContainerResponse:
        await self.pre_start(request.devices_ids)
        return wire.PreStartContainerResponse()

    async def _preferred(
        self, request: wire.PreferredAllocationRequest
    ) -> wire.PreferredAllocationResponse:
        answers = [
            await self.preferred(
                each.available_deviceIDs, each.must_include_deviceIDs, each.allocation_size
            )
            for each in request.container_requests
        ]
        return wire.PreferredAllocationResponse(
            container_responses=tuple(
                wire.ContainerPreferredAllocationResponse(deviceIDs=tuple(each)) for each in answers
            )
        )

    async def _deallocate(self, request: wire.DeallocateRequest) -> wire.DeallocateResponse:
        await self.deallocate(request.devices_ids)
        return wire.DeallocateResponse()


def device(id_: str, *, healthy: bool = True, numa_nodes: Iterable[int] = ()) -> wire.Device:
    nodes = tuple(NUMANode(ID=each) for each in numa_nodes)
    return wire.Device(
        ID=id_,
        health=wire.HEALTHY if healthy else wire.UNHEALTHY,
        topology=TopologyInfo(nodes=nodes) if nodes else None,
    )


def run(plugin: DevicePluginService, directory: Path = DIRECTORY) -> None:
    """Serve the plugin until SIGTERM or SIGINT."""
    asyncio.run(_serve_until_signal(plugin, directory))


async def _serve_until_signal(plugin: DevicePluginService, directory: Path) -> None:
    stop = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    server = DevicePluginServer(plugin, directory)
    await server.start()
    try:
        await stop.wait()
    finally:
        await server.stop()


class DevicePluginServer:
    def __init__(
        self, plugin: DevicePluginService, directory: Path, *, period: float = 1.0
    ) -> None:
        """`period`: seconds between looks at the sockets."""
        self.plugin, self._period = plugin, period
        self._kubelet = directory / wire.KUBELET_SOCKET
        self.socket = directory / f"{re.sub(r'[^A-Za-z0-9.-]', '-', plugin.resource)}.sock"
        self._server: grpc.aio.Server | None = None
        self._inode: int | None = None
        self._registered: tuple[int, int] | None = None
        self._looking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Raises BadSocket."""
        await self._serve()
        self._looking = asyncio.create_task(self._look_regularly())

    async def stop(self) -> None:
        if self._looking:
            self._looking.cancel()
            with suppress(asyncio.CancelledError):
                await self._looking
        if self._inode is not None and inode_of(self.socket) == self._inode:
            self.socket.unlink(missing_ok=True)
        if self._server:
            await self._server.stop(None)

    async def _serve(self) -> None:
        """In place of a socket that is there: it is of a process that ended."""
        before, self._server = self._server, grpc.aio.server(options=OPTIONS)
        offer(self._server, self.plugin.served())
        stream = Streamed(wire.LIST_AND_WATCH, self.plugin.list_and_watch)
        self._server.add_generic_rpc_handlers(streaming([stream]))
        # A server that ends deletes the name it was bound to, whoever has it by then.
        draft = self.socket.with_name(f".{secrets.token_hex(4)}")
        try:
            self._server.add_insecure_port(f"unix:{draft}")
            await self._server.start()
            draft.replace(self.socket)
        except (OSError, RuntimeError) as error:
            raise BadSocket(f"cannot serve at {self.socket}: {error}") from None
        self._inode, self._registered = inode_of(self.socket), None
        if before:
            await before.stop(None)

    async def _look_regularly(self) -> None:
        while True:
            try:
                await self._look()
            except (BadSocket, grpc.aio.AioRpcError) as error:
                why = error.details() if isinstance(error, grpc.aio.AioRpcError) else str(error)
                LOG.warning("not registered yet", resource=self.plugin.resource, error=why)
            await asyncio.sleep(self._period)

    async def _look(self) -> None:
        if inode_of(self.socket) is None:
            # A kubelet that starts deletes it.
            await self._serve()
        kubelet = identity_of(self._kubelet)
        if kubelet is None or kubelet == self._registered:
            return
        request = wire.RegisterRequest(
            version=wire.VERSION,
            endpoint=self.socket.name,
            resource_name=self.plugin.resource,
            options=self.plugin.options,
        )
        channel = connect(str(self._kubelet))
        try:
            await call(channel, wire.REGISTER, request, REGISTER_SECONDS)
        finally:
            await channel.close()
        self._registered = kubelet
        LOG.info("registered", resource=self.plugin.resource)


def identity_of(path: Path) -> tuple[int, int] | None:
    """Of a socket: one that was made anew may have the number of the one before."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns
