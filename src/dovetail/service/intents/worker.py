"""Worker of deployments: carries out what the outbox holds, in an order any crash may interrupt.

One process of a fleet runs it at a time, by a lease; a second one would do no harm, since every
step can be repeated and is recorded only if the deployment is still what it was.

    step                                a crash after it leaves           who mends it
    1 claims, record, outbox (one tx)   Instantiating, nothing sent       the next worker goes on
                                                                          with 2; if there is none,
                                                                          the hold expires
    2 objects marked Applying           objects that may be there         3 again
    3 objects applied                   objects whose uid nobody knows    3 again: it tells them
    4 uids recorded, Applied            Instantiating, all is there       5
    5 Instantiated                      nothing

    A failure, or terminate:
    6 objects Deleting (one tx)         objects and charges both there    7
    7 objects deleted, pods gone        objects Deleting that are gone    7 again finds nothing
    8 Deleted, charges given back       Terminating, nothing is left      9
      (one tx for each cluster)
    9 Terminated                        nothing

Charges go last: what may still run is never given to others. An object that was never marked is
dropped without asking its cluster, so a cluster that is away holds up nothing it never heard of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec
import structlog
from msgspec.structs import replace

from dovetail.aio.backoff import Backoff
from dovetail.core.errors import DovetailError
from dovetail.intents.deployment import (
    APPLYING,
    ENDING,
    DeploymentRecord,
    DeploymentState,
    ObjectState,
    OutboxObject,
    apply_rank,
)
from dovetail.intents.names import ClusterName
from dovetail.service.intents.cluster_port import ClusterAway, ClusterPort, ObjectRefused
from dovetail.service.intents.outbox import Outbox, TakenDeployment

LOG = structlog.get_logger("dovetail.intents")

Follow = Callable[[DeploymentRecord], Awaitable[None]]
"""Has the charges of a deployment follow its pods."""


class WorkerTimings(msgspec.Struct, frozen=True, kw_only=True):
    poll_seconds: float = 1.0
    """How often the ledger is looked at for what others asked for."""
    observe_seconds: float = 5.0
    """How often objects that are there are looked at."""
    first_retry_seconds: float = 0.2
    longest_retry_seconds: float = 15.0


TIMINGS = WorkerTimings()


class DeploymentWorker:
    def __init__(
        self,
        outbox: Outbox,
        clusters: ClusterPort,
        follow: Follow,
        timings: WorkerTimings = TIMINGS,
    ) -> None:
        self._outbox, self._clusters, self._follow = outbox, clusters, follow
        self._timings = timings
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._seen: dict[str, tuple[int, DeploymentState]] = {}
        self._wakes: dict[str, asyncio.Event] = {}
        self._retries: dict[tuple[str, ClusterName], tuple[Backoff, float]] = {}
        """By deployment and cluster: the tries that failed in a row, and when the next is due."""
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
                self._wakes[id_].set()
            self._seen[id_] = (revision, state)

    def _forget(self, id_: str, _: asyncio.Task[None]) -> None:
        del self._tasks[id_], self._wakes[id_]
        self._seen.pop(id_, None)
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
        taken = await self._outbox.take(id_)
        if taken is None:
            return None
        record = taken.record
        if record.state in APPLYING:
            return await self._apply(taken)
        if record.state in ENDING:
            return await self._end(taken)
        if record.state in (DeploymentState.INSTANTIATED, DeploymentState.UPDATE_FAILED):
            await self._each(taken, self._observe)
            await self._follow(record)
            return self._timings.observe_seconds
        return None

    async def _each(
        self,
        taken: TakenDeployment,
        work: Callable[[DeploymentRecord, ClusterName, list[OutboxObject]], Awaitable[str]],
    ) -> list[str]:
        """On all clusters that are due, side by side; what they say, and who was silent."""
        due = [each for each in taken.clusters if self._wait_seconds(taken.record.id, each) <= 0]
        said = await asyncio.gather(*(self._tried(taken, each, work) for each in due))
        silent = {
            cluster: words
            for cluster, words in taken.record.document.silent.items()
            if cluster not in due and cluster in taken.clusters
        }
        silent |= {cluster: words for cluster, (words, _) in zip(due, said, strict=True) if words}
        await self._outbox.set_silent(taken.record, silent)
        return [answer for _, answer in said if answer]

    async def _tried(
        self,
        taken: TakenDeployment,
        cluster: ClusterName,
        work: Callable[[DeploymentRecord, ClusterName, list[OutboxObject]], Awaitable[str]],
    ) -> tuple[str, str]:
        """What was heard instead of an answer, and the answer."""
        try:
            return "", await work(taken.record, cluster, taken.on(cluster))
        except ClusterAway as error:
            self._put_off(taken.record.id, cluster)
            return str(error), ""

    # -- there -----------------------------------------------------------------------------------

    async def _apply(self, taken: TakenDeployment) -> float:
        refusals = await self._each(taken, self._apply_on)
        state = await self._outbox.settle(taken.record, "; ".join(sorted(refusals)))
        if state is not taken.record.state:
            LOG.info("deployment", id=taken.record.id, group=taken.record.group, state=state)
            return 0.0
        return self._next_try(taken)

    async def _apply_on(
        self, record: DeploymentRecord, cluster: ClusterName, objects: list[OutboxObject]
    ) -> str:
        """Why the cluster will never take one of them; empty if it did, or still may."""
        replaced = [each for each in objects if each.state is ObjectState.REPLACING]
        if replaced:
            objects = await self._replace_on(record, cluster, objects)
        to_apply = sorted(
            (each for each in objects if each.state in (ObjectState.PENDING, ObjectState.APPLYING)),
            key=order,
        )
        marked = [
            replace(each, state=ObjectState.APPLYING, message="")
            for each in to_apply
            if each.state is ObjectState.PENDING
        ]
        if marked:
            # Of a cluster that does not answer now, nothing has to be looked for later.
            await self._clusters.pods(cluster, record.id)
        if not await self._outbox.put(record, marked):
            return ""
        sent, refusal = await self._send(record, cluster, to_apply)
        if sent < len(to_apply) or any(each.state is ObjectState.REPLACING for each in objects):
            self._put_off(record.id, cluster)
            return refusal
        self._succeed(record.id, cluster)
        await self._remove_on(
            record, cluster, [each for each in objects if each.state is ObjectState.DELETING]
        )
        return ""

    async def _send(
        self, record: DeploymentRecord, cluster: ClusterName, objects: Sequence[OutboxObject]
    ) -> tuple[int, str]:
        """How many were taken; why one of them never will be."""
        done: list[OutboxObject] = []
        told: list[OutboxObject] = []
        try:
            for each in objects:
                try:
                    uid = await self._clusters.apply(cluster, record.id, each.manifest, each.uid)
                    done.append(replace(each, state=ObjectState.APPLIED, uid=uid, message=""))
                except ObjectRefused as error:
                    told.append(replace(each, state=ObjectState.APPLYING, message=str(error)))
                    if error.is_final:
                        where = f"{cluster}: {each.key.kind} {each.key.name}"
                        return len(done), f"{where}: {error}"
        finally:
            await self._outbox.put(record, [*done, *told])
        return len(done), ""

    async def _replace_on(
        self, record: DeploymentRecord, cluster: ClusterName, objects: list[OutboxObject]
    ) -> list[OutboxObject]:
        """Take away what has to be made anew."""
        changed = {}
        for each in objects:
            if each.state is ObjectState.REPLACING and await self._clusters.remove(
                cluster, record.id, each.key, each.uid
            ):
                changed[each.place] = replace(each, state=ObjectState.PENDING, uid="")
        await self._outbox.put(record, list(changed.values()))
        return [changed.get(each.place, each) for each in objects]

    async def _observe(
        self, record: DeploymentRecord, cluster: ClusterName, objects: list[OutboxObject]
    ) -> str:
        there = [each for each in objects if each.state is ObjectState.APPLIED]
        if not there:
            return ""
        found = await self._clusters.readiness(cluster, [(each.key, each.uid) for each in there])
        changed = [
            replace(each, readiness=found[each.key])
            for each in there
            if each.readiness != found[each.key]
        ]
        await self._outbox.put(record, changed)
        self._succeed(record.id, cluster)
        return ""

    # -- gone ------------------------------------------------------------------------------------

    async def _end(self, taken: TakenDeployment) -> float | None:
        await self._each(taken, self._end_on)
        state = await self._outbox.settle(taken.record)
        if state is DeploymentState.TERMINATED:
            LOG.info("deployment", id=taken.record.id, group=taken.record.group, state=state)
            return None
        left = await self._outbox.take(taken.record.id)
        if left is None or all(each.state is ObjectState.DELETED for each in left.objects):
            return None if state is DeploymentState.INSTANTIATE_FAILED else 0.0
        return self._next_try(taken)

    async def _end_on(
        self, record: DeploymentRecord, cluster: ClusterName, objects: list[OutboxObject]
    ) -> str:
        there = [each for each in objects if each.state is not ObjectState.DELETED]
        if await self._remove_on(record, cluster, there):
            self._succeed(record.id, cluster)
        else:
            self._put_off(record.id, cluster)
        return ""

    async def _remove_on(
        self, record: DeploymentRecord, cluster: ClusterName, objects: Sequence[OutboxObject]
    ) -> bool:
        """Whether all of them are gone, and the pods of those that end with them."""
        if not objects:
            return True
        if not await self._clusters.is_served(cluster):
            lost = "the cluster is registered no more: whatever is there was left to it"
            await self._outbox.put(
                record,
                [replace(each, state=ObjectState.DELETED, message=lost) for each in objects],
            )
            return True
        left: list[OutboxObject] = []
        for each in sorted(objects, key=order, reverse=True):
            try:
                is_gone = await self._clusters.remove(cluster, record.id, each.key, each.uid)
                words = "" if is_gone else "it is being deleted"
            except ObjectRefused as error:
                words = str(error)
            if words:
                left.append(replace(each, message=words))
        if left or await self._has_pods(record, cluster):
            await self._outbox.put(record, [each for each in left if each not in objects])
            return False
        return await self._outbox.put(
            record, [replace(each, state=ObjectState.DELETED, message="") for each in objects]
        )

    async def _has_pods(self, record: DeploymentRecord, cluster: ClusterName) -> bool:
        """Of a deployment that ends; one that goes on has pods of its own."""
        if record.state not in ENDING:
            return False
        return bool(await self._clusters.pods(cluster, record.id))

    # -- when ------------------------------------------------------------------------------------

    def _put_off(self, id_: str, cluster: ClusterName) -> None:
        backoff, _ = self._retries.get((id_, cluster)) or (
            Backoff(self._timings.first_retry_seconds, self._timings.longest_retry_seconds),
            0.0,
        )
        self._retries[id_, cluster] = (backoff, now() + backoff.next())

    def _succeed(self, id_: str, cluster: ClusterName) -> None:
        self._retries.pop((id_, cluster), None)

    def _wait_seconds(self, id_: str, cluster: ClusterName) -> float:
        _, due = self._retries.get((id_, cluster), (None, 0.0))
        return due - now()

    def _next_try(self, taken: TakenDeployment) -> float:
        """When the next cluster is due, and no later than the deadline would be noticed."""
        waits = [self._wait_seconds(taken.record.id, each) for each in taken.clusters]
        return min(max(min(waits, default=0.0), 0.05), self._timings.poll_seconds)


def order(one: OutboxObject) -> tuple[int, str, int]:
    return (apply_rank(one.key.kind), one.app, one.position)


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
