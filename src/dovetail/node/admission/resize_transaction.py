"""The resize transaction: a container that runs is given other amounts, or keeps what it has.

The gate calls it under the pod's lock. Plugins are asked to allocate anew, which each of them does
in one step; what they can't undo is a part of it. So:

1. Intent: the container is marked with the resources to be asked for, and that is made durable.
2. In a turn, plugins tell hints and allocate for the new amounts. If one refuses, those that did
   not are asked for the old amounts again.
3. Commit: amounts and allocations are made durable. The mark stays until the container is seen to
   run on no more than it has: meanwhile nobody is let in who asks the same plugins, since they may
   give out what it left.

A crash leaves the mark. The reconciler then has the plugins asked for what was committed
(`restore`), brings the container into line, and takes the mark away (`settle`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress

import msgspec
import structlog

from dovetail.node.admission import resource_requests
from dovetail.node.admission.admission_log import AdmissionRecord
from dovetail.node.admission.configuration import AdmissionConfiguration, Outage
from dovetail.node.admission.merge_settings import settings_of
from dovetail.node.admission.outage_policy import OutagePolicy
from dovetail.node.admission.pod_admission import PodAdmission
from dovetail.node.admission.resize_amounts import (
    Told,
    as_held,
    as_told,
    at_first,
    changed_whole,
)
from dovetail.node.admission.resource_slot import (
    ResourceSlot,
    holdings,
    requests_of,
    slots,
    wholes,
)
from dovetail.node.admission.turns import Turns
from dovetail.node.common import pod_identity
from dovetail.node.common.pods import ContainerSpec, Pod
from dovetail.node.common.ports import AdmissionRejected, Plugins
from dovetail.node.common.reasons import (
    CHECKPOINT_FAILED,
    PLUGIN_DOWN,
    PLUGIN_REFUSED,
    PLUGIN_TIMEOUT,
    POD_UNKNOWN,
    RESIZE_OF_POD,
    RESIZE_UNDER_WAY,
)
from dovetail.node.state.pod_state import ContainerHolding, PodState, amount_texts, amounts_of
from dovetail.node.state.store import NotWritten, StateStore

LOG = structlog.get_logger("dovetail.node.manager")

Key = tuple[str, str]
"""The uid of a pod and the name of a container."""


class ResizeTransactions:
    """Whoever calls holds the lock of the pod."""

    def __init__(
        self,
        configuration: AdmissionConfiguration,
        plugins: Plugins,
        store: StateStore,
        turns: Turns,
    ) -> None:
        self._configuration, self._plugins = configuration, plugins
        self._store, self._turns = store, turns
        self._agreed: set[Key] = set()
        """Containers with a mark whose plugins know the amounts that we do."""
        self._previous: dict[Key, ContainerHolding] = {}
        """What those had that are on their way to the runtime."""
        self._settled = asyncio.Event()
        """Set with each mark that is taken away."""

    async def resize(self, pod: Pod, name: str, told: Told, record: AdmissionRecord) -> None:
        """To the amounts that are told; on AdmissionRejected the container has what it had."""
        before, key = self._held(pod.uid), (pod.uid, name)
        holding = before.containers[name]
        wanted = as_told(_named(pod, name), holding, told)
        record.role, record.type = pod_identity.identity_of(pod)
        self._check_whole(pod, wanted, before)
        own = self._changed(pod, wanted, before)
        record.resources = [each.record for each in own if each.container.name == name]
        asked = {each.request.resource for each in own if each.open}
        given = holding
        if asked:
            await self._mark(key, asked)
            given = await self._allocated(pod, wanted, own, asked, before)
        self._put(
            key,
            allocations=given.allocations,
            requests=amount_texts(wanted.requests),
            limits=amount_texts(wanted.limits),
            told=told,
        )
        if not asked:
            return
        self._agreed.add(key)
        self._previous[key] = holding
        try:
            await self._commit()
        except AdmissionRejected:
            await self.take_back(pod, name)
            raise

    async def take_back(self, pod: Pod, name: str) -> None:
        """The runtime did not do it: the container has what it had."""
        key = pod.uid, name
        previous = self._previous.pop(key, None)
        if previous is None or not self._marked(key):
            return
        self._agreed.discard(key)
        self._put(
            key,
            allocations=previous.allocations,
            requests=previous.requests,
            limits=previous.limits,
            told=previous.told,
        )
        await self.restore(pod, name)

    async def restore(self, pod: Pod, name: str) -> None:
        """Have plugins know what was committed; raises AdmissionRejected while they can't."""
        key = pod.uid, name
        if key in self._agreed or not (resources := self._marked(key)):
            return
        before = self._held(pod.uid)
        held = at_first(_named(pod, name), before.containers[name])
        try:
            found = await self._asked_again(pod, held, resources, before)
        except AdmissionRejected as error:
            if error.reason != PLUGIN_REFUSED:
                raise
            # Then it has what the plugin says, which the reconciler takes in.
            LOG.warning("resize not taken back", pod=pod.uid, container=name, why=str(error))
        else:
            self._put(key, allocations=found.allocations)
        self._agreed.add(key)
        await self._commit()

    def settle(self, uid: str, name: str) -> bool:
        """The container runs on what it has, or not at all; whether the mark is gone."""
        key = uid, name
        if not self._marked(key) or key not in self._agreed:
            return False
        self._agreed.discard(key)
        self._previous.pop(key, None)
        self._put(key, resizing=())
        self._settled.set()
        return True

    async def others_settled(self, key: Key, resources: Collection[str]) -> None:
        """Before a turn: wait for a moment for what is on its way to the runtime."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._configuration.settle_seconds):
                while unsettled(self._store, key, resources):
                    self._settled.clear()
                    await self._settled.wait()

    def check_settled(self, key: Key, resources: Collection[str]) -> None:
        """In a turn; raises AdmissionRejected."""
        if who := unsettled(self._store, key, resources):
            words = f"a resize of {who} is not through yet: it may still run on what it left"
            raise AdmissionRejected(RESIZE_UNDER_WAY, words, later=True)

    def _check_whole(self, pod: Pod, wanted: ContainerSpec, before: PodState) -> None:
        """What the pod has as a whole stays as it is. Raises AdmissionRejected."""
        now = _with(pod, wanted, before)
        then = msgspec.structs.replace(
            _with(pod, at_first(wanted, before.containers[wanted.name]), before),
            requests={**pod.requests, **amounts_of(before.whole)},
        )
        amounts = [
            {
                each.original: each.amount
                for resource, whole in wholes(one, self._plugins, self._configuration).items()
                if resource in before.pod_wide
                for each in (whole, *whole.besides)
            }
            for one in (then, now)
        ]
        if words := changed_whole(f"the pod {pod.namespace}/{pod.name}", *amounts):
            raise AdmissionRejected(RESIZE_OF_POD, words)

    def _changed(self, pod: Pod, wanted: ContainerSpec, before: PodState) -> list[ResourceSlot]:
        """The slots of the pod; those of the container whose amount is another are open."""
        holding = before.containers[wanted.name]
        past = requests_of(at_first(wanted, holding), self._plugins, self._configuration)
        found = self._slots(pod, wanted, before)
        for slot in found:
            other = slot.container.name != wanted.name or slot.borrowed
            if other or slot.plugin is None or slot.request.resource in before.pod_wide:
                continue
            if not holding.requests or slot.request not in past:
                slot.reopen()
        return found

    def _slots(self, pod: Pod, own: ContainerSpec, before: PodState) -> list[ResourceSlot]:
        """Settled as far as there is something: containers have what they have."""
        if pod_identity.is_skipped(pod, self._configuration.skip_owners, first=True):
            return []
        pod = _with(pod, own, before)
        containers = resource_requests.in_order(pod.containers)
        known = [each for each in containers if each.name in before.containers]
        found = slots(pod, known, before, self._plugins, self._configuration)
        for slot in found:
            if slot.open and slot.stored:
                slot.keep()
        return found

    async def _allocated(
        self,
        pod: Pod,
        wanted: ContainerSpec,
        own: Sequence[ResourceSlot],
        asked: Collection[str],
        before: PodState,
    ) -> ContainerHolding:
        admission = self._admission(_with(pod, wanted, before))
        await self.others_settled((pod.uid, wanted.name), asked)
        async with self._turns.taken(asked) as turn:
            admission.outage_policy.turn = turn
            try:
                self.check_settled((pod.uid, wanted.name), asked)
                await admission.decide(own)
                given = holdings([wanted], own, before)[wanted.name]
                settings_of(given.allocations)
            except BaseException as error:
                await self._give_back(pod, wanted.name, admission.plugins_told, before)
                if isinstance(error, AdmissionRejected):
                    raise _put_off(error) from error
                raise
        return given

    async def _give_back(
        self, pod: Pod, name: str, told: Collection[str], before: PodState
    ) -> None:
        """In the turn: plugins that may have the new amount are asked for the old one."""
        key = pod.uid, name
        if told:
            held = at_first(_named(pod, name), before.containers[name])
            try:
                found = await self._asked_again(pod, held, told, before, in_turn=True)
            except AdmissionRejected as error:
                LOG.warning(
                    "resize not taken back yet", pod=pod.uid, container=name, why=str(error)
                )
                return
            self._put(key, allocations=found.allocations)
        self._agreed.add(key)
        if self._held(pod.uid).containers[name].allocations == before.containers[name].allocations:
            self.settle(*key)

    async def _asked_again(
        self,
        pod: Pod,
        held: ContainerSpec,
        resources: Collection[str],
        before: PodState,
        *,
        in_turn: bool = False,
    ) -> ContainerHolding:
        own = self._slots(pod, held, before)
        for slot in own:
            if slot.container.name == held.name and slot.request.resource in resources:
                slot.reopen()
        admission = self._admission(_with(pod, held, before))
        if in_turn:
            await admission.decide(own)
        else:
            async with self._turns.taken(resources) as turn:
                admission.outage_policy.turn = turn
                await admission.decide(own)
        return holdings([held], own, before)[held.name]

    def _admission(self, pod: Pod) -> PodAdmission:
        """A container that runs can wait: whatever its role, a plugin that is down is no reason to
        go on without it."""
        policy = OutagePolicy(Outage.REJECT, 0.0)
        return PodAdmission(self._configuration, pod, pod_identity.identity_of(pod), policy)

    async def _mark(self, key: Key, resources: Collection[str]) -> None:
        self._agreed.discard(key)
        before = self._marked(key)
        self._put(key, resizing=tuple(sorted({*before, *resources})))
        try:
            await self._commit()
        except AdmissionRejected:
            self._put(key, resizing=before)
            raise

    def _marked(self, key: Key) -> tuple[str, ...]:
        pod = self._store.pod(key[0])
        holding = pod.containers.get(key[1]) if pod else None
        return holding.resizing if holding else ()

    def _held(self, uid: str) -> PodState:
        pod = self._store.pod(uid)
        assert pod is not None
        return pod

    def _put(self, key: Key, **changes: object) -> None:
        pod = self._held(key[0])
        changed = msgspec.structs.replace(pod.containers[key[1]], **changes)
        containers = {**pod.containers, key[1]: changed}
        self._store.put(msgspec.structs.replace(pod, containers=containers))

    async def _commit(self) -> None:
        try:
            await self._store.commit()
        except NotWritten as error:
            raise AdmissionRejected(CHECKPOINT_FAILED, str(error), later=True) from error


def unsettled(store: StateStore, key: Key, resources: Collection[str]) -> str:
    """A container, other than that one, that may run on more of these than it has."""
    for pod in store.pods.values():
        for name, holding in pod.containers.items():
            if (pod.uid, name) != key and not {*holding.resizing}.isdisjoint(resources):
                return f"{pod.namespace}/{pod.name}, container {name},"
    return ""


def _with(pod: Pod, own: ContainerSpec, before: PodState) -> Pod:
    """With this container, and its others as they are."""
    return msgspec.structs.replace(
        pod,
        containers=tuple(
            own if each.name == own.name else as_held(each, before.containers.get(each.name))
            for each in pod.containers
        ),
    )


def _named(pod: Pod, name: str) -> ContainerSpec:
    found = next((each for each in pod.containers if each.name == name), None)
    if found is None:
        words = f"the pod {pod.namespace}/{pod.name} has no container {name}"
        raise AdmissionRejected(POD_UNKNOWN, words, later=True)
    return found


def _put_off(error: AdmissionRejected) -> AdmissionRejected:
    """A plugin that is away comes back: until then the container has what it has."""
    away = error.reason in (PLUGIN_DOWN, PLUGIN_TIMEOUT)
    return AdmissionRejected(
        error.reason, str(error), later=error.later or away, explanation=error.explanation
    )
