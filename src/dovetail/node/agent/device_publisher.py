"""Publishes the devices of the node whenever they changed; the daemon calls it regularly.

Device plugins are looked at each time, and the machine itself once a period. What changed is told
soon, but not more often than an API server likes; what could not be told is tried again, later each
time. What is unchanged is told again once a period, for a node may be made anew.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path

import structlog

from dovetail.aio.backoff import Backoff
from dovetail.aio.token_bucket import TokenBucket
from dovetail.core.device import Device
from dovetail.core.errors import DovetailError
from dovetail.node.agent.device_properties import DeviceProperties
from dovetail.node.agent.settings import AgentSettings, seconds
from dovetail.node.common.device_plugins import DevicePlugin
from dovetail.node.report.machine_devices import devices_of, page_resources
from dovetail.node.report.plugin_devices import HeldIds, plugin_devices
from dovetail.node.topology import Machine
from dovetail.node.topology.reader import read

LOG = structlog.get_logger("dovetail.node.agent")

Publish = Callable[[str, Sequence[Device]], Awaitable[None]]
"""Tells the devices of a node to whoever hands them out."""

LOOK_SECONDS = 1.0
RATE, BURST = 0.2, 5.0
"""Changes told a second in the long run, and at once: a device may come and go all the time."""
UNKNOWN_SECONDS = 10.0
"""For the kubelet to say which devices it gave to pods, before these count as gone."""
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 1.0, 60.0


class DevicePublisher:
    def __init__(
        self,
        settings: AgentSettings,
        publish: Publish,
        *,
        plugins: Callable[[], Sequence[DevicePlugin]] = tuple,
        held_ids: HeldIds = lambda _: (),
        delivers: Callable[[str], bool] = lambda _: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`delivers`: whether the agent's own plugins bring devices of this origin into containers,
        as `nic` and `hugepages-2Mi`."""
        self._sysfs = Path(settings.sysfs)
        self._node = settings.devices.node or socket.gethostname().lower()
        self._period = seconds(settings.devices.period)
        file = settings.devices.properties_file
        self._properties = DeviceProperties(None if file is None else Path(file))
        self._publish, self._plugins, self._delivers = publish, plugins, delivers
        self._held_ids = held_ids
        self._clock = clock
        self._bucket = TokenBucket(RATE, BURST, clock)
        self._backoff = Backoff(FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS)
        self._machine: Machine | None = None
        self._read_at = self._told_at = self._not_before = float("-inf")
        self._published: tuple[Device, ...] | None = None
        self._unknown_since: float | None = None

    async def look(self) -> None:
        now = self._clock()
        if self._is_about_to_know(now):
            return
        try:
            found = self._found(now)
        except DovetailError as error:
            LOG.warning("devices not published", node=self._node, error=str(error))
            return
        is_news = found != self._published
        if now < self._not_before or not (is_news or now - self._told_at >= self._period):
            return
        if is_news and not self._bucket.take():
            return
        await self._tell(found, now, is_news=is_news)

    def _is_about_to_know(self, now: float) -> bool:
        """Whether the kubelet will soon have said which devices it gave to pods: nobody shall be
        told that all are gone because the agent has just started."""
        if not any(each.held_elsewhere_unknown for each in self._plugins()):
            self._unknown_since = None
            return False
        if self._unknown_since is None:
            self._unknown_since = now
        return now - self._unknown_since < UNKNOWN_SECONDS

    def _found(self, now: float) -> tuple[Device, ...]:
        """Links go down and hugepages are set aside while the agent runs."""
        if self._machine is None or now - self._read_at >= self._period:
            self._machine, self._read_at = read(self._sysfs), now
        self._properties.look()
        delivered = self._delivered(self._machine)
        return (
            *devices_of(self._node, self._machine, delivered),
            *plugin_devices(self._node, self._plugins(), self._properties.of, self._held_ids),
        )

    def _delivered(self, machine: Machine) -> Collection[str]:
        return {each for each in ("nic", *page_resources(machine)) if self._delivers(each)}

    async def _tell(self, found: tuple[Device, ...], now: float, *, is_news: bool) -> None:
        try:
            await self._publish(self._node, found)
        except DovetailError as error:
            wait = self._backoff.next()
            self._not_before = self._clock() + wait
            LOG.warning(
                "devices not published", node=self._node, error=str(error), again_in=round(wait, 1)
            )
            return
        self._backoff.reset()
        self._told_at = now
        if is_news:
            LOG.info("devices published", node=self._node, devices=len(found))
            self._published = found
