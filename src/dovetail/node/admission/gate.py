"""The gate: pods and containers are admitted, told what is theirs, and released.

What is done to one pod is done in turn; different pods do not wait for each other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from math import inf
from typing import TypeVar

import structlog

from dovetail.aio.background import Background
from dovetail.node.admission import resource_requests
from dovetail.node.admission.admission_log import AdmissionLog, AdmissionRecord
from dovetail.node.admission.configuration import AdmissionConfiguration
from dovetail.node.admission.merge_settings import settings_of
from dovetail.node.admission.outage_policy import OutagePolicy
from dovetail.node.admission.pod_locks import PodLocks
from dovetail.node.admission.transaction import AdmissionTransactions
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.metrics import AGENT_METRICS, SECONDS
from dovetail.node.common.pods import Pod, Sandbox
from dovetail.node.common.ports import AdmissionRejected, PluginError, Plugins, PodSource, Runtime
from dovetail.node.common.reasons import POD_UNKNOWN, rejection
from dovetail.node.reconcile.pod_liveness import PodLiveness, unlisted
from dovetail.node.reconcile.remove_pod_queue import RemovePodQueue
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
T = TypeVar("T")

GRACE = 30.0
"""Seconds for admissions under way when the agent ends."""


class Manager:
    """A `ports.Gate`."""

    def __init__(
        self,
        configuration: AdmissionConfiguration,
        plugins: Plugins,
        store: StateStore,
        source: PodSource | None,
    ) -> None:
        """Without a `source`, pods are what the runtime tells of them."""
        self._configuration, self._plugins, self._source = configuration, plugins, source
        self.store, self.records = store, AdmissionLog()
        self._locks = PodLocks()
        self.removals = RemovePodQueue(store, plugins, self._locks)
        self._transactions = AdmissionTransactions(configuration, plugins, store, self.removals)
        self.look_soon = asyncio.Event()
        """Set when a sandbox went: it is worth a look whether its pod did."""
        self._absences = PodLiveness()
        self._touched: dict[str, float] = {}
        """When pods came by, on the monotonic clock: what was seen before does not count."""
        self._admissions = Background()

    async def admit(self, sandbox: Sandbox) -> None:
        await self._admissions.complete(self._admit(sandbox))

    async def settings(
        self, sandbox: Sandbox, container: str, asked: ContainerSettings
    ) -> ContainerSettings:
        return await self._admissions.complete(self._settings(sandbox, container, asked))

    def held(self, uid: str, container: str) -> ContainerSettings:
        holding = self._holding(uid, container)
        return settings_of(holding.allocations) if holding else ContainerSettings()

    async def created(
        self, sandbox: Sandbox, container: str, id_: str, given: ContainerSettings
    ) -> None:
        if self.store.pod(sandbox.uid):
            self.store.applied[sandbox.uid, container] = AppliedSettings(id=id_, settings=given)

    async def gone(self, sandbox: Sandbox) -> None:
        self._absences.removed(sandbox.uid)
        self.look_soon.set()

    async def collect(self, runtime: Runtime, period: float) -> Sequence[str]:
        """Release pods that are over; their uids. Raises RuntimeRefused.

        Without a source, a pod is over if it had no sandbox for a whole `period`, in seconds.
        """
        looked = time.monotonic()
        sandboxes = {each.uid for each in await runtime.sandboxes()}
        if self._source is None:
            self._absences.look(self.store.pods, sandboxes, looked)
            over = self._absences.longer_than(period, looked)
        else:
            active = await self._source.active()
            over = set() if active is None else unlisted(self.store.pods, active)
        # Together, so that they share writes and none waits for the plugins of another.
        going = sorted(over - sandboxes)
        gone = await asyncio.gather(*(self.release(uid, looked) for uid in going))
        return [uid for uid, released in zip(going, gone, strict=True) if released]

    async def release(self, uid: str, looked: float = inf) -> bool:
        """The pod is over: forget it, and tell its plugins as soon as they can be told.

        Not if it came by after it was `looked` for, on the monotonic clock.
        """
        async with self._locks.of(uid):
            pod = self.store.pod(uid)
            if pod is None or self._touched.get(uid, 0.0) > looked:
                return False
            self.store.drop(uid, pod.plugins)
            self._absences.forget(uid)
            self._touched.pop(uid, None)
            await self.removals.save()
            await self.removals.attempt(uid)
            await self.removals.save()
        LOG.info("pod released", pod=f"{pod.namespace}/{pod.name}", uid=uid)
        return True

    async def stop(self) -> None:
        """Let admissions end that nobody waits for any longer, or be taken back."""
        await self._admissions.stop(GRACE)

    async def _admit(self, sandbox: Sandbox) -> None:
        with ADMISSION_SECONDS.time():
            async with self._locks.of(sandbox.uid), self._recorded(sandbox) as record:
                pod = await self._pod(sandbox)
                containers = resource_requests.in_order(pod.containers)
                await self._transactions.admit(pod, containers, record)

    async def _settings(
        self, sandbox: Sandbox, container: str, asked: ContainerSettings
    ) -> ContainerSettings:
        async with self._locks.of(sandbox.uid):
            holding = self._holding(sandbox.uid, container)
            if holding is None or holding.missing:
                async with self._recorded(sandbox, container) as record:
                    await self._admit_late(sandbox, container, asked, record)
                holding = self._holding(sandbox.uid, container) or ContainerHolding()
            await self._pre_start(sandbox, container, holding)
            return settings_of(holding.allocations)

    def _holding(self, uid: str, container: str) -> ContainerHolding | None:
        pod = self.store.pod(uid)
        return pod.containers.get(container) if pod and pod.admitted else None

    async def _admit_late(
        self, sandbox: Sandbox, name: str, asked: ContainerSettings, record: AdmissionRecord
    ) -> None:
        """A container that its pod did not have, or that had to do without something."""
        pod = await self._pod(sandbox)
        if self._source is None:
            known = self.store.pod(sandbox.uid)
            pod = told_by_runtime.with_container(pod, name, asked, known)
        chosen = [each for each in pod.containers if each.name == name]
        if not chosen:
            words = f"the pod {sandbox.namespace}/{sandbox.name} has no container {name}"
            raise AdmissionRejected(POD_UNKNOWN, words, later=True)
        await self._transactions.admit(pod, chosen, record)

    async def _pod(self, sandbox: Sandbox) -> Pod:
        if self._source is None:
            return told_by_runtime.pod_of(sandbox)
        pod = await self._source.pod(sandbox)
        if pod is None:
            name = f"{sandbox.namespace}/{sandbox.name}"
            words = f"nobody knows a pod {name} with the uid {sandbox.uid}"
            raise AdmissionRejected(POD_UNKNOWN, words, later=True)
        return pod

    async def _pre_start(self, sandbox: Sandbox, container: str, holding: ContainerHolding) -> None:
        """Plugins that want to know hear that the container is about to start."""
        pod = self.store.pod(sandbox.uid)
        asking = OutagePolicy(
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
                await asking.ask(plugin, PRE_START_CONTAINER, question)
            except PluginError as error:
                if not asking.tolerates(error):
                    raise rejection(error, later=asking.later(error)) from error

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
            now = time.monotonic()
            self._touched[sandbox.uid] = now
            self._absences.admitted(sandbox.uid, now)
            if failed := [each for each in record.resources if each.failure]:
                record.reason = failed[0].failure
                record.words = "; ".join(dict.fromkeys(each.missing for each in failed))
        finally:
            self.records.add(record)
            ADMISSIONS.labels(record.result, record.reason).inc()
            LOG.info(
                record.result,
                pod=f"{sandbox.namespace}/{sandbox.name}",
                uid=sandbox.uid,
                container=container or None,
                reason=record.reason or None,
                words=record.words or None,
            )
