"""The manager: admission, reconcile, state and report of one node, put together behind one port.

The back ends, the control socket and the daemon hold it as a `ManagerPort` and see none of its
parts; the parts know each other only as far as this module introduces them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import structlog

from dovetail.aio.background import Background
from dovetail.node.admission.configuration import AdmissionConfiguration
from dovetail.node.admission.gate import GRACE_SECONDS, AdmissionGate
from dovetail.node.admission.pod_locks import PodLocks
from dovetail.node.admission.remove_pod_queue import RemovePodQueue
from dovetail.node.admission.turns import PATIENCE_SECONDS, Turns
from dovetail.node.agent import views
from dovetail.node.class_devices.plugins import NoDevicePlugins, PluginsAndDevices
from dovetail.node.class_devices.reserving import WAIT_SECONDS, DeviceReservations
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.device_plugins import DevicePlugins
from dovetail.node.common.pods import Sandbox
from dovetail.node.common.ports import (
    AdmissionRejected,
    Injector,
    PluginRegistry,
    PodSource,
    Runtime,
)
from dovetail.node.reconcile.plugin_retirement import PluginRetirement
from dovetail.node.reconcile.pod_level_resizes import PodLevelResizes
from dovetail.node.reconcile.pod_liveness import PodCollector, PodLiveness
from dovetail.node.reconcile.reconciler import PERIOD_SECONDS, Reconciler
from dovetail.node.refusals.refused_pods import RefusedPods
from dovetail.node.report import capacity
from dovetail.node.report.capacity import NodeCapacity
from dovetail.node.report.pod_resources import PodResourcesApi
from dovetail.node.state.store import StateStore
from dovetail.wire.rpc import Served

LOG = structlog.get_logger("dovetail.node.agent")

REMOVALS_PERIOD_SECONDS = 1.0
"""Between looks whether plugins that missed the end of a pod are back."""


class Manager:
    """A `ports.ManagerPort`."""

    def __init__(
        self,
        configuration: AdmissionConfiguration,
        plugins: PluginRegistry,
        store: StateStore,
        source: PodSource | None,
        *,
        devices: DevicePlugins | None = None,
        device_wait: float = WAIT_SECONDS,
        period: float = PERIOD_SECONDS,
        grace_seconds: float = GRACE_SECONDS,
        patience: float = PATIENCE_SECONDS,
        refusals: RefusedPods | None = None,
    ) -> None:
        """Without a `source`, pods are what the runtime tells of them.

        `device_wait`: seconds for the end of a pod whose device is another's by now.
        `period`: seconds between looks at plugins and containers. `patience`: seconds for a plugin
        while pods wait that do not need it. `refusals`: who fails refused pods, if anybody.
        """
        devices = devices or NoDevicePlugins()
        plugins = PluginsAndDevices(plugins, devices, store)
        self.store, self._plugins, self._refusals = store, plugins, refusals
        self._names, self._period = configuration.names, period
        locks, liveness, turns = PodLocks(), PodLiveness(), Turns(patience)
        self.removals = RemovePodQueue(store, plugins, locks, patience=patience)
        self.collector = PodCollector(
            store, source, locks=locks, removals=self.removals, turns=turns, liveness=liveness
        )
        self.gate = AdmissionGate(
            configuration,
            plugins,
            store,
            source,
            locks=locks,
            removals=self.removals,
            turns=turns,
            reservations=DeviceReservations(
                store,
                devices,
                configuration.names,
                look_soon=self.collector.look_soon.set,
                wait_seconds=device_wait,
            ),
            on_admitted=liveness.pod_admitted,
            grace_seconds=grace_seconds,
        )
        self.collector.on_listed = PodLevelResizes(store, self.gate.log).look
        self._retirement = PluginRetirement(store, plugins)
        self._capacity = NodeCapacity(store, plugins)
        self._pod_resources = PodResourcesApi(
            store, plugins, self._capacity, source, devices=devices
        )

    def attach(self, injector: Injector) -> None:
        self.gate.injection.injector = injector

    async def admit_pod(self, sandbox: Sandbox) -> None:
        try:
            await self.gate.admit_pod(sandbox)
        except AdmissionRejected as error:
            if self._refusals:
                self._refusals.refused(sandbox, error)
            raise
        if self._refusals:
            self._refusals.admitted(sandbox.uid)

    async def admit_container(
        self, sandbox: Sandbox, container: str, asked: ContainerSettings
    ) -> ContainerSettings:
        return await self.gate.admit_container(sandbox, container, asked)

    async def resize_container(
        self, sandbox: Sandbox, container: str, asked: ContainerSettings
    ) -> ContainerSettings:
        try:
            return await self.gate.resize_container(sandbox, container, asked)
        finally:
            self.collector.look_soon.set()

    async def container_resized(
        self, sandbox: Sandbox, container: str, id_: str, given: ContainerSettings
    ) -> None:
        self.gate.container_created(sandbox, container, id_, given)
        self.collector.look_soon.set()

    async def resize_failed(self, sandbox: Sandbox, container: str) -> None:
        self.collector.look_soon.set()
        await self.gate.resize_failed(sandbox, container)

    def current_settings(self, uid: str, container: str) -> ContainerSettings:
        return self.gate.current_settings(uid, container)

    async def container_created(
        self, sandbox: Sandbox, container: str, id_: str, given: ContainerSettings
    ) -> None:
        self.gate.container_created(sandbox, container, id_, given)

    async def sandbox_gone(self, sandbox: Sandbox) -> None:
        self.collector.sandbox_gone(sandbox.uid)

    def state(self) -> Mapping[str, Any]:
        return views.state(self.store, self._capacity.status)

    def plugin_statuses(self) -> Sequence[msgspec.Struct]:
        return self._plugins.statuses()

    def explanation(self, pod: str) -> Mapping[str, Any] | None:
        return views.explanation(pod, self.gate.log, self.store)

    def pod_resources(self) -> Iterable[Served]:
        return self._pod_resources.served()

    @asynccontextmanager
    async def reconciling(self, runtime: Runtime) -> AsyncIterator[None]:
        loops = Background()
        loops.start(self.reconciler(runtime).run())
        loops.start(regularly(self.removals.deliver, REMOVALS_PERIOD_SECONDS))
        loops.start(regularly(self._capacity.look, capacity.PERIOD_SECONDS))
        loops.start(regularly(self._retirement.look, capacity.PERIOD_SECONDS))
        try:
            yield
        finally:
            await loops.stop()

    def reconciler(self, runtime: Runtime) -> Reconciler:
        return Reconciler(
            self.gate,
            self.collector,
            self.store,
            self._plugins,
            runtime,
            period=self._period,
            names=self._names,
        )

    async def stop(self) -> None:
        await self._capacity.stop()
        await self.gate.stop()
        if self._refusals:
            await self._refusals.stop()


async def regularly(work: Callable[[], Awaitable[object]], period: float) -> None:
    """For ever; what fails is logged and tried again after the period, in seconds."""
    while True:
        try:
            await work()
        except Exception:
            LOG.exception("failed", work=getattr(work, "__qualname__", ""))
        await asyncio.sleep(period)
