"""Adoption: containers that run without allocations, or that a plugin forgot, are admitted.

They started before the agent did, or while it was away. Plugins are asked as if the container were
about to start. If they refuse it keeps running as it does, and they are asked again later: only a
person may stop it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from functools import partial

import msgspec
import structlog

from dovetail.aio.backoff import KeyedBackoff
from dovetail.node.admission.gate import AdmissionGate
from dovetail.node.common.pod_identity import SKIP
from dovetail.node.common.pods import Sandbox
from dovetail.node.common.ports import AdmissionRejected, ObservedContainer
from dovetail.node.state.pod_state import ContainerHolding, PodState
from dovetail.node.state.store import StateStore

LOG = structlog.get_logger("dovetail.node.reconcile")

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 3.0, 300.0
"""Until the same is tried again on a container: twice as long after each failure."""

Key = tuple[str, str]
"""The uid of a pod and the name of a container."""


class Adoption:
    def __init__(self, gate: AdmissionGate, store: StateStore, clock: Callable[[], float]) -> None:
        self._gate, self._store, self._clock = gate, store, clock
        self._attempts: KeyedBackoff[tuple[Key, str]] = KeyedBackoff(
            FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS
        )
        """By what is done, too: of two resources that are refused, each waits for itself."""
        self._asked: dict[Key, Set[str]] = {}
        """Of those adopted: the resources that had a plugin then."""

    async def adopt(
        self,
        sandboxes: Sequence[Sandbox],
        alive: Mapping[Key, ObservedContainer],
        resources: Set[str],
    ) -> None:
        """Have pods admitted that run and were never asked about.

        `resources`: those that have a plugin. When the agent starts they come one after the other,
        so whoever was adopted is for plugins that come later, too.
        """
        known = {each.uid: each for each in sandboxes}
        strangers = [key for key in alive if key[0] in known and self._holding(key) is None]
        for key in strangers:
            adopting = partial(self._adopt, known[key[0]], alive[key])
            if await self._try(key, "adopted", adopting) and not self._skipped(key):
                self._asked[key] = resources
        for key in sorted(self._asked.keys() & alive.keys()):
            later = resources - self._asked[key]
            if later and self._holding(key) is not None:
                giving = partial(self._give_again, later, alive[key])
                if await self._try(key, f"{', '.join(sorted(later))} allocated", giving):
                    self._asked[key] = resources

    async def give_again(self, key: Key, resource: str, observed: ObservedContainer) -> None:
        """Have the plugin allocate what it does not know of any longer."""
        again = partial(self._give_again, {resource}, observed)
        await self._try(key, f"{resource} allocated again", again)

    def keep(self, alive: Mapping[Key, ObservedContainer]) -> None:
        """Nothing else is of interest any longer."""
        self._attempts.retain(lambda attempt: attempt[0] in alive)
        self._asked = {key: each for key, each in self._asked.items() if key in alive}

    def _holding(self, key: Key) -> ContainerHolding | None:
        return holding_of(self._store.pod(key[0]), key[1])

    def _skipped(self, key: Key) -> bool:
        """Whether it said not to be admitted the first time, which adopting it was."""
        pod = self._store.pod(key[0])
        return pod is not None and pod.annotations.get(SKIP) == "true"

    async def _try(self, key: Key, what: str, work: Callable[[], Awaitable[None]]) -> bool:
        """Whether it was done."""
        now = self._clock()
        if self._attempts.is_waiting((key, what), None, now):
            return False
        wait = self._attempts.record((key, what), None, now)
        log = LOG.bind(pod=key[0], container=key[1])
        try:
            await work()
        except AdmissionRejected as error:
            log.warning(f"not {what}", reason=error.reason, again_in=wait, why=str(error))
            return False
        log.info(what)
        return True

    async def _adopt(self, sandbox: Sandbox, observed: ObservedContainer) -> None:
        if self._store.pod(sandbox.uid) is None:
            await self._gate.admit_pod(sandbox)
        if holding_of(self._store.pod(sandbox.uid), observed.container) is None:
            await self._gate.admit_running(sandbox, observed.container, observed.applied)

    async def _give_again(self, resources: Set[str], observed: ObservedContainer) -> None:
        pod = self._store.pod(observed.pod_uid)
        holding = holding_of(pod, observed.container)
        assert pod is not None
        assert holding is not None
        self._store.put(without_resources(pod, observed.container, resources))
        sandbox = Sandbox(
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            labels=pod.labels,
            annotations=pod.annotations,
        )
        try:
            await self._gate.admit_running(sandbox, observed.container, observed.applied)
        except AdmissionRejected:
            now = self._store.pod(pod.uid)
            if now is not None:
                self._store.put(as_before(now, pod, observed.container))
            raise


def holding_of(pod: PodState | None, container: str) -> ContainerHolding | None:
    return pod.containers.get(container) if pod and pod.admitted else None


def without_resources(pod: PodState, container: str, resources: Set[str]) -> PodState:
    """Of the container; what all of the pod share, none of them has any longer."""
    shared = resources & {*pod.pod_wide}
    return msgspec.structs.replace(
        pod,
        containers={
            name: without(each, resources if name == container else shared & {*each.allocations})
            for name, each in pod.containers.items()
        },
        pod_wide=tuple(each for each in pod.pod_wide if each not in shared),
    )


def as_before(now: PodState, before: PodState, container: str) -> PodState:
    """With what the container had, and what the pod had as a whole."""
    shared = {*before.pod_wide} - {*now.pod_wide}
    had = {
        name: each
        for name, each in before.containers.items()
        if name == container or shared & {*each.allocations}
    }
    return msgspec.structs.replace(
        now, containers={**now.containers, **had}, pod_wide=before.pod_wide
    )


def without(holding: ContainerHolding, resources: Set[str]) -> ContainerHolding:
    """What makes the manager ask for the resources."""
    left = {name: info for name, info in holding.allocations.items() if name not in resources}
    missing = tuple(sorted({*holding.missing, *resources}))
    return msgspec.structs.replace(holding, allocations=left, missing=missing)
