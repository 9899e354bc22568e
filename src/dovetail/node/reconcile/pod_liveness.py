"""Garbage collection of pods: which pods are over, and their release; the reconciler asks for it.

A running pod that is wrongly taken for gone would lose its CPUs to others. So a pod is over only if
its source does not list it (or, where nobody lists pods, if it had no sandbox for a whole period),
the runtime has no sandbox of it, and it did not come by while we looked.

The same goes for pods that only plugins tell of, which the agent forgot with its checkpoint. One
that is being admitted is not among them: it is written down before a plugin hears of it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from math import inf

import structlog

from dovetail.node.admission.pod_locks import PodLocks
from dovetail.node.admission.remove_pod_queue import RemovePodQueue
from dovetail.node.admission.turns import Turns
from dovetail.node.common.pods import Pod
from dovetail.node.common.ports import PodSource, Runtime
from dovetail.node.state.pod_state import PodState
from dovetail.node.state.store import StateStore

LOG = structlog.get_logger("dovetail.node.manager")

STARTING_SECONDS = 240.0
"""That the kubelet gives a sandbox to come up."""


Told = Mapping[str, Collection[str]]
"""Pods by uid, and the resources whose plugins hold something for them."""


def unlisted_pods(held: Mapping[str, PodState], active: Sequence[Pod]) -> set[str]:
    """Pods that whoever should know them does not; manifests without a uid count by name."""
    uids = {pod.uid for pod in active}
    names = {(pod.namespace, pod.name) for pod in active if not pod.uid}
    return {
        uid
        for uid, pod in held.items()
        if uid not in uids and (pod.namespace, pod.name) not in names
    }


class PodLiveness:
    """When pods came by, and since when they have had no sandbox. Times are monotonic."""

    def __init__(self) -> None:
        self._admitted_at: dict[str, float] = {}
        self._awaited: dict[str, float] = {}
        """Admitted at that time, and not seen with a sandbox yet."""
        self._since: dict[str, float] = {}

    def pod_admitted(self, uid: str, now: float) -> None:
        self._admitted_at[uid] = now
        self._since.pop(uid, None)
        self._awaited[uid] = now

    def sandbox_gone(self, uid: str) -> None:
        """Its sandbox is said to be gone: no need to wait for it to come up."""
        self._awaited.pop(uid, None)

    def look(self, held: Collection[str], sandboxes: Collection[str], now: float) -> None:
        self._since = {uid: since for uid, since in self._since.items() if uid in held}
        for uid in held:
            if uid in sandboxes:
                self._awaited.pop(uid, None)
                self._since.pop(uid, None)
            elif now - self._awaited.get(uid, -STARTING_SECONDS) >= STARTING_SECONDS:
                self._since.setdefault(uid, now)

    def is_admitted_since(self, uid: str, then: float) -> bool:
        return self._admitted_at.get(uid, 0.0) > then

    def absent_for(self, period: float, now: float) -> set[str]:
        """Pods that have had no sandbox for so many seconds."""
        return {uid for uid, since in self._since.items() if now - since >= period}

    def forget(self, uid: str) -> None:
        self._admitted_at.pop(uid, None)
        self._since.pop(uid, None)
        self._awaited.pop(uid, None)


class PodCollector:
    def __init__(
        self,
        store: StateStore,
        source: PodSource | None,
        *,
        locks: PodLocks,
        removals: RemovePodQueue,
        turns: Turns,
        liveness: PodLiveness,
    ) -> None:
        """Without a `source`, sandboxes alone tell which pods there are."""
        self._store, self._source, self._locks = store, source, locks
        self._removals, self._turns, self._liveness = removals, turns, liveness
        self.look_soon = asyncio.Event()
        """Set when a sandbox went: it is worth a look whether its pod did."""
        self.on_listed: Callable[[Sequence[Pod]], None] = lambda _: None
        """Called with the pods that the source tells of."""

    def sandbox_gone(self, uid: str) -> None:
        self._liveness.sandbox_gone(uid)
        self.look_soon.set()

    async def collect(
        self, runtime: Runtime, period: float, told: Told | None = None
    ) -> Sequence[str]:
        """Release pods that are over; their uids. Raises RuntimeRefused.

        Without a source, a pod is over if it had no sandbox for a whole `period`, in seconds.
        `told`: the pods that plugins know of, maybe more than we do.
        """
        looked, told = time.monotonic(), told or {}
        sandboxes = {each.uid for each in await runtime.sandboxes()}
        if self._source is None:
            self._liveness.look({*self._store.pods, *told}, sandboxes, looked)
            over = self._liveness.absent_for(period, looked)
        elif (active := await self._source.active()) is None:
            over = set()
        else:
            self.on_listed(active)
            unknown = told.keys() - self._store.pods.keys() - {each.uid for each in active}
            over = unlisted_pods(self._store.pods, active) | unknown
        # Together, so that they share writes and none waits for the plugins of another.
        going = sorted(over - sandboxes)
        gone = await asyncio.gather(
            *(self.release(uid, looked, told.get(uid, ())) for uid in going)
        )
        return [uid for uid, released in zip(going, gone, strict=True) if released]

    async def release(self, uid: str, looked: float = inf, holders: Collection[str] = ()) -> bool:
        """The pod is over: forget it, and tell its plugins as soon as they can be told.

        Not if it came by after it was `looked` for, on the monotonic clock. `holders`: resources
        whose plugins say that they hold something for it.
        """
        async with self._locks.of(uid):
            pod = self._store.pod(uid)
            plugins = {*(pod.plugins if pod else ()), *holders}
            if (pod is None and not plugins) or self._liveness.is_admitted_since(uid, looked):
                return False
            self._store.drop(uid, plugins)
            self._liveness.forget(uid)
            await self._removals.save()
            async with self._turns.taken(self._store.state.removals.get(uid, ())):
                await self._removals.attempt(uid)
            await self._removals.save()
        name = f"{pod.namespace}/{pod.name}" if pod else "unknown"
        LOG.info("pod released", pod=name, uid=uid, plugins=sorted(plugins))
        return True
