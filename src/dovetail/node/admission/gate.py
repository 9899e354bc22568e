"""The admission gate: a pod or container may start only after its plugins gave it what it asks for.

The manager calls it for the back ends (CRI proxy, NRI), and the reconciler for containers that run
already. What is done to one pod is done in turn; different pods take turns where they share plugins
(`turns`), and do not wait for each other otherwise.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import structlog
from msgspec.structs import replace

from dovetail.aio.background import Background
from dovetail.node.admission import resource_requests
from dovetail.node.admission.admission_log import AdmissionLog, AdmissionRecord
from dovetail.node.admission.configuration import AdmissionConfiguration
from dovetail.node.admission.merge_settings import settings_of
from dovetail.node.admission.outage_policy import OutagePolicy
from dovetail.node.admission.pod_locks import PodLocks
from dovetail.node.admission.remove_pod_queue import RemovePodQueue
from dovetail.node.admission.resize_amounts import as_held, told_now
from dovetail.node.admission.resize_transaction import ResizeTransactions
from dovetail.node.admission.transaction import AdmissionTransactions
from dovetail.node.admission.turns import Turns
from dovetail.node.class_devices.injecting import InjectionCheck
from dovetail.node.class_devices.reserving import DeviceReservations
from dovetail.node.class_devices.source import check_has_none
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.metrics import AGENT_METRICS, SECONDS
from dovetail.node.common.pods import Pod, Sandbox
from dovetail.node.common.ports import AdmissionRejected, PluginError, Plugins, PodSource
from dovetail.node.common.reasons import POD_UNKNOWN, RESIZE_OF_POD, rejection
from dovetail.node.sources import runtime as told_by_runtime
from dovetail.node.state.pod_state import ContainerHolding
from dovetail.node.state.store import AppliedSettings, StateStore
from dovetail.node.wire.resource_plugin import PRE_START_CONTAINER, PreStartContainerRequest

ADMISSIONS = AGENT_METRICS.counter(
    "admissions_total",
    "Pods and late containers admitted or not, by reason.",
    "result",
    "reason",
)
ADMISSION_SECONDS = AGENT_METRICS.histogram(
    "admission_seconds", "From the question of the runtime to the answer.", SECONDS
)

LOG = structlog.get_logger("dovetail.node.manager")

GRACE_SECONDS = 30.0
"""For admissions under way when the agent ends."""


class AdmissionGate:
    def __init__(
        self,
        configuration: AdmissionConfiguration,
        plugins: Plugins,
        store: StateStore,
        source: PodSource | None,
        *,
        locks: PodLocks,
        removals: RemovePodQueue,
        turns: Turns,
        reservations: DeviceReservations,
        on_admitted: Callable[[str, float], None],
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        """Without a `source`, pods are what the runtime tells of them.

        `on_admitted` is called with the uid and the monotonic time of each pod that came through,
        while its lock is held.
        """
        self._configuration, self._plugins, self._source = configuration, plugins, source
        self._store, self._locks = store, locks
        self._on_admitted, self._grace_seconds = on_admitted, grace_seconds
        self._resizes = ResizeTransactions(configuration, plugins, store, turns)
        self.injection = InjectionCheck()
        self._transactions = AdmissionTransactions(
            configuration,
            plugins,
            store,
            removals,
            turns,
            resizes=self._resizes,
            reservations=reservations,
            injection=self.injection,
        )
        self._admissions = Background()
        self.log = AdmissionLog()

    async def admit_pod(self, sandbox: Sandbox) -> None:
        await self._admissions.complete(self._admit_pod(sandbox))

    async def admit_container(
        self, sandbox: Sandbox, container: str, asked: ContainerSettings
    ) -> ContainerSettings:
        return await self._admissions.complete(
            self._admit_container(sandbox, container, asked, starting=True)
        )

    async def admit_running(
        self, sandbox: Sandbox, container: str, asked: ContainerSettings
    ) -> None:
        """A container that runs already: plugins allocate, but hear of no start."""
        await self._admissions.complete(
            self._admit_container(sandbox, container, asked, starting=False)
        )

    async def resize_container(
        self, sandbox: Sandbox, container: str, asked: ContainerSettings
    ) -> ContainerSettings:
        """To what is asked for it now; raises AdmissionRejected, and then it has what it had."""
        return await self._admissions.complete(self._resize(sandbox, container, asked))

    async def resize_failed(self, sandbox: Sandbox, container: str) -> None:
        """The runtime did not do it."""
        await self._admissions.complete(self._take_back(sandbox, container))

    async def restore(self, sandbox: Sandbox, container: str) -> None:
        """After a resize that was cut short: have plugins know what the container has."""
        async with self._locks.of(sandbox.uid):
            pod = await self._known_pod(sandbox, container, ContainerSettings())
            await self._resizes.restore(pod, container)

    def settle(self, uid: str, container: str) -> bool:
        """The container runs on no more than it has; whether that was waited for."""
        return self._resizes.settle(uid, container)

    def current_settings(self, uid: str, container: str) -> ContainerSettings:
        holding = self._holding(uid, container)
        return settings_of(holding.allocations) if holding else ContainerSettings()

    def container_created(
        self, sandbox: Sandbox, container: str, id_: str, given: ContainerSettings
    ) -> None:
        if self._store.pod(sandbox.uid):
            self._store.applied[sandbox.uid, container] = AppliedSettings(id=id_, settings=given)
            self._resizes.settle(sandbox.uid, container)

    async def stop(self) -> None:
        """Let admissions end that nobody waits for any longer, or be taken back."""
        await self._admissions.stop(self._grace_seconds)

    async def _admit_pod(self, sandbox: Sandbox) -> None:
        with ADMISSION_SECONDS.time():
            async with self._locks.of(sandbox.uid), self._recorded(sandbox) as record:
                pod = await self._pod(sandbox)
                # One that is made anew has what it had: what it wishes for comes when it is given.
                held = self._store.pod(sandbox.uid)
                containers = [
                    as_held(each, held.containers.get(each.name) if held else None)
                    for each in resource_requests.in_order(pod.containers)
                ]
                await self._transactions.admit(pod, containers, record)

    async def _admit_container(
        self, sandbox: Sandbox, container: str, asked: ContainerSettings, *, starting: bool
    ) -> ContainerSettings:
        async with self._locks.of(sandbox.uid):
            holding = self._holding(sandbox.uid, container)
            if holding is None or holding.missing:
                async with self._recorded(sandbox, container) as record:
                    await self._admit_late(sandbox, container, asked, record)
            elif holding.told and told_now(holding, asked) != holding.told:
                try:
                    await self._resized(sandbox, container, asked)
                except AdmissionRejected as error:
                    # What its pod has as a whole stays: to keep it out would be for ever.
                    if error.reason != RESIZE_OF_POD:
                        raise
            self.remember_told(sandbox.uid, container, asked)
            holding = self._holding(sandbox.uid, container) or ContainerHolding()
            if starting:
                await self._pre_start(sandbox, container, holding)
            return settings_of(holding.allocations)

    async def _resize(
        self, sandbox: Sandbox, container: str, asked: ContainerSettings
    ) -> ContainerSettings:
        async with self._locks.of(sandbox.uid):
            holding = self._holding(sandbox.uid, container)
            if holding is not None and told_now(holding, asked) != holding.told:
                await self._resized(sandbox, container, asked)
            return self.current_settings(sandbox.uid, container)

    async def _resized(self, sandbox: Sandbox, name: str, asked: ContainerSettings) -> None:
        async with self._recorded(sandbox, name) as record:
            pod = await self._known_pod(sandbox, name, asked)
            holding = self._holding(sandbox.uid, name)
            assert holding is not None
            await self._resizes.resize(pod, name, told_now(holding, asked), record)

    async def _take_back(self, sandbox: Sandbox, container: str) -> None:
        async with self._locks.of(sandbox.uid):
            pod = await self._known_pod(sandbox, container, ContainerSettings())
            await self._resizes.take_back(pod, container)

    async def _known_pod(self, sandbox: Sandbox, name: str, asked: ContainerSettings) -> Pod:
        """With the container; where nobody knows it, as the runtime tells it."""
        known, holding = self._store.pod(sandbox.uid), self._holding(sandbox.uid, name)
        if known is None or holding is None:
            return await self._pod(sandbox)
        told = ContainerSettings(numbers={**asked.numbers, **told_now(holding, asked)})
        return await self._pod(told_by_runtime.creating(sandbox, name, told, known.containers))

    def remember_told(self, uid: str, container: str, asked: ContainerSettings) -> None:
        """Saved with the next thing that has to be: it is found out again from the runtime."""
        pod, holding = self._store.pod(uid), self._holding(uid, container)
        if pod is not None and holding is not None:
            told = replace(holding, told=told_now(holding, asked))
            self._store.put(replace(pod, containers={**pod.containers, container: told}))

    def _holding(self, uid: str, container: str) -> ContainerHolding | None:
        pod = self._store.pod(uid)
        return pod.containers.get(container) if pod and pod.admitted else None

    async def _admit_late(
        self, sandbox: Sandbox, name: str, asked: ContainerSettings, record: AdmissionRecord
    ) -> None:
        """A container that its pod did not have, or that had to do without something."""
        known = self._store.pod(sandbox.uid)
        told = told_by_runtime.creating(sandbox, name, asked, known.containers if known else ())
        pod = await self._pod(told)
        chosen = [each for each in pod.containers if each.name == name]
        if not chosen:
            words = f"the pod {sandbox.namespace}/{sandbox.name} has no container {name}"
            raise AdmissionRejected(POD_UNKNOWN, words, later=True)
        await self._transactions.admit(pod, chosen, record)

    async def _pod(self, sandbox: Sandbox) -> Pod:
        if self._source is None:
            return check_has_none(told_by_runtime.pod_of(sandbox))
        pod = await self._source.pod(sandbox)
        if pod is None:
            name = f"{sandbox.namespace}/{sandbox.name}"
            words = f"nobody knows a pod {name} with the uid {sandbox.uid}"
            raise AdmissionRejected(POD_UNKNOWN, words, later=True)
        return pod

    async def _pre_start(self, sandbox: Sandbox, container: str, holding: ContainerHolding) -> None:
        """Plugins that want to know hear that the container is about to start."""
        pod = self._store.pod(sandbox.uid)
        policy = OutagePolicy(
            self._configuration.outage_of(pod.role if pod else ""), self._configuration.outage_wait
        )
        question = PreStartContainerRequest(
            pod_uid=sandbox.uid,
            pod_namespace=sandbox.namespace,
            pod_name=sandbox.name,
            container_name=container,
        )
        for resource in sorted(holding.allocations):
            plugin = self._plugins.of(resource)
            if plugin is None or not plugin.options.pre_start_required:
                continue
            try:
                await policy.call(plugin, PRE_START_CONTAINER, question)
            except PluginError as error:
                if not policy.tolerates(error):
                    raise rejection(error, later=policy.later(error)) from error

    @asynccontextmanager
    async def _recorded(
        self, sandbox: Sandbox, container: str = ""
    ) -> AsyncIterator[AdmissionRecord]:
        """An admission: what comes of it is kept for those who ask, counted and logged."""
        record = AdmissionRecord(
            uid=sandbox.uid,
            namespace=sandbox.namespace,
            name=sandbox.name,
            container=container,
            at=time.time(),
        )
        try:
            yield record
        except AdmissionRejected as error:
            record.result, record.reason = "rejected", error.reason
            record.words, record.later = str(error), error.later
            record.explanation = error.explanation
            raise
        except BaseException as error:
            record.result, record.words = "failed", repr(error)
            raise
        else:
            self._on_admitted(sandbox.uid, time.monotonic())
            if failed := [each for each in record.resources if each.failure]:
                record.reason = failed[0].failure
                record.words = "; ".join(dict.fromkeys(each.missing for each in failed))
        finally:
            self.log.add(record)
            ADMISSIONS.labels(record.result, record.reason).inc()
            LOG.info(
                record.result,
                pod=f"{sandbox.namespace}/{sandbox.name}",
                uid=sandbox.uid,
                container=container or None,
                reason=record.reason or None,
                words=record.words or None,
            )
