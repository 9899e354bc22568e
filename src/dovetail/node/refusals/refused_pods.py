"""Fails refused pods, so that their controllers make others elsewhere; the manager tells of them.

A pod that the gate refuses stays on its node and is tried again with every sync of the kubelet. The
kubelet's own admission fails such a pod. This does the same, if it is switched on: for pods that
have been refused for a while, for reasons that are the pod's and not those of a plugin that is
away, and never for static ones.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

import structlog

from dovetail.aio.background import Background
from dovetail.aio.backoff import doubling
from dovetail.core.errors import DovetailError
from dovetail.node.common.metrics import AGENT_METRICS
from dovetail.node.common.pods import Sandbox
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.common.reasons import (
    ANNOTATION_NOT_TRUSTED,
    CHECKPOINT_FAILED,
    PLUGIN_DOWN,
    PLUGIN_GARBAGE,
    PLUGIN_TIMEOUT,
    POD_UNKNOWN,
    TOPOLOGY_AFFINITY,
)

FAILED_PODS = AGENT_METRICS.counter(
    "failed_pods_total",
    "Refused pods that were failed at the API server, that need not be, or that could not be.",
    "result",
)

LOG = structlog.get_logger("dovetail.node.manager")

NOT_THE_POD = frozenset(
    (
        ANNOTATION_NOT_TRUSTED,
        CHECKPOINT_FAILED,
        PLUGIN_DOWN,
        PLUGIN_GARBAGE,
        PLUGIN_TIMEOUT,
        POD_UNKNOWN,
    )
)
"""Reasons that pass by without the pod: all pods of the node would fail, and come back."""

ORIGIN = "kubernetes.io/config.source"
STATIC_ORIGINS = ("file", "http")

FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS = 1.0, 30.0
"""Between writes and looks whether they stayed: twice as long each time."""
LOOKS = 8
STAYING_LOOKS = 2
"""Looks at a pod that is over, one after the other, until it is believed to stay so."""


class FailPod(Protocol):
    """Writes it at the API server; raises DovetailError."""

    async def __call__(
        self, *, namespace: str, name: str, uid: str, reason: str, message: str
    ) -> bool | None:
        """Whether it is over; False: it was written, and may be put back. None: not to be."""
        ...


class RefusedPods:
    def __init__(
        self,
        fail: FailPod,
        after: float,
        *,
        first_look: float = FIRST_LOOK_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`after`: seconds that a pod has to be refused for, all the time."""
        self._fail, self._after, self._first_look, self._clock = fail, after, first_look, clock
        self._since: dict[str, float] = {}
        """By uid, when it was refused first. Pods that go are few, and forgotten in time."""
        self._failing: set[str] = set()
        self._background = Background()

    def admitted(self, uid: str) -> None:
        self._since.pop(uid, None)

    def refused(self, sandbox: Sandbox, error: AdmissionRejected) -> None:
        """To be called with every refusal of a whole pod."""
        if not is_final(error) or sandbox.annotations.get(ORIGIN) in STATIC_ORIGINS:
            self._since.pop(sandbox.uid, None)
            return
        now = self._clock()
        since = self._since.setdefault(sandbox.uid, now)
        if now - since >= self._after and sandbox.uid not in self._failing:
            self._failing.add(sandbox.uid)
            self._background.start(self._failed(sandbox, error))
        elif len(self._since) > MOST_REMEMBERED:
            del self._since[next(iter(self._since))]

    async def stop(self) -> None:
        await self._background.stop()

    async def _failed(self, sandbox: Sandbox, error: AdmissionRejected) -> None:
        log = LOG.bind(pod=f"{sandbox.namespace}/{sandbox.name}", uid=sandbox.uid)
        try:
            over = await self._until_it_stays(sandbox, error)
        except DovetailError as problem:
            # It is refused again before long, and then tried again.
            FAILED_PODS.labels("error").inc()
            log.warning("refused pod not failed", why=str(problem))
        else:
            FAILED_PODS.labels("failed" if over else "left").inc()
            log.info("refused pod failed" if over else "refused pod left", reason=error.reason)
            self._since.pop(sandbox.uid, None)
        finally:
            self._failing.discard(sandbox.uid)

    async def _until_it_stays(self, sandbox: Sandbox, error: AdmissionRejected) -> bool:
        """The kubelet may have been about to write the status, and does so once more."""
        stayed = 0
        for look in range(1, LOOKS + 1):
            if sandbox.uid not in self._since:
                return False
            over = await self._fail(
                namespace=sandbox.namespace,
                name=sandbox.name,
                uid=sandbox.uid,
                reason=reason_of(error),
                message=f"Pod was rejected by its node: dovetail: {error.reason}: {error}",
            )
            if over is None:
                # Gone since then, after it was failed or not.
                return look > 1
            stayed = stayed + 1 if over else 0
            if stayed == STAYING_LOOKS:
                return True
            await asyncio.sleep(doubling(look, self._first_look, LONGEST_LOOK_SECONDS))
        return False


MOST_REMEMBERED = 1000


def is_final(error: AdmissionRejected) -> bool:
    """Whether nothing will change by itself, as far as the pod is concerned."""
    return not error.later and error.reason not in NOT_THE_POD


def reason_of(error: AdmissionRejected) -> str:
    """As the kubelet calls it."""
    topology = error.reason == TOPOLOGY_AFFINITY
    return "TopologyAffinityError" if topology else "UnexpectedAdmissionError"
