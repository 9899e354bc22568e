"""Shares a device plugin with the kubelet: the agent registers itself there for its resource.

A kubelet that starts deletes every socket in its directory, and whoever is not registered with it
afterwards does not exist for it. So our socket is looked after, and made and registered anew.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import grpc.aio
import structlog

from dovetail.aio.backoff import KeyedBackoff
from dovetail.core.errors import DovetailError
from dovetail.node.device_plugins.introductions import (
    LONGEST_SOCKET_BYTES,
    DeviceSocket,
    device_socket_at,
)
from dovetail.node.device_plugins.kubelet_answers import KubeletAnswers
from dovetail.node.device_plugins.kubelet_devices import KubeletDevices, KubeletUnreadable
from dovetail.node.device_plugins.plugin import KnownDevicePlugin
from dovetail.node.wire.device_plugin import (
    KUBELET_SOCKET,
    REGISTER,
    VERSION,
    DevicePluginOptions,
    RegisterRequest,
)
from dovetail.node.wire.listening import CannotServe, GrpcListener
from dovetail.wire.codec import BadMessage
from dovetail.wire.rpc import call, connect

LOG = structlog.get_logger("dovetail.node.device_plugins")

REGISTER_SECONDS = 15.0
"""The kubelet calls us meanwhile, and has 10 for that."""

STREAM_SECONDS = 10.0
"""For the kubelet to ask for devices after it was registered with; else it did not take it in."""

READ_SECONDS = 2.0
"""Between looks at what the kubelet gave out."""

AGAIN_SECONDS = 10.0
"""Between lists that are sent only to have the kubelet write its checkpoint."""

UNTOLD_SECONDS = 60.0
"""For which the kubelet does not tell of a device that it wrote down, until its pod is over."""

FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 0.5, 10.0


class NotRegistered(DovetailError):
    """The kubelet does not know us, or not any more."""


class KubeletShare:
    """The agent as the kubelet's device plugin for one resource."""

    def __init__(
        self,
        plugin: KnownDevicePlugin,
        directory: Path,
        devices: KubeletDevices,
        *,
        clock: Callable[[], float],
    ) -> None:
        self.plugin, self._clock, self._devices = plugin, clock, devices
        self._directory = directory
        self._socket = directory / socket_name(plugin.resource)
        self._answers: KubeletAnswers | None = None
        self._listener: GrpcListener | None = None
        self._own: DeviceSocket | None = None
        self._kubelet: DeviceSocket | None = None
        """That we registered with."""
        self._registered_at = 0.0
        self._options = plugin.options
        self._retries: KeyedBackoff[str] = KeyedBackoff(FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS)
        self._read_at = self._again_at = float("-inf")
        self.error = "it has not been registered with the kubelet yet"
        """Why the kubelet has none of it; empty if it has."""
        plugin.holders.unknown = "it has not been asked yet"

    async def look(self) -> None:
        """Called regularly: read what the kubelet gave out, and be registered with it."""
        await self._read()
        try:
            await self._keep_registered()
        except (NotRegistered, CannotServe) as error:
            if self.error != str(error):
                LOG.warning(
                    "not shared with the kubelet", resource=self.plugin.resource, error=str(error)
                )
            self.error = str(error)

    async def stop(self) -> None:
        if self._answers:
            self._answers.end()
        if self._listener:
            await self._listener.stop(0)
        self._listener = self._answers = self._own = self._kubelet = None

    async def _read(self) -> None:
        begun = self._clock()
        if begun - self._read_at < READ_SECONDS:
            return
        self._read_at = begun
        try:
            found = await self._devices.read()
        except KubeletUnreadable as error:
            if self.plugin.holders.unknown != str(error):
                LOG.error("kubelet's devices unknown", error=str(error))
            self.plugin.holders.unknown = str(error)
            return
        self.plugin.holders.kubelet_holds(found.of(self.plugin.resource), begun)
        if (
            self._answers
            and found.doubtful(self.plugin.resource)
            and begun - self._again_at >= AGAIN_SECONDS
        ):
            self._again_at = begun
            self._answers.again()

    async def _keep_registered(self) -> None:
        """Raises NotRegistered or CannotServe."""
        if self._own is None and not self.plugin.up:
            raise NotRegistered(f"the device plugin for {self.plugin.resource} is not there yet")
        kubelet = device_socket_at(self._directory / KUBELET_SOCKET)
        if kubelet is None:
            raise NotRegistered(f"no kubelet serves at {self._directory / KUBELET_SOCKET}")
        if self._own is None or device_socket_at(self._socket) != self._own:
            await self._serve()
        if self._is_known(kubelet):
            return
        now = self._clock()
        if self._retries.is_waiting("register", kubelet, now):
            return
        self._retries.record("register", kubelet, now)
        await self._register()
        self._kubelet, self._registered_at = kubelet, self._clock()
        self._options = self.plugin.options
        self.error = ""
        LOG.info("shared with the kubelet", resource=self.plugin.resource)

    def _is_known(self, kubelet: DeviceSocket) -> bool:
        if self._kubelet != kubelet or self._options != self.plugin.options:
            return False
        if self._answers and self._answers.streams:
            self._retries.forget("register")
            return True
        return self._clock() - self._registered_at < STREAM_SECONDS

    async def _serve(self) -> None:
        await self.stop()
        answers = KubeletAnswers(self.plugin)
        listener = GrpcListener(self._socket, handlers=[answers.handler()])
        await listener.start()
        self._listener, self._answers = listener, answers
        self._own = device_socket_at(self._socket)

    async def _register(self) -> None:
        options = self.plugin.options
        request = RegisterRequest(
            version=VERSION,
            endpoint=self._socket.name,
            resource_name=self.plugin.resource,
            options=DevicePluginOptions(
                pre_start_required=options.pre_start_required,
                get_preferred_allocation_available=options.preferred_allocation,
            ),
        )
        channel = connect(str(self._directory / KUBELET_SOCKET))
        try:
            await call(channel, REGISTER, request, REGISTER_SECONDS)
        except grpc.aio.AioRpcError as error:
            words = f"{error.details()} ({error.code().name})"
            raise NotRegistered(f"the kubelet does not register it: {words}") from None
        except BadMessage as error:
            raise NotRegistered(f"the kubelet does not register it: {error}") from None
        finally:
            await channel.close()


class KubeletLeftovers:
    """What the kubelet gave to pods of plugins that it had once, and that are ours alone by now.

    Nothing has it write its checkpoint any longer, so what ended may stay there. It counts as ended
    if the kubelet has not told of it for a while: one that has just started tells of nobody.
    """

    def __init__(self, devices: KubeletDevices, *, clock: Callable[[], float]) -> None:
        self._devices, self._clock = devices, clock
        self._untold: dict[tuple[str, str], float] = {}
        """By resource and ID: since when it is only written."""

    async def take_in(self, plugins: Sequence[KnownDevicePlugin]) -> None:
        """Called before they are followed."""
        begun = self._clock()
        try:
            written = await self._devices.written()
        except KubeletUnreadable as error:
            for each in plugins:
                each.holders.unknown = str(error)
            return
        for each in plugins:
            each.holders.kubelet_holds(written.get(each.resource, frozenset()), begun)

    async def look(self, plugins: Sequence[KnownDevicePlugin]) -> None:
        """Called regularly. What cannot be read is as it was."""
        begun = self._clock()
        try:
            written = await self._devices.written()
        except KubeletUnreadable:
            return
        left = {
            (each.resource, id_)
            for each in plugins
            for id_ in written.get(each.resource, frozenset())
        }
        told = await self._devices.told() if left else None
        since = begun if told is not None else float("inf")
        self._untold = {
            (resource, id_): min(self._untold.get((resource, id_), since), since)
            for resource, id_ in left
            if told is None or id_ not in told.get(resource, frozenset())
        }
        over = {each for each, at in self._untold.items() if begun - at >= UNTOLD_SECONDS}
        for each in plugins:
            held = {id_ for resource, id_ in left - over if resource == each.resource}
            each.holders.kubelet_holds(held, begun)


def socket_name(resource: str) -> str:
    """Of our socket in the kubelet's directory: the same for a resource at all times."""
    readable = re.sub(r"[^A-Za-z0-9.-]", "_", resource)[:24]
    return f"dovetail-{readable}-{hashlib.sha256(resource.encode()).hexdigest()[:8]}.sock"


def fits(directory: Path) -> bool:
    """Whether our sockets in it have a path of possible length, their drafts included."""
    longest = len(socket_name("x" * 300)) + len(".new") + 1
    return len(str(directory).encode()) + longest <= LONGEST_SOCKET_BYTES
