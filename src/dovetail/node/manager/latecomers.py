"""Containers that run without having been given what they ask for, or whose plugin forgot it.

Plugins are asked as if the container were about to start. If they refuse it keeps running as it
does, and they are asked again later: only a person may stop it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import msgspec
import structlog

from dovetail.node.manager.patience import Patience
from dovetail.node.manager.state import Holding, PodState
from dovetail.node.manager.store import Store
from dovetail.node.pods import Sandbox
from dovetail.node.ports import Observed, Rejected
from dovetail.node.settings import Settings

LOG = structlog.get_logger("dovetail.node.reconcile")

Key = tuple[str, str]
"""The uid of a pod and the name of a container."""


class Admitting(Protocol):
    """What is asked of the manager."""

    store: Store

    async def admit(self, sandbox: Sandbox) -> None: ...

    async def settings(self, sandbox: Sandbox, container: str, asked: Settings) -> Settings: ...


class Latecomers:
    def __init__(self, keeper: Admitting, clock: Callable[[], float]) -> None:
        self._keeper, self._store, self._clock = keeper, keeper.store, clock
        self._attempts: Patience[Key] = Patience()

    async def adopt(self, sandboxes: Sequence[Sandbox], alive: Mapping[Key, Observed]) -> None:
        """Have pods admitted that run and were never asked about."""
        known = {each.uid: each for each in sandboxes}
        strangers = [
            key
            for key in alive
            if key[0] in known and holding_of(self._store.pod(key[0]), key[1]) is None
        ]
        for key in strangers:
            await self._try(key, "adopted", partial(self._adopt, known[key[0]], alive[key]))

    async def give_again(self, key: Key, resource: str, observed: Observed) -> None:
        """Have the plugin allocate what it does not know of any longer."""
        again = partial(self._give_again, resource, observed)
        await self._try(key, f"{resource} allocated again", again)

    def keep(self, alive: Mapping[Key, Observed]) -> None:
        """Nothing else is of interest any longer."""
        self._attempts.keep(alive)

    async def _try(self, key: Key, what: str, work: Callable[[], Awaitable[None]]) -> None:
        now = self._clock()
        if self._attempts.waits(key, what, now):
            return
        wait = self._attempts.tried(key, what, now)
        log = LOG.bind(pod=key[0], container=key[1])
        try:
            await work()
        except Rejected as error:
            log.warning(f"not {what}", reason=error.reason, again_in=wait, why=str(error))
        else:
            log.info(what)

    async def _adopt(self, sandbox: Sandbox, observed: Observed) -> None:
        if self._store.pod(sandbox.uid) is None:
            await self._keeper.admit(sandbox)
        if holding_of(self._store.pod(sandbox.uid), observed.container) is None:
            await self._keeper.settings(sandbox, observed.container, observed.applied)

    async def _give_again(self, resource: str, observed: Observed) -> None:
        pod = self._store.pod(observed.pod_uid)
        holding = holding_of(pod, observed.container)
        assert pod is not None
        assert holding is not None
        self._store.put(with_holding(pod, observed.container, without(holding, resource)))
        sandbox = Sandbox(
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            labels=pod.labels,
            annotations=pod.annotations,
        )
        try:
            await self._keeper.settings(sandbox, observed.container, observed.applied)
        except Rejected:
            now = self._store.pod(pod.uid)
            if now is not None:
                self._store.put(with_holding(now, observed.container, holding))
            raise


def holding_of(pod: PodState | None, container: str) -> Holding | None:
    return pod.containers.get(container) if pod and pod.admitted else None


def with_holding(pod: PodState, container: str, holding: Holding) -> PodState:
    return msgspec.structs.replace(pod, containers={**pod.containers, container: holding})


def without(holding: Holding, resource: str) -> Holding:
    """What makes the manager ask for the resource."""
    left = {name: info for name, info in holding.allocations.items() if name != resource}
    return Holding(allocations=left, missing=tuple(sorted({*holding.missing, resource})))
