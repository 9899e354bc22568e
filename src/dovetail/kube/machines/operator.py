"""One replica of the operator put together: informers, controllers, the ledger, and their leader.

Every replica keeps its caches warm; only the one that leads plans and writes. The daemon runs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import structlog

from dovetail.aio.supervise import retry_until_done, run_together
from dovetail.core.errors import DovetailError
from dovetail.kube.api.port import KubeApi
from dovetail.kube.classes.slices import SlicesByNode
from dovetail.kube.machines.controller import MachineController
from dovetail.kube.machines.identity import note_operator
from dovetail.kube.machines.node_pool import NodePoolController
from dovetail.kube.machines.state import MachineState
from dovetail.kube.machines.telling import QueueKeeper, Teller
from dovetail.kube.machines.unit_ledger import UnitLedger
from dovetail.kube.runtime.events import Recorder
from dovetail.kube.runtime.informer import Informer
from dovetail.kube.runtime.leader import Election, Leader
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.machines.documents import Machine, MachineNodePool, MachineShape
from dovetail.machines.names import MACHINE_GROUP
from dovetail.machines.snapshot import StockSettings
from dovetail.podfit.objects import (
    ConfigMap,
    Namespace,
    Node,
    Pod,
    ResourceSlice,
    Service,
    StatefulSet,
)
from dovetail.service.machine_units import MachineLedger

LOG = structlog.get_logger("dovetail.kube.machines")

LONGEST_BACKOFF_SECONDS = 30.0
LEDGER_SECONDS = 1.0
"""Between two looks at what others did in the ledger."""
OPTIONAL_SECONDS = 10.0
"""ResourceSlices are waited for at the start: a cluster may not have them at all."""
NODE_WORKERS = 8


class OperatorReplica:
    def __init__(
        self,
        api: KubeApi,
        ledger: MachineLedger,
        recorder: Recorder,
        settings: StockSettings,
        election: Election | None = None,
    ) -> None:
        self._api = api
        self._recorder = recorder
        self.leader = Leader(election)
        self._groups = WorkQueue("machine groups", cap=LONGEST_BACKOFF_SECONDS)
        self._nodes = WorkQueue("pool nodes", cap=LONGEST_BACKOFF_SECONDS)
        self._pools = WorkQueue("node pools", cap=LONGEST_BACKOFF_SECONDS)
        self.state = MachineState(
            settings, groups=self._groups, nodes=self._nodes, pools=self._pools
        )
        self._units = UnitLedger(ledger, self.state, api, self._look_at_leaving)
        self._informers = OperatorInformers(api, self.state, settings.namespace)
        self._queues = QueueKeeper(ledger)
        self._machines = MachineController(
            api,
            self.state,
            self._groups,
            self._units,
            teller=Teller(recorder),
            queues=self._queues,
        )
        self._node_pool = NodePoolController(api, self.state, ledger, self._informers.slices_of)
        self._known = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        """Whether it knows the cluster."""
        return self._known.is_set()

    async def known(self) -> None:
        """Until it knows the cluster."""
        await self._known.wait()

    async def run(self, stop: asyncio.Event, ready: Callable[[], None] = lambda: None) -> None:
        """Until `stop`; the lease is given back when all work of the leader has ended."""
        await run_together(
            stop.wait(),
            self._informers.run(),
            self._recorder.run(),
            self._stand_for_election(),
            self._work(ready),
        )

    async def _stand_for_election(self) -> None:
        await self.known()
        await self.leader.run()

    async def _work(self, ready: Callable[[], None]) -> None:
        await self._informers.synced()
        self._known.set()
        ready()
        await self.leader.run_while_leading(self._lead)

    async def _lead(self) -> None:
        """For one term. The queues were fed all the time, and worked off by nobody."""
        await retry_until_done(
            self._begin,
            on=DovetailError,
            pause_seconds=LEDGER_SECONDS,
            log=lambda error: LOG.warning("not ready to lead", error=str(error)),
        )
        try:
            await run_together(
                self._units.run(LEDGER_SECONDS),
                self._queues.run(),
                self._groups.run(self._machines.work, workers=NODE_WORKERS),
                self._nodes.run(self._node_pool.work, workers=NODE_WORKERS),
                self._pools.run(self._tell_health),
            )
        finally:
            self._machines.end()

    async def _begin(self) -> None:
        await note_operator(self._api, self.state.settings.namespace)
        self._machines.begin()
        await self._units.refresh()
        for name in await self._node_pool.begin():
            self._nodes.add(name)
        self.state.wake_all()
        self.state.wake(await self._queues.begin())

    def _look_at_leaving(self) -> None:
        """The ledger changed: what kept nodes there that left their pools may have gone."""
        for name in self._node_pool.leaving():
            self._nodes.add(name)

    async def _tell_health(self, name: str) -> None:
        pool = self.state.pools.get(name)
        if pool is not None:
            await self._node_pool.tell_health(pool)


class OperatorInformers:
    """Of everything that plans depend on."""

    def __init__(self, api: KubeApi, state: MachineState, namespace: str) -> None:
        self._state = state
        self._slices = SlicesByNode()
        self.slices = Informer(api, ResourceSlice)
        self.machines = Informer(api, Machine)
        self.pools = Informer(api, MachineNodePool)
        self.nodes = Informer(api, Node)
        self.namespaces = Informer(api, Namespace)
        self.pods = Informer(api, Pod)
        self.stateful_sets = Informer(api, StatefulSet, namespace, labels=MACHINE_GROUP)
        self.services = Informer(api, Service, namespace, labels=MACHINE_GROUP)
        self.shapes = Informer(api, MachineShape, labels=MACHINE_GROUP)
        self.config_maps = Informer(api, ConfigMap, namespace, labels=MACHINE_GROUP)
        self.slices.on(self._on_slice)
        self.machines.on(state.on_machine)
        self.pools.on(state.on_pool)
        self.nodes.on(state.on_node)
        self.namespaces.on(state.on_namespace)
        self.pods.on(state.on_pod)
        self.stateful_sets.on(state.on_stateful_set)
        self.services.on(state.on_service)
        self.shapes.on(state.on_shape)
        self.config_maps.on(state.on_config_map)

    def slices_of(self, node: str) -> tuple[ResourceSlice, ...]:
        return self._slices.of(node)

    def _on_slice(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        for node in sorted(self._slices.set_slice(old, new)):
            self._state.look_at_node(node)

    async def run(self) -> None:
        await asyncio.gather(
            self.slices.run(),
            self.machines.run(),
            self.pools.run(),
            self.nodes.run(),
            self.namespaces.run(),
            self.pods.run(),
            self.stateful_sets.run(),
            self.services.run(),
            self.shapes.run(),
            self.config_maps.run(),
        )

    async def synced(self) -> None:
        await asyncio.gather(
            self.machines.synced(),
            self.pools.synced(),
            self.nodes.synced(),
            self.namespaces.synced(),
            self.pods.synced(),
            self.stateful_sets.synced(),
            self.services.synced(),
            self.shapes.synced(),
            self.config_maps.synced(),
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(OPTIONAL_SECONDS):
                await self.slices.synced()
