"""The device manager: registrations of device plugins, kept, followed and shared with the kubelet.

The class devices of the agent see it as `DevicePlugins`; the daemon starts and stops it. What
classes hold is to be told before it starts: from then on the kubelet may be given the rest.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import grpc
import msgspec
import structlog

from dovetail.aio.background import Background
from dovetail.node.common.device_plugins import PluginDevice
from dovetail.node.device_plugins import metrics
from dovetail.node.device_plugins.device_plugin_status import DevicePluginStatus, status_of
from dovetail.node.device_plugins.follower import DevicePluginFollower, FollowerState
from dovetail.node.device_plugins.kubelet_devices import KubeletDevices
from dovetail.node.device_plugins.limits import (
    GONE_SECONDS,
    MOST_RESOURCES,
    DevicePluginDeadlines,
)
from dovetail.node.device_plugins.plugin import KnownDevicePlugin, options_of, unhealthy
from dovetail.node.device_plugins.records import DevicePluginRecord, RecordFile
from dovetail.node.device_plugins.registration_server import DeviceRegistrationServer
from dovetail.node.device_plugins.sharing import READ_SECONDS, KubeletLeftovers, KubeletShare
from dovetail.node.wire.device_plugin import RegisterRequest
from dovetail.node.wire.listening import CannotServe
from dovetail.wire.rpc import Refused

LOG = structlog.get_logger("dovetail.node.device_plugins")

NOWHERE = ""
"""The socket of a plugin that has to register again."""


class DevicePluginManager:
    """A `device_plugins.DevicePlugins`."""

    def __init__(
        self,
        directory: Path,
        state_dir: Path,
        *,
        shared: Collection[str] = (),
        kubelet_directory: Path = Path("/var/lib/kubelet/device-plugins"),
        kubelet_pod_resources: Path = Path("/var/lib/kubelet/pod-resources/kubelet.sock"),
        deadlines: DevicePluginDeadlines | None = None,
        period: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`shared`: resources that the kubelet has, too. `period`: seconds between looks.

        Plugins of before are known at once, and down.
        """
        self._directory, self._shared = directory, frozenset(shared)
        self._kubelet_directory = kubelet_directory
        self._kubelet_devices = KubeletDevices(kubelet_directory, kubelet_pod_resources)
        self._leftovers = KubeletLeftovers(self._kubelet_devices, clock=clock)
        self._deadlines = deadlines or DevicePluginDeadlines()
        self._period, self._clock, self._wall = period, clock, wall
        self._server = DeviceRegistrationServer(directory, self._registered)
        self._file = RecordFile(state_dir)
        self._records: dict[str, DevicePluginRecord] = dict(self._file.load())
        self._plugins = {
            resource: self._known(resource, record) for resource, record in self._records.items()
        }
        self._followers: dict[str, DevicePluginFollower] = {}
        self._shares: dict[str, KubeletShare] = {}
        self._held: dict[str, frozenset[str]] = {}
        self._replacing = asyncio.Lock()
        self._loops, self._closing = Background(), Background()
        self._written: dict[str, Mapping[str, PluginDevice]] = {}
        """The lists that are in the records."""
        self._troubles: dict[str, str] = {}

    async def start(self) -> None:
        """Plugins of before are dialled, and others register from now on. Raises CannotServe."""
        try:
            self._directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError as error:
            raise CannotServe(f"directory {self._directory}: {error.strerror}") from error
        await self._leftovers.take_in(self._own())
        for resource in sorted(self._plugins):
            self._follow(resource)
        await self._server.start()
        self._loops.start(self._look_regularly())
        self._loops.start(self._look_at_leftovers())

    async def stop(self) -> None:
        await self._loops.stop()
        await self._server.stop()
        for share in self._shares.values():
            await share.stop()
        await self._file.save(self._current())
        for follower in self._followers.values():
            await follower.stop()
        await self._closing.stop()

    # The port.

    def of(self, resource: str) -> KnownDevicePlugin | None:
        return self._plugins.get(resource)

    def all(self) -> Sequence[KnownDevicePlugin]:
        return [self._plugins[each] for each in sorted(self._plugins)]

    def set_held(self, resource: str, ids: Collection[str]) -> None:
        self._held[resource] = frozenset(ids)
        if plugin := self._plugins.get(resource):
            plugin.set_held(ids)

    def statuses(self) -> Sequence[DevicePluginStatus]:
        """By name of the resource."""
        return [
            status_of(self._followers[each], self._shares.get(each))
            for each in sorted(self._followers)
        ]

    # Registrations.

    def _known(self, resource: str, record: DevicePluginRecord) -> KnownDevicePlugin:
        devices = {each.id: each for each in record.devices}
        return KnownDevicePlugin(resource, record.options, self._deadlines, self._clock, devices)

    async def _registered(self, request: RegisterRequest) -> None:
        """A newer plugin for a resource takes over; raises Refused."""
        resource = request.resource_name
        async with self._replacing:
            if resource not in self._plugins and len(self._plugins) >= MOST_RESOURCES:
                words = f"{MOST_RESOURCES} resources have device plugins already"
                raise Refused(grpc.StatusCode.RESOURCE_EXHAUSTED, words)
            LOG.info("device plugin registers", resource=resource, endpoint=request.endpoint)
            if before := self._followers.pop(resource, None):
                await before.stop()
            await self._leave_socket(request.endpoint, resource)
            devices = self._records[resource].devices if resource in self._records else ()
            options = options_of(request.options)
            record = DevicePluginRecord(endpoint=request.endpoint, options=options, devices=devices)
            self._records[resource] = record
            if resource not in self._plugins:
                await self._take_in(resource, record)
            self._follow(resource)
            await self._file.save(self._current())

    async def _take_in(self, resource: str, record: DevicePluginRecord) -> None:
        plugin = self._known(resource, record)
        if resource not in self._shared:
            await self._leftovers.take_in([plugin])
        plugin.set_held(self._held.get(resource, ()))
        self._plugins[resource] = plugin

    async def _leave_socket(self, endpoint: str, resource: str) -> None:
        """Who serves there calls its devices otherwise from now on: by the name of before they
        would be there twice."""
        for other, record in [*self._records.items()]:
            if other == resource or record.endpoint != endpoint:
                continue
            LOG.warning("device plugin renamed", resource=other, now=resource)
            if not self._is_held(other):
                await self._forget(other)
                continue
            await self._followers.pop(other).stop()
            self._records[other] = msgspec.structs.replace(record, endpoint=NOWHERE)
            self._follow(other)

    def _follow(self, resource: str) -> None:
        plugin, record = self._plugins[resource], self._records[resource]
        socket = self._directory / record.endpoint
        self._followers[resource] = DevicePluginFollower(
            plugin, socket, record.options, self._closing, period=self._period, wall=self._wall
        )
        if resource in self._shared and resource not in self._shares:
            share = KubeletShare(
                plugin, self._kubelet_directory, self._kubelet_devices, clock=self._clock
            )
            self._shares[resource] = share
            self._loops.start(self._share_regularly(share))

    def _current(self) -> Mapping[str, DevicePluginRecord]:
        """Registrations with the devices that are known now."""
        for resource, plugin in self._plugins.items():
            record = self._records[resource]
            if self._written.get(resource) is plugin.devices and record.options == plugin.options:
                continue
            self._written[resource] = plugin.devices
            found = DevicePluginRecord(
                endpoint=record.endpoint,
                options=plugin.options,
                devices=tuple(unhealthy(plugin.devices).values()),
            )
            if found != record:
                self._records[resource] = found
        return dict(self._records)

    # The looks.

    async def _look_regularly(self) -> None:
        while True:
            with self._going_on(f"directory {self._directory}"):
                await self._server.keep()
            with self._going_on("look"):
                await self._forget_uninstalled()
                self._count()
                await self._file.save(self._current())
            await asyncio.sleep(self._period)

    async def _look_at_leftovers(self) -> None:
        while True:
            with self._going_on("devices of the kubelet"):
                await self._leftovers.look(self._own())
            await asyncio.sleep(READ_SECONDS)

    def _own(self) -> Sequence[KnownDevicePlugin]:
        """Plugins that are not shared."""
        return [each for each in self.all() if each.resource not in self._shared]

    async def _share_regularly(self, share: KubeletShare) -> None:
        while self._shares.get(share.plugin.resource) is share:
            with self._going_on(f"sharing of {share.plugin.resource}"):
                await share.look()
            await asyncio.sleep(self._period)

    async def _forget_uninstalled(self) -> None:
        """One that is long without its socket, and of which nobody holds anything."""
        for resource in [each for each in self._plugins if self._is_uninstalled(each)]:
            async with self._replacing:
                # It may have registered again meanwhile.
                if resource in self._plugins and self._is_uninstalled(resource):
                    await self._forget(resource)

    async def _forget(self, resource: str) -> None:
        LOG.info("device plugin forgotten", resource=resource)
        await self._followers.pop(resource).stop()
        if share := self._shares.pop(resource, None):
            await share.stop()
        del self._plugins[resource], self._records[resource]
        self._written.pop(resource, None)
        metrics.forget(resource)

    def _is_uninstalled(self, resource: str) -> bool:
        plugin, follower = self._plugins[resource], self._followers[resource]
        return (
            follower.state is FollowerState.WAITING
            and plugin.down_since is not None
            and self._clock() - plugin.down_since >= GONE_SECONDS
            and not self._is_held(resource)
        )

    def _is_held(self, resource: str) -> bool:
        plugin = self._plugins[resource]
        elsewhere = plugin.held_elsewhere(tuple(plugin.devices))
        return bool(plugin.holders.held_by_classes() or elsewhere)

    def _count(self) -> None:
        for each in self.statuses():
            numbers = (
                each.healthy,
                each.devices - each.healthy,
                each.held_by_classes,
                each.held_by_kubelet,
            )
            for state, number in zip(metrics.STATES, numbers, strict=True):
                metrics.DEVICE_PLUGIN_DEVICES.labels(each.resource, state).set(number)

    @contextmanager
    def _going_on(self, name: str) -> Iterator[None]:
        """Nothing may end the looks. What fails in the same way again is not told again."""
        try:
            yield
        except Exception as error:
            if self._troubles.get(name) != repr(error):
                LOG.exception("failed", step=name)
            self._troubles[name] = repr(error)
        else:
            self._troubles.pop(name, None)
