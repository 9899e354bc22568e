"""The reconcile loop: running containers are kept as the plugins want them; the manager runs it.

Each look takes in what plugins say now, compares what every container should have with what it was
given last and with what the runtime shows, and updates those that differ. Then pods that are over
are released. A plugin or a container that makes trouble is waited for without holding up others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

import structlog

from dovetail.aio.background import NamedBackground
from dovetail.aio.backoff import KeyedBackoff
from dovetail.node.admission.gate import AdmissionGate
from dovetail.node.admission.merge_settings import settings_of
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.metrics import AGENT_METRICS, SECONDS
from dovetail.node.common.ports import (
    AdmissionRejected,
    ContainerPhase,
    ObservedContainer,
    PluginError,
    Plugins,
    Runtime,
    RuntimeRefused,
)
from dovetail.node.reconcile.adoption import (
    FIRST_WAIT_SECONDS,
    LONGEST_WAIT_SECONDS,
    Adoption,
    Key,
    holding_of,
)
from dovetail.node.reconcile.pod_liveness import PodCollector, Told
from dovetail.node.reconcile.resizes import UnfinishedResizes
from dovetail.node.reconcile.settings_diff import description_of, difference, drift_of, is_narrowing
from dovetail.node.registry.poll import ANSWER_WAIT_SECONDS, PluginAnswer, PluginPoll
from dovetail.node.state.pod_state import AgentState, Allocations, refreshed_allocations
from dovetail.node.state.store import AppliedSettings, NotWritten, StateStore
from dovetail.node.wire.resource_plugin import (
    GET_RESOURCES_ALLOCATION,
    GetResourcesAllocationRequest,
    GetResourcesAllocationResponse,
    ResourceAllocation,
)

UPDATES = AGENT_METRICS.counter(
    "container_updates_total",
    "Updates of running containers: applied, refused, or put off after a refusal.",
    "result",
)
DRIFT = AGENT_METRICS.counter(
    "drift_total", "Containers found with other values than were applied last."
)
RECONCILE_SECONDS = AGENT_METRICS.histogram(
    "reconcile_seconds", "One look at all plugins and containers.", SECONDS
)

LOG = structlog.get_logger("dovetail.node.reconcile")

ALIVE = (ContainerPhase.CREATED, ContainerPhase.RUNNING)
PERIOD_SECONDS = 3.0
"""Between looks, if nothing happens."""
SHORTEST_PAUSE_SECONDS = 0.2
"""Between two looks, however much happens."""
AT_ONCE = 8
"""Containers that are updated at the same time."""

Answers = Mapping[str, PluginAnswer[GetResourcesAllocationResponse, AgentState]]


class PendingUpdate(NamedTuple):
    """A container that is not as it should be."""

    observed: ObservedContainer
    wanted: ContainerSettings
    change: ContainerSettings

    @property
    def key(self) -> Key:
        return self.observed.pod_uid, self.observed.container

    @property
    def gives(self) -> bool:
        return is_narrowing(self.change, self.observed.applied)


class Reconciler:
    def __init__(
        self,
        gate: AdmissionGate,
        collector: PodCollector,
        store: StateStore,
        plugins: Plugins,
        runtime: Runtime,
        *,
        period: float = PERIOD_SECONDS,
        shortest_pause: float = SHORTEST_PAUSE_SECONDS,
        wait_seconds: float = ANSWER_WAIT_SECONDS,
        names: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`names`: resources that are served by the plugin of another name.

        `wait_seconds`: for a slow plugin or task, before the others are gone on with.
        """
        self._names = names or {}
        self._collector, self._store = collector, store
        self._plugins, self._runtime = plugins, runtime
        self._period, self._shortest_pause, self._clock = period, shortest_pause, clock
        self._polls: PluginPoll[
            GetResourcesAllocationRequest, GetResourcesAllocationResponse, AgentState
        ] = PluginPoll(GET_RESOURCES_ALLOCATION, GetResourcesAllocationRequest(), wait_seconds)
        self._updates: KeyedBackoff[Key] = KeyedBackoff(FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS)
        self._background = NamedBackground(wait_seconds, LOG)
        self._adoption = Adoption(gate, store, clock)
        self._gate, self._resizes = gate, UnfinishedResizes(gate, store, clock)
        self._drifts: dict[Key, ContainerSettings] = {}

    async def run(self) -> None:
        """For ever: every period, and soon after a sandbox went."""
        try:
            while True:
                self._collector.look_soon.clear()
                try:
                    await self.look()
                except Exception:
                    LOG.exception("look failed")
                await self._pause()
        finally:
            await self.stop()

    async def stop(self) -> None:
        await self._polls.stop()
        await self._background.stop()

    async def look(self) -> None:
        with RECONCILE_SECONDS.time():
            # 1. What do plugins say?
            for plugin in self._plugins.all():
                self._store.remember(plugin.resource, plugin.options)
            asked = [
                each for each in self._plugins.all() if each.up and each.options.need_reconcile
            ]
            answers = await self._polls.ask(asked, self._store.state)
            await self._take_in(answers)
            # 2. What is there?
            before = self._store.state
            try:
                alive = alive_of(await self._runtime.containers())
            except RuntimeRefused as error:
                LOG.warning("containers not seen", why=str(error))
            else:
                # 3. Who has not been given anything, and whose plugin does not know any longer?
                await self._background.run("give", partial(self._give, answers, alive, before))
                # 4. Who is not as they should be?
                await self._update(alive)
            # 5. Who is over?
            await self._background.run("collect", partial(self._collect, told_by(answers)))

    async def _pause(self) -> None:
        # Many may go at once: one look is for all of them.
        shortest = min(self._shortest_pause, self._period)
        await asyncio.sleep(shortest)
        try:
            async with asyncio.timeout(self._period - shortest):
                await self._collector.look_soon.wait()
        except TimeoutError:
            return

    async def _take_in(self, answers: Answers) -> None:
        """Allocations as plugins tell them."""
        for resource, answer in answers.items():
            if isinstance(answer.value, PluginError):
                continue
            for uid, containers in sorted(answer.value.pod_resources.items()):
                for name, told in sorted(containers.container_resources.items()):
                    for each in self._meant(uid, name, resource):
                        if self._same((uid, each), resource, answer.context):
                            self._refresh(resource, uid, each, self._own(resource, told))
        await self._save()

    def _meant(self, uid: str, name: str, resource: str) -> Iterable[str]:
        """The containers that a plugin tells of: what a pod has as a whole is under no name."""
        pod = self._store.pod(uid)
        if name or pod is None or resource not in pod.pod_wide:
            return (name,)
        return sorted(
            each
            for each, holding in pod.containers.items()
            if resource in holding.allocations or resource in holding.missing
        )

    def _same(self, key: Key, resource: str, before: AgentState) -> bool:
        """Whether it has what it had when the plugin was asked: else the answer is out of date."""
        then = holding_of(before.pods.get(key[0]), key[1])
        now = holding_of(self._store.pod(key[0]), key[1])
        if then is None or now is None:
            return False
        return then.allocations.get(resource) == now.allocations.get(resource)

    def _own(self, resource: str, told: ResourceAllocation) -> Allocations:
        """What the plugin may tell of: its resource, by either name, and what nobody else gives."""
        found = {}
        for name, info in told.resource_allocation.items():
            alias = self._names.get(name) == resource and resource not in told.resource_allocation
            plugin = self._plugins.of(resource if alias else name)
            if plugin is None or plugin.resource == resource:
                found[resource if alias else name] = info
        return found

    def _refresh(self, resource: str, uid: str, container: str, told: Allocations) -> None:
        holding = holding_of(self._store.pod(uid), container)
        if holding is None:
            return
        try:
            settings_of(refreshed_allocations(holding.allocations, told))
        except AdmissionRejected as error:
            LOG.warning(
                "answer not used", resource=resource, pod=uid, container=container, why=str(error)
            )
        else:
            self._store.refresh(uid, container, told)

    async def _save(self) -> None:
        try:
            await self._store.commit()
        except NotWritten as error:
            # Plugins tell it again after a restart.
            LOG.warning("state not saved", why=str(error))

    async def _give(
        self, answers: Answers, alive: Mapping[Key, ObservedContainer], before: AgentState
    ) -> None:
        await self._resizes.look(alive, before)
        resources = {each.resource for each in self._plugins.all()}
        await self._adoption.adopt(await self._runtime.sandboxes(), alive, resources)
        await self._give_again(answers, alive)
        self._adoption.keep(alive)

    async def _collect(self, told: Told) -> None:
        try:
            await self._collector.collect(self._runtime, self._period, told)
        except RuntimeRefused as error:
            LOG.warning("sandboxes not seen", why=str(error))

    async def _give_again(self, answers: Answers, alive: Mapping[Key, ObservedContainer]) -> None:
        for resource, answer in answers.items():
            if isinstance(answer.value, PluginError):
                continue
            told = {
                (uid, name)
                for uid, pod in answer.value.pod_resources.items()
                for name, each in pod.container_resources.items()
                if each.resource_allocation
            }
            pods = {uid for uid, _ in told}
            for key in sorted(alive.keys() - told):
                if self._is_pod_wide(key, resource) and key[0] in pods:
                    continue
                if self._same(key, resource, answer.context) and self._needs(key, resource):
                    await self._adoption.give_again(key, resource, alive[key])

    def _is_pod_wide(self, key: Key, resource: str) -> bool:
        pod = self._store.pod(key[0])
        return pod is not None and resource in pod.pod_wide

    def _needs(self, key: Key, resource: str) -> bool:
        holding = holding_of(self._store.pod(key[0]), key[1])
        if holding is None:
            return False
        return resource in holding.allocations or resource in holding.missing

    async def _update(self, alive: Mapping[Key, ObservedContainer]) -> None:
        pending = [each for one in alive.values() if (each := self._pending(one))]
        self._updates.retain(lambda key: key in alive)
        self._drifts = {key: each for key, each in self._drifts.items() if key in alive}
        # Those who give CPUs away go first: who gets them is not to share them, if only for a bit.
        for giving in (True, False):
            group = [each for each in pending if each.gives is giving]
            await _few_at_once(self._apply(each) for each in group)

    def _pending(self, observed: ObservedContainer) -> PendingUpdate | None:
        key = observed.pod_uid, observed.container
        holding = holding_of(self._store.pod(observed.pod_uid), observed.container)
        if holding is None:
            return None
        last = self._store.applied.get(key)
        applied = last.settings if last and last.id == observed.id else ContainerSettings()
        self._watch(key, applied, observed.applied)
        wanted = settings_of(holding.allocations)
        change = difference(wanted, applied, observed.applied)
        if change == ContainerSettings():
            self._updates.forget(key)
            self._gate.settle(*key)
            self._store.applied[key] = AppliedSettings(id=observed.id, settings=wanted)
            return None
        if self._updates.is_waiting(key, change, self._clock()):
            UPDATES.labels("put_off").inc()
            return None
        return PendingUpdate(observed, wanted, change)

    def _watch(self, key: Key, applied: ContainerSettings, observed: ContainerSettings) -> None:
        """Report what somebody else changed, once."""
        drift = drift_of(applied, observed)
        if drift == ContainerSettings():
            self._drifts.pop(key, None)
        elif self._drifts.get(key) != drift:
            self._drifts[key] = drift
            DRIFT.inc()
            LOG.warning("drift", pod=key[0], container=key[1], found=description_of(drift))

    async def _apply(self, pending: PendingUpdate) -> None:
        observed, wanted, change = pending
        log = LOG.bind(pod=observed.pod_uid, container=observed.container, id=observed.id)
        wait = self._updates.record(pending.key, change, self._clock())
        try:
            await self._runtime.update(observed.id, change)
        except RuntimeRefused as error:
            UPDATES.labels("refused").inc()
            log.warning(
                "update refused", change=description_of(change), again_in=wait, why=str(error)
            )
        else:
            UPDATES.labels("applied").inc()
            log.info("updated", change=description_of(change))
            self._store.applied[pending.key] = AppliedSettings(id=observed.id, settings=wanted)
            self._gate.settle(*pending.key)


def told_by(answers: Answers) -> Told:
    """The pods that plugins hold something for."""
    found: dict[str, set[str]] = {}
    for resource, answer in answers.items():
        if not isinstance(answer.value, PluginError):
            for uid in answer.value.pod_resources:
                found.setdefault(uid, set()).add(resource)
    return found


def alive_of(containers: Iterable[ObservedContainer]) -> dict[Key, ObservedContainer]:
    """Those that run or are about to; of two with one name, the one with the higher id."""
    chosen = [each for each in containers if each.state in ALIVE and each.pod_uid]
    ordered = sorted(chosen, key=lambda each: (each.pod_uid, each.container, each.id))
    return {(each.pod_uid, each.container): each for each in ordered}


async def _few_at_once(work: Iterable[Awaitable[None]]) -> None:
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(each: Awaitable[None]) -> None:
        async with turn:
            await each

    await asyncio.gather(*map(one, work))
