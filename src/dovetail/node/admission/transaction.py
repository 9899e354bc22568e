"""The admission transaction: a pod is admitted as a whole or not at all, whatever fails in between.

It is a write-ahead intent with compensation; the gate calls it under the pod's lock:

1. Intent: which plugins will be asked is made durable before any of them is.
2. The plugins tell hints and allocate (`pod_admission`), in a turn (`turns`): nothing else is
   allocated between hints and allocations, nor seen by others if it is taken back.
3. Commit: the allocations are made durable; or else undo: the pod is forgotten, and the plugins
   that may know of it are told to take it back, now or when they return (`remove_pod_queue`).

So a crash at any point leaves plugins with nothing that the next start would not take back: it
undoes every intent that has no commit.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import msgspec

from dovetail.node.admission.admission_log import AdmissionRecord
from dovetail.node.admission.configuration import AdmissionConfiguration
from dovetail.node.admission.merge_settings import settings_of
from dovetail.node.admission.outage_policy import OutagePolicy
from dovetail.node.admission.pod_admission import PodAdmission
from dovetail.node.admission.remove_pod_queue import RemovePodQueue
from dovetail.node.admission.resize_transaction import ResizeTransactions
from dovetail.node.admission.resource_slot import (
    ResourceSlot,
    asked_as_whole,
    check_served,
    holdings,
    slots,
)
from dovetail.node.admission.turns import Turns
from dovetail.node.class_devices.injecting import InjectionCheck
from dovetail.node.class_devices.reserving import DeviceReservations
from dovetail.node.common import pod_identity
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.pod_identity import PodIdentity
from dovetail.node.common.pods import ContainerSpec, Pod
from dovetail.node.common.ports import AdmissionRejected, PluginError, Plugins
from dovetail.node.common.reasons import CHECKPOINT_FAILED
from dovetail.node.state.pod_state import ContainerHolding, PodState
from dovetail.node.state.store import NotWritten, StateStore

Undo = Callable[[], Awaitable[None]]


class AdmissionTransactions:
    """Whoever calls holds the lock of the pod."""

    def __init__(
        self,
        configuration: AdmissionConfiguration,
        plugins: Plugins,
        store: StateStore,
        removals: RemovePodQueue,
        turns: Turns,
        *,
        resizes: ResizeTransactions,
        reservations: DeviceReservations,
        injection: InjectionCheck,
    ) -> None:
        self._configuration, self._plugins = configuration, plugins
        self._store, self._removals, self._turns = store, removals, turns
        self._resizes, self._reservations, self._injection = resizes, reservations, injection

    async def admit(
        self, pod: Pod, containers: Sequence[ContainerSpec], record: AdmissionRecord
    ) -> None:
        """All these containers; on AdmissionRejected the pod has what it had before."""
        who = pod_identity.identity_of(pod)
        record.role, record.type = who
        configuration = self._configuration
        outage_policy = OutagePolicy(configuration.outage_of(who.role), configuration.outage_wait)
        before = self._store.pod(pod.uid)
        draft, pod, containers = await self._reserved(_draft(pod, who, before), pod, containers)
        admission = PodAdmission(configuration, pod, who, outage_policy)
        undo = partial(self._undo, pod.uid, containers, before, admission.plugins_told)
        async with AsyncExitStack() as stack:
            async with _or_else(undo):
                wanted = self._wanted(pod, containers, before, record)
                draft = await self._announce(admission, draft, wanted)
                asked = {each.request.resource for each in wanted if each.open and each.plugin}
                if plugins := [each.plugin for each in wanted if each.open and each.plugin]:
                    await outage_policy.await_up(plugins)
                    await self._resizes.others_settled((pod.uid, record.container), asked)
                    taken = self._turns.taken(draft.plugins)
                    outage_policy.turn = await stack.enter_async_context(taken)
            # In the turn, so that nobody sees what is taken back.
            async with _or_else(undo):
                self._resizes.check_settled((pod.uid, record.container), asked)
                await self._decide(admission, wanted, record)
        async with _or_else(partial(self._undo_in_turn, draft, undo)):
            held = holdings(containers, wanted, before)
            for each in containers:
                settings = settings_of(held[each.name].allocations)
                if each.chosen:
                    await self._injection.check(settings)
            whole = asked_as_whole(pod, wanted, admission.pod_wide)
            draft = msgspec.structs.replace(draft, whole={**draft.whole, **whole})
            await self._conclude(draft, held, admission.pod_wide)

    async def _reserved(
        self, draft: PodState, pod: Pod, containers: Sequence[ContainerSpec]
    ) -> tuple[PodState, Pod, Sequence[ContainerSpec]]:
        """With its devices, if it has any: they are the pod's from now on."""
        if not any(each.chosen for each in pod.containers):
            return draft, pod, containers
        await self._injection.check(ContainerSettings())
        draft = await self._reservations.reserve(draft, containers)
        known = {each.name: each for each in self._reservations.resolved(draft, pod.containers)}
        pod = msgspec.structs.replace(pod, containers=tuple(known.values()))
        return draft, pod, [known[each.name] for each in containers]

    async def _decide(
        self, admission: PodAdmission, wanted: Sequence[ResourceSlot], record: AdmissionRecord
    ) -> None:
        if record.container:
            await admission.by_container(wanted)
        else:
            await admission.decide(wanted)

    async def _undo_in_turn(self, draft: PodState, undo: Undo) -> None:
        async with self._turns.taken(draft.plugins):
            await undo()

    def _wanted(
        self,
        pod: Pod,
        containers: Sequence[ContainerSpec],
        before: PodState | None,
        record: AdmissionRecord,
    ) -> list[ResourceSlot]:
        configuration = self._configuration
        skipped = pod_identity.is_skipped(pod, configuration.skip_owners, first=before is None)
        if skipped and not any(each.chosen for each in containers):
            record.result = "skipped"
            return []
        wanted = slots(pod, containers, before, self._plugins, configuration)
        if skipped:
            wanted = [each for each in wanted if each.chosen]
        check_served(containers, wanted)
        record.resources = [each.record for each in wanted]
        return wanted

    async def _announce(
        self, admission: PodAdmission, draft: PodState, wanted: Sequence[ResourceSlot]
    ) -> PodState:
        """Write down who will be asked, after they forgot what they knew of an earlier attempt."""
        asked = {slot.request.resource for slot in wanted if slot.open}
        if not asked:
            return draft
        for resource in sorted(asked):
            try:
                await self._removals.settle(draft.uid, resource)
            except PluginError as error:
                for slot in wanted:
                    if slot.open and slot.request.resource == resource:
                        admission.outage_policy.settle(slot, error)
        announced = msgspec.structs.replace(draft, plugins=_union(draft.plugins, asked))
        if announced != self._store.pod(draft.uid):
            self._store.put(announced)
            for plugin in self._plugins.all():
                self._store.remember(plugin.resource, plugin.options)
            await self._store.commit()
        elif announced.devices:
            await self._store.commit()
        return announced

    async def _conclude(
        self, draft: PodState, held: Mapping[str, ContainerHolding], pod_wide: Collection[str]
    ) -> None:
        # Containers that run may have been brought up to date meanwhile.
        current = self._store.pod(draft.uid) or draft
        self._store.put(
            msgspec.structs.replace(
                draft,
                admitted=True,
                containers=dict(sorted({**current.containers, **held}.items())),
                pod_wide=_union(draft.pod_wide, pod_wide),
            )
        )
        await self._store.commit()

    async def _undo(
        self,
        uid: str,
        containers: Sequence[ContainerSpec],
        before: PodState | None,
        told: Collection[str],
    ) -> None:
        if before is None:
            if self._store.pod(uid) is not None:
                self._store.drop(uid, told)
        else:
            # It may run. What was added to it goes when it does: plugins can't take back a part.
            current = self._store.pod(uid) or before
            names = {each.name for each in containers}
            others = {name: held for name, held in current.containers.items() if name not in names}
            had = {name: held for name, held in before.containers.items() if name in names}
            self._store.put(
                msgspec.structs.replace(
                    before,
                    plugins=_union(before.plugins, told),
                    containers=dict(sorted({**others, **had}.items())),
                    devices={
                        **before.devices,
                        **{name: ids for name, ids in current.devices.items() if name in told},
                    },
                )
            )
        await self._removals.save()
        await self._removals.attempt(uid)


@asynccontextmanager
async def _or_else(undo: Undo) -> AsyncIterator[None]:
    """What fails inside is undone, and what could not be saved is a rejection."""
    try:
        yield
    except BaseException as error:
        await undo()
        if isinstance(error, NotWritten):
            raise AdmissionRejected(CHECKPOINT_FAILED, str(error), later=True) from error
        raise


def _draft(pod: Pod, who: PodIdentity, before: PodState | None) -> PodState:
    return PodState(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        role=who.role,
        type=who.type,
        labels=dict(sorted(pod.labels.items())),
        annotations=dict(sorted(pod.annotations.items())),
        admitted=before.admitted if before else False,
        plugins=before.plugins if before else (),
        containers=before.containers if before else {},
        pod_wide=before.pod_wide if before else (),
        whole=before.whole if before else {},
        at=before.at if before else time.time(),
        devices=before.devices if before else {},
    )


def _union(some: Collection[str], more: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted({*some, *more}))
