"""Resizes that nobody finished or told of: found by looking, and made good; the reconciler asks.

One that was cut short (by a crash, or by a runtime that did not do it) left a mark on its
container: its plugins are asked for what was committed, and the mark goes when the container is
seen to run on that. One that went by, while the agent was away or where it is not asked, shows at
the runtime, which has other numbers than the agent was told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import structlog

from dovetail.aio.backoff import KeyedBackoff
from dovetail.node.admission.gate import AdmissionGate
from dovetail.node.admission.merge_settings import settings_of
from dovetail.node.admission.resize_amounts import Told, told_now
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.pods import Sandbox
from dovetail.node.common.ports import AdmissionRejected, ObservedContainer
from dovetail.node.reconcile.adoption import (
    FIRST_WAIT_SECONDS,
    LONGEST_WAIT_SECONDS,
    Key,
    holding_of,
)
from dovetail.node.state.pod_state import AgentState, ContainerHolding, PodState
from dovetail.node.state.store import StateStore

LOG = structlog.get_logger("dovetail.node.reconcile")


class UnfinishedResizes:
    def __init__(self, gate: AdmissionGate, store: StateStore, clock: Callable[[], float]) -> None:
        self._gate, self._store, self._clock = gate, store, clock
        self._attempts: KeyedBackoff[Key] = KeyedBackoff(FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS)
        self._seen: dict[Key, Told] = {}
        """What the last look found that was not as told: the runtime may have been about to."""
        self._said: dict[Key, str] = {}
        """Why resizes are not made good, as it was logged."""

    async def look(self, alive: Mapping[Key, ObservedContainer], before: AgentState) -> None:
        """`before`: what was known before anybody looked who is alive."""
        for pod in [*self._store.pods.values()]:
            for name, holding in pod.containers.items():
                if holding.resizing:
                    await self._restore(pod, name, alive)
        for key, observed in alive.items():
            known = holding_of(self._store.pod(key[0]), key[1])
            if known is not None and not known.told and not known.requests:
                # It is from before these were kept, so there is nothing to compare with.
                self._gate.remember_told(*key, said(observed, known))
        found = {key: told for key in alive if (told := self._news(alive[key], before))}
        for key, told in sorted(found.items()):
            if self._seen.get(key) == told:
                await self._resize(key, told)
        self._seen = found
        self._attempts.retain(lambda key: key in alive)
        self._said = {key: words for key, words in self._said.items() if key in alive}

    async def _restore(
        self, pod: PodState, name: str, alive: Mapping[Key, ObservedContainer]
    ) -> None:
        log = LOG.bind(pod=pod.uid, container=name)
        try:
            await self._gate.restore(sandbox_of(pod), name)
        except AdmissionRejected as error:
            # Each time again, since others wait for it; but said once.
            if self._said.get((pod.uid, name)) != str(error):
                log.warning("resize not made good", reason=error.reason, why=str(error))
            self._said[pod.uid, name] = str(error)
            return
        self._said.pop((pod.uid, name), None)
        if (pod.uid, name) not in alive and self._gate.settle(pod.uid, name):
            log.info("resize through", why="it does not run")

    def _news(self, observed: ObservedContainer, before: AgentState) -> Told | None:
        """What the runtime was told, if that is not what we were."""
        then = holding_of(before.pods.get(observed.pod_uid), observed.container)
        now = holding_of(self._store.pod(observed.pod_uid), observed.container)
        if then is None or now is None or now.resizing or then.resizing or then.told != now.told:
            # It was changed while we looked.
            return None
        told = told_now(now, said(observed, now))
        return told if told != now.told else None

    async def _resize(self, key: Key, told: Told) -> None:
        pod = self._store.pod(key[0])
        now = self._clock()
        if pod is None or self._attempts.is_waiting(key, None, now):
            return
        wait = self._attempts.record(key, None, now)
        log = LOG.bind(pod=key[0], container=key[1])
        try:
            await self._gate.resize_container(
                sandbox_of(pod), key[1], ContainerSettings(numbers=told)
            )
        except AdmissionRejected as error:
            log.warning("not resized", reason=error.reason, again_in=wait, why=str(error))
        else:
            self._attempts.forget(key)
            log.info("resized")


def said(observed: ObservedContainer, holding: ContainerHolding) -> ContainerSettings:
    """What the runtime was told by others: not what plugins set."""
    ours = settings_of(holding.allocations).numbers
    return ContainerSettings(
        numbers={
            name: number for name, number in observed.applied.numbers.items() if name not in ours
        }
    )


def sandbox_of(pod: PodState) -> Sandbox:
    return Sandbox(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        labels=pod.labels,
        annotations=pod.annotations,
    )
