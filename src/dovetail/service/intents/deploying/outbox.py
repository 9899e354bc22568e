"""Outbox of deployments: what the worker takes from the ledger, and how it records what it did.

Everything is written on condition that the deployment is still what the worker has read: a user who
asks for something else meanwhile is always right, and the worker reads again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from dovetail.aio.thread_results import result_of
from dovetail.intents.deployment import (
    APPLYING,
    ENDING,
    DeploymentDocument,
    DeploymentRecord,
    DeploymentState,
    ObjectState,
    OutboxObject,
    leaving,
    outcome,
)
from dovetail.intents.names import ClusterName
from dovetail.ledger import Ledger, Transaction
from dovetail.ledger.database.protocol import Operation, T
from dovetail.ledger.intents import charges, deployments

FAILED = (DeploymentState.INSTANTIATE_FAILED, DeploymentState.UPDATE_FAILED)
OVER = (*ENDING, DeploymentState.TERMINATED)


class TakenDeployment(msgspec.Struct, frozen=True):
    """A deployment as it was read."""

    record: DeploymentRecord
    objects: Sequence[OutboxObject]

    def on(self, cluster: ClusterName) -> list[OutboxObject]:
        return [each for each in self.objects if each.cluster == cluster]

    @property
    def clusters(self) -> list[ClusterName]:
        return sorted({each.cluster for each in self.objects})


class Outbox:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def watched(self) -> list[tuple[str, int, DeploymentState]]:
        return await self._read(deployments.watched)

    async def take(self, id_: str) -> TakenDeployment | None:
        def read(tx: Transaction) -> TakenDeployment | None:
            record = deployments.find(tx, id_)
            objects = deployments.objects(tx, id_)
            return None if record is None else TakenDeployment(record, objects)

        return await self._read(read)

    async def put(self, seen: DeploymentRecord, changed: Sequence[OutboxObject]) -> bool:
        """Record how far objects are; False if the deployment is another by now.

        What was held for those that are gone is given back with it.
        """

        def write(tx: Transaction) -> bool:
            record = found_same(tx, seen)
            if record is None:
                return False
            deployments.put_objects(tx, seen.id, changed)
            if any(each.state is ObjectState.DELETED for each in changed):
                release_gone(tx, record, deployments.objects(tx, seen.id))
            return True

        return not changed or await self._write(write)

    async def set_silent(self, seen: DeploymentRecord, silent: Mapping[ClusterName, str]) -> None:
        """Which clusters do not answer, if that is news."""
        if silent == seen.document.silent:
            return

        def write(tx: Transaction) -> None:
            found = found_same(tx, seen)
            if found is not None:
                document = replace(found.document, silent=silent)
                deployments.put(tx, replace(found, document=document))

        await self._write(write)

    async def settle(self, seen: DeploymentRecord, refusal: str = "") -> DeploymentState:
        """The state that follows from what became of the objects, with all that goes with it.

        `refusal`: why a cluster will never take one of them.
        """
        return await self._write(lambda tx: settle(tx, seen, refusal))

    async def _read(self, operation: Operation[T]) -> T:
        return await result_of(self._ledger.read(operation))

    async def _write(self, operation: Operation[T]) -> T:
        return await result_of(self._ledger.write(operation))


def found_same(tx: Transaction, seen: DeploymentRecord) -> DeploymentRecord | None:
    """The deployment, held, unless it is another by now."""
    found = deployments.find(tx, seen.id, lock=True)
    is_same = found is not None and (found.revision, found.state) == (seen.revision, seen.state)
    return found if is_same else None


def settle(tx: Transaction, seen: DeploymentRecord, refusal: str = "") -> DeploymentState:
    record = found_same(tx, seen)
    if record is None:
        return seen.state
    objects = deployments.objects(tx, record.id)
    is_late = record.state in APPLYING and tx.now > record.document.deadline
    state = outcome(
        record.state,
        [each.state for each in objects],
        is_late=is_late,
        is_refused=bool(refusal),
    )
    if state is DeploymentState.INSTANTIATE_FAILED and state is not record.state:
        objects = [replace(each, state=leaving(each.state)) for each in objects]
        deployments.put_objects(tx, record.id, objects)
    if state is not record.state:
        reason = (refusal or lateness(objects, record)) if state in FAILED else ""
        record = record.moved(state, tx.now, reason=reason)
        deployments.put(tx, record)
        release_gone(tx, record, objects)
    return state


def lateness(objects: Iterable[OutboxObject], record: DeploymentRecord) -> str:
    """Why not everything was applied in time."""
    silent = "; ".join(record.document.silent.values())
    waiting = next((each for each in objects if each.message), None)
    why = silent or (f"{waiting.key.kind} {waiting.key.name}: {waiting.message}" if waiting else "")
    return f"not all objects could be applied in time: {why or 'nobody carried it out'}"


def release_gone(
    tx: Transaction, record: DeploymentRecord, objects: Sequence[OutboxObject]
) -> None:
    """Give back what is held where no object is left, and none is to come."""
    kept = {(each.app, each.cluster) for each in objects if each.state is not ObjectState.DELETED}
    if record.state not in OVER:
        kept |= placed(record.document)
    gone = ({(each.app, each.cluster) for each in objects} | placed(record.document)) - kept
    for app, cluster in sorted(gone):
        charges.release(tx, record.id, app, cluster)


def placed(document: DeploymentDocument) -> set[tuple[str, ClusterName]]:
    return {(each.app, each.cluster) for each in document.placements}
