"""Worker of deployments: attends to each of them when it is due; one process of a fleet runs it.

A second one would do no harm, since every step can be repeated (`steps.py` has the table of what a
crash leaves) and is recorded only if the deployment is still what it was. Deployments do not wait
for each other, nor do clusters: one that does not answer is asked later and later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
import structlog

from dovetail.aio.backoff import Backoff
from dovetail.core.errors import DovetailError
from dovetail.intents.deployment import (
    APPLYING,
    ENDING,
    DeploymentRecord,
    DeploymentState,
    ObjectState,
    OutboxObject,
)
from dovetail.intents.names import ClusterName
from dovetail.service.intents.deploying.cluster_port import ClusterAway, ClusterPort
from dovetail.service.intents.deploying.outbox import Outbox, TakenDeployment
from dovetail.service.intents.deploying.steps import ClusterSteps, StepResult

LOG = structlog.get_logger("dovetail.intents")

Follow = Callable[[DeploymentRecord], Awaitable[None]]
"""Has the charges of a deployment follow its pods."""
Step = Callable[[DeploymentRecord, ClusterName, list[OutboxObject]], Awaitable[StepResult]]
"""Something done about the objects of a deployment on a cluster. Raises ClusterAway."""


class WorkerTimings(msgspec.Struct, frozen=True, kw_only=True):
    poll_seconds: float = 1.0
    """How often the ledger is looked at for what others asked for."""
    observe_seconds: float = 2.0
    """How often objects that are there are looked at, while something about them changes."""
    longest_observe_seconds: float = 60.0
    """The same, when nothing did for long."""
    first_retry_seconds: float = 0.2
    longest_retry_seconds: float = 15.0


TIMINGS = WorkerTimings()
MOST_LOOKS_PER_SECOND = 100
"""At charges of deployments that do not change."""


class Rest(msgspec.Struct, frozen=True):
    """A deployment that is there, whose objects are left alone for so long."""

    record: DeploymentRecord
    seconds: float
    until: float


class DeploymentWorker:
    def __init__(
        self,
        outbox: Outbox,
        clusters: ClusterPort,
        follow: Follow,
        timings: WorkerTimings = TIMINGS,
    ) -> None:
        self._outbox, self._follow = outbox, follow
        self._steps = ClusterSteps(outbox, clusters)
        self._timings = timings
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._seen: dict[str, tuple[int, DeploymentState]] = {}
        self._wakes: dict[str, asyncio.Event] = {}
        self._retries: dict[tuple[str, ClusterName], tuple[Backoff, float]] = {}
        """By deployment and cluster: the tries that failed in a row, and when the next is due."""
        self._resting: dict[str, Rest] = {}
        self._asked = asyncio.Event()

    def wake(self) -> None:
        """Something was asked for in this process: do not wait for the next look."""
        self._asked.set()

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                try:
                    await self.look()
                except DovetailError as error:
                    LOG.warning("outbox not read", error=str(error))
                await happened(self._asked, self._timings.poll_seconds)
        finally:
            tasks = list(self._tasks.values())
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def look(self) -> None:
        """Start on deployments that are new here, and tell those that changed."""
        watched = await self._outbox.watched()
        for id_, revision, state in watched:
            if id_ not in self._tasks:
                self._wakes[id_] = asyncio.Event()
                self._tasks[id_] = asyncio.create_task(self._attend(id_))
                self._tasks[id_].add_done_callback(partial(self._forget, id_))
            elif self._seen.get(id_) != (revision, state):
                self._resting.pop(id_, None)
                self._wakes[id_].set()
            self._seen[id_] = (revision, state)

    def _forget(self, id_: str, _: asyncio.Task[None]) -> None:
        del self._tasks[id_], self._wakes[id_]
        self._seen.pop(id_, None)
        self._resting.pop(id_, None)
        for key in [each for each in self._retries if each[0] == id_]:
            del self._retries[key]

    async def _attend(self, id_: str) -> None:
        """One deployment, until nothing is left to be done about it."""
        failures = Backoff(self._timings.first_retry_seconds, self._timings.longest_retry_seconds)
        while True:
            try:
                pause = await self.step(id_)
                failures.reset()
            except Exception as error:
                # A bug in the way of one deployment must not keep the others waiting.
                is_ours = isinstance(error, DovetailError)
                LOG.warning("deployment not served", id=id_, error=str(error), exc_info=not is_ours)
                pause = failures.next()
            if pause is None:
                return
            await happened(self._wakes[id_], pause)

    async def step(self, id_: str) -> float | None:
        """Do what can be done now; seconds until the next time, None if there is none."""
        rest = self._resting.get(id_)
        if rest is not None and now() < rest.until:
            return await self._charge(rest.record)
        taken = await self._outbox.take(id_)
        if taken is None:
            return None
        record = taken.record
        if record.state in APPLYING:
            return await self._apply(taken)
        if record.state in ENDING:
            return await self._end(taken)
        if record.state in (DeploymentState.INSTANTIATED, DeploymentState.UPDATE_FAILED):
            return await self._watch(taken)
        return None

    async def _watch(self, taken: TakenDeployment) -> float:
        """Look at what runs: where nothing changes, objects are asked about less and less."""
        id_, timings = taken.record.id, self._timings
        changes = await self._each(taken, self._steps.observe)
        before = self._resting.get(id_)
        seconds = timings.observe_seconds
        if before is not None and not changes:
            seconds = min(2 * before.seconds, timings.longest_observe_seconds)
        self._resting[id_] = Rest(taken.record, seconds, now() + seconds)
        return await self._charge(taken.record)

    async def _charge(self, record: DeploymentRecord) -> float:
        """Have the charges follow the pods; the more deployments there are, the less often."""
        await self._follow(record)
        return max(self._timings.observe_seconds, len(self._tasks) / MOST_LOOKS_PER_SECOND)

    async def _each(self, taken: TakenDeployment, step: Step) -> list[str]:
        """On all clusters that are due, side by side; what they say. Who was silent is recorded."""
        due = [each for each in taken.clusters if self._wait_seconds(taken.record.id, each) <= 0]
        said = await asyncio.gather(*(self._tried(taken, each, step) for each in due))
        silent = {
            cluster: words
            for cluster, words in taken.record.document.silent.items()
            if cluster not in due and cluster in taken.clusters
        }
        silent |= {cluster: words for cluster, (words, _) in zip(due, said, strict=True) if words}
        await self._outbox.set_silent(taken.record, silent)
        return [answer for _, answer in said if answer]

    async def _tried(
        self, taken: TakenDeployment, cluster: ClusterName, step: Step
    ) -> tuple[str, str]:
        """What was heard instead of an answer, and the answer."""
        try:
            result = await step(taken.record, cluster, taken.on(cluster))
        except ClusterAway as error:
            self._put_off(taken.record.id, cluster)
            return str(error), ""
        if result.is_over:
            self._retries.pop((taken.record.id, cluster), None)
        else:
            self._put_off(taken.record.id, cluster)
        return "", result.words

    async def _apply(self, taken: TakenDeployment) -> float:
        refusals = await self._each(taken, self._steps.apply)
        state = await self._outbox.settle(taken.record, "; ".join(sorted(refusals)))
        if state is not taken.record.state:
            LOG.info("deployment", id=taken.record.id, group=taken.record.group, state=state)
            return 0.0
        return self._next_try(taken)

    async def _end(self, taken: TakenDeployment) -> float | None:
        await self._each(taken, self._steps.end)
        state = await self._outbox.settle(taken.record)
        if state is DeploymentState.TERMINATED:
            LOG.info("deployment", id=taken.record.id, group=taken.record.group, state=state)
            return None
        left = await self._outbox.take(taken.record.id)
        if left is None or all(each.state is ObjectState.DELETED for each in left.objects):
            return None if state is DeploymentState.INSTANTIATE_FAILED else 0.0
        return self._next_try(taken)

    # -- when ------------------------------------------------------------------------------------

    def _put_off(self, id_: str, cluster: ClusterName) -> None:
        backoff, _ = self._retries.get((id_, cluster)) or (
            Backoff(self._timings.first_retry_seconds, self._timings.longest_retry_seconds),
            0.0,
        )
        self._retries[id_, cluster] = (backoff, now() + backoff.next())

    def _wait_seconds(self, id_: str, cluster: ClusterName) -> float:
        _, due = self._retries.get((id_, cluster), (None, 0.0))
        return due - now()

    def _next_try(self, taken: TakenDeployment) -> float:
        """When the next cluster is due, and no later than the deadline would be noticed."""
        waits = [self._wait_seconds(taken.record.id, each) for each in taken.clusters]
        return min(max(min(waits, default=0.0), 0.05), self._timings.poll_seconds)


def now() -> float:
    return asyncio.get_running_loop().time()


async def happened(event: asyncio.Event, seconds: float) -> None:
    """Wait until it happens, so long at the most; it has to happen again for the next."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
    finally:
        event.clear()
