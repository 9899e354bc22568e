"""Steps of one deployment on one cluster, in an order that any crash may interrupt.

The worker calls them when a cluster is due; each raises ClusterAway, and can be repeated.

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

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from dovetail.intents.deployment import (
    ENDING,
    DeploymentRecord,
    ObjectState,
    OutboxObject,
    apply_rank,
)
from dovetail.intents.names import ClusterName
from dovetail.service.intents.deploying.cluster_port import ClusterPort, ObjectRefused
from dovetail.service.intents.deploying.outbox import Outbox


class StepResult(msgspec.Struct, frozen=True):
    is_over: bool
    """False: it is to be tried again, later and later."""
    words: str = ""
    """What is to be told: a refusal for good, or that something changed."""


DONE = StepResult(is_over=True)


class ClusterSteps:
    def __init__(self, outbox: Outbox, clusters: ClusterPort) -> None:
        self._outbox, self._clusters = outbox, clusters

    # -- there -----------------------------------------------------------------------------------

    async def apply(
        self, record: DeploymentRecord, cluster: ClusterName, objects: list[OutboxObject]
    ) -> StepResult:
        """Steps 2 to 4; its words say why the cluster will never take one of them."""
        objects = await self._replace(record, cluster, objects)
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
            return DONE
        sent, refusal = await self._send(record, cluster, to_apply)
        if sent < len(to_apply) or any(each.state is ObjectState.REPLACING for each in objects):
            return StepResult(is_over=False, words=refusal)
        leaving = [each for each in objects if each.state is ObjectState.DELETING]
        return StepResult(is_over=await self._remove(record, cluster, leaving))

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

    async def _replace(
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

    async def observe(
        self, record: DeploymentRecord, cluster: ClusterName, objects: list[OutboxObject]
    ) -> StepResult:
        """Record how objects are; its words say whether that is news."""
        there = [each for each in objects if each.state is ObjectState.APPLIED]
        if not there:
            return DONE
        found = await self._clusters.readiness(cluster, [(each.key, each.uid) for each in there])
        changed = [
            replace(each, readiness=found[each.key])
            for each in there
            if each.readiness != found[each.key]
        ]
        await self._outbox.put(record, changed)
        return StepResult(is_over=True, words="changed") if changed else DONE

    # -- gone ------------------------------------------------------------------------------------

    async def end(
        self, record: DeploymentRecord, cluster: ClusterName, objects: list[OutboxObject]
    ) -> StepResult:
        """Steps 7 and 8."""
        there = [each for each in objects if each.state is not ObjectState.DELETED]
        return StepResult(is_over=await self._remove(record, cluster, there))

    async def _remove(
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


def order(one: OutboxObject) -> tuple[int, str, int]:
    return (apply_rank(one.key.kind), one.app, one.position)
