"""Transitions of deployments that users ask for, each a function of one transaction.

`actions` calls them. All hold the row of the group first, then look at the state: of two who ask at
the same moment, the later one finds what the earlier one did. What is claimed, recorded and put
into the outbox stands or falls together.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from dovetail.core.errors import InUse
from dovetail.intents.deployment import (
    ACTIVE,
    AppOnCluster,
    DeploymentAction,
    DeploymentDocument,
    DeploymentRecord,
    DeploymentState,
    ObjectState,
    OutboxObject,
    StateChange,
    leaving,
    state_after,
    wrong_state_words,
)
from dovetail.intents.names import ClusterName
from dovetail.ledger import Transaction
from dovetail.ledger.intents import charges, deployments
from dovetail.ledger.intents.clusters import name_of_path
from dovetail.service.intents.deploying.outbox import settle
from dovetail.service.intents.ports import KeptObject, ObjectHook, WrongState

LONGEST_USER = 255
"""Of a claim; the end of a group's path is what tells it from others."""
STOPPED = "it was stopped"
ABANDONED = "nobody carried it out in time"


class PlannedDeployment(msgspec.Struct, frozen=True, kw_only=True):
    """All that an instantiate or an update writes."""

    id: str
    namespace: str
    placements: tuple[AppOnCluster, ...]
    objects: tuple[OutboxObject, ...]
    apply_seconds: int
    context: str = ""
    """What action controllers work on."""


def current_state(tx: Transaction, group: str) -> tuple[DeploymentRecord | None, DeploymentState]:
    record = deployments.current(tx, group)
    return record, DeploymentState.CREATED if record is None else record.state


def after(action: DeploymentAction, state: DeploymentState) -> DeploymentState:
    """Raises WrongState."""
    found = state_after(action, state)
    if found is None:
        raise WrongState(wrong_state_words(action, state))
    return found


def next_record(tx: Transaction, group: str, before: DeploymentRecord | None) -> DeploymentRecord:
    """Of a deployment to come; what its group went through before is not forgotten."""
    if before is not None:
        history = before.document.history
    else:
        made_at = deployments.group_made_at(tx, group)
        history = (StateChange(DeploymentState.CREATED, made_at, 0),)
    return DeploymentRecord(
        id=str(uuid.uuid4()),
        group=group,
        revision=1 if before is None else before.revision + 1,
        state=DeploymentState.CREATED,
        document=DeploymentDocument(history=history),
        created_at=tx.now,
        changed_at=tx.now,
    )


def approve(tx: Transaction, group: str) -> DeploymentRecord:
    """Raises NotFound and WrongState."""
    deployments.lock_group(tx, group)
    record, state = current_state(tx, group)
    after(DeploymentAction.APPROVE, state)
    if record is not None and state is DeploymentState.APPROVED:
        return record
    approved = next_record(tx, group, record).moved(DeploymentState.APPROVED, tx.now)
    deployments.put(tx, approved)
    deployments.drop_ended(tx, group, but=approved.id)
    return approved


def to_instantiate(tx: Transaction, group: str) -> DeploymentRecord:
    """The deployment that an instantiate would be; nothing is written. Raises NotFound and
    WrongState."""
    deployments.group_made_at(tx, group)
    record, state = current_state(tx, group)
    after(DeploymentAction.INSTANTIATE, state)
    if record is not None and state is DeploymentState.APPROVED:
        return record
    return next_record(tx, group, record)


def instantiate(
    tx: Transaction, wanted: DeploymentRecord, planned: PlannedDeployment
) -> DeploymentRecord:
    """Raises NotFound, WrongState, and how the ledger turns down a claim."""
    deployments.lock_group(tx, wanted.group)
    record, state = current_state(tx, wanted.group)
    after(DeploymentAction.INSTANTIATE, state)
    if record is not None and state is DeploymentState.APPROVED and record.id != wanted.id:
        raise WrongState("the group was terminated and approved again meanwhile")
    take(tx, wanted, planned)
    document = replace(
        wanted.document,
        namespace=planned.namespace,
        placements=planned.placements,
        deadline=tx.now + planned.apply_seconds,
        context=planned.context,
    )
    started = replace(wanted, document=document).moved(DeploymentState.INSTANTIATING, tx.now)
    deployments.put(tx, started)
    deployments.set_objects(tx, started.id, planned.objects)
    deployments.drop_ended(tx, started.group, but=started.id)
    return settled(tx, started)


def take(tx: Transaction, record: DeploymentRecord, planned: PlannedDeployment) -> None:
    project = record.group.split("/")[1]
    user = record.group[-LONGEST_USER:]
    charges.take(tx, record.id, planned.placements, project=project, user=user)


def settled(tx: Transaction, record: DeploymentRecord) -> DeploymentRecord:
    """As it is once what follows at once has been done: nothing is sent to snapshots."""
    settle(tx, record)
    found = deployments.find(tx, record.id)
    assert found is not None
    return found


def terminate(tx: Transaction, group: str) -> DeploymentRecord:
    """Raises NotFound and WrongState."""
    deployments.lock_group(tx, group)
    record, state = current_state(tx, group)
    to = after(DeploymentAction.TERMINATE, state)
    assert record is not None
    return settled(tx, let_go(tx, record, to))


def let_go(
    tx: Transaction, record: DeploymentRecord, to: DeploymentState, reason: str = ""
) -> DeploymentRecord:
    """All objects leave."""
    objects = deployments.objects(tx, record.id)
    left = [replace(each, state=leaving(each.state), message="") for each in objects]
    moved = record.moved(to, tx.now, reason=reason)
    deployments.put(tx, moved)
    deployments.put_objects(tx, record.id, left)
    return moved


def stop(tx: Transaction, group: str) -> DeploymentRecord:
    """Give an instantiate up that is under way: nothing is kept. Raises NotFound, WrongState."""
    deployments.lock_group(tx, group)
    record, state = current_state(tx, group)
    if record is None or state is not DeploymentState.INSTANTIATING:
        raise WrongState(f"the group is {state}; stop is for one that is Instantiating")
    fail(tx, record, STOPPED)
    found = deployments.find(tx, record.id)
    assert found is not None
    return found


def fail(tx: Transaction, record: DeploymentRecord, why: str) -> None:
    settle(tx, record, why)


def expire(tx: Transaction, hold_seconds: int) -> int:
    """Give up deployments that hold something and of which nothing was ever sent; how many."""
    expired = 0
    for each in deployments.of_states(tx, (DeploymentState.INSTANTIATING,)):
        if tx.now - each.changed_at <= hold_seconds:
            continue
        record = deployments.find(tx, each.id, lock=True)
        if record is None or record.state is not DeploymentState.INSTANTIATING:
            continue
        sent = (ObjectState.PENDING, ObjectState.SKIPPED)
        if all(one.state in sent for one in deployments.objects(tx, each.id)):
            fail(tx, record, ABANDONED)
            expired += 1
    return expired


# -- update ----------------------------------------------------------------------------------------


def to_update(tx: Transaction, group: str) -> DeploymentRecord:
    """The deployment that is to be changed. Raises NotFound and WrongState."""
    deployments.group_made_at(tx, group)
    record, state = current_state(tx, group)
    after(DeploymentAction.UPDATE, state)
    assert record is not None
    return record


def update(tx: Transaction, seen: DeploymentRecord, planned: PlannedDeployment) -> DeploymentRecord:
    """Claims and objects as planned; objects that are no more planned leave, and what is held for
    them stays until they are gone. Raises as `instantiate`."""
    deployments.lock_group(tx, seen.group)
    record, state = current_state(tx, seen.group)
    to = after(DeploymentAction.UPDATE, state)
    if record is None or (record.id, record.revision) != (seen.id, seen.revision):
        raise WrongState("the group was changed meanwhile")
    there = merged(deployments.objects(tx, record.id), planned.objects)
    for app, cluster in left_behind(record, planned, there):
        charges.release(tx, record.id, app, cluster)
    take(tx, record, planned)
    document = replace(
        record.document,
        namespace=planned.namespace,
        placements=planned.placements,
        deadline=tx.now + planned.apply_seconds,
        context=planned.context,
    )
    changed = replace(record, document=document, revision=record.revision + 1).moved(to, tx.now)
    deployments.put(tx, changed)
    deployments.set_objects(tx, record.id, there)
    return settled(tx, changed)


def left_behind(
    record: DeploymentRecord, planned: PlannedDeployment, objects: Iterable[OutboxObject]
) -> list[tuple[str, ClusterName]]:
    """Apps and clusters where the deployment is no more, and has nothing to be removed."""
    kept = {(each.app, each.cluster) for each in planned.placements}
    kept |= {(each.app, each.cluster) for each in objects}
    return sorted({(each.app, each.cluster) for each in record.document.placements} - kept)


def merged(there: Sequence[OutboxObject], planned: Iterable[OutboxObject]) -> list[OutboxObject]:
    """The outbox after an update: what stays the same is not sent again."""
    by_key = {(each.cluster, each.app, each.key): each for each in there}
    found: list[OutboxObject] = []
    positions: dict[tuple[str, str], int] = {}
    for each in planned:
        old = by_key.pop((each.cluster, each.app, each.key), None)
        found.append(each if old is None else continued(old, each))
        at = (each.cluster, each.app)
        positions[at] = max(positions.get(at, -1), each.position)
    for old in by_key.values():
        if leaving(old.state) is ObjectState.DELETING:
            at = (old.cluster, old.app)
            positions[at] = positions.get(at, -1) + 1
            left = replace(old, state=ObjectState.DELETING, position=positions[at], message="")
            found.append(left)
    return found


def continued(old: OutboxObject, new: OutboxObject) -> OutboxObject:
    """`new` says REPLACING where the object has to be made anew."""
    if new.state is ObjectState.SKIPPED:
        return new
    is_same = old.manifest == new.manifest and old.state is ObjectState.APPLIED
    state = old.state if is_same or old.state is ObjectState.REPLACING else new.state
    if state is ObjectState.REPLACING and not old.uid:
        state = ObjectState.APPLYING
    if state is ObjectState.PENDING and leaving(old.state) is ObjectState.DELETING:
        # It may be there: when the deployment ends before it is sent, it has to be looked for.
        state = ObjectState.APPLYING
    return replace(
        new,
        state=state,
        uid=old.uid,
        readiness=old.readiness if is_same else None,
        observed_at=old.observed_at if is_same else 0,
    )


# -- documents -------------------------------------------------------------------------------------


class GroupHook:
    """Keeps the document of a group while something of it is deployed; an `ObjectHook`."""

    def kept(self, tx: Transaction, written: KeptObject) -> None:
        """What is deployed stays as it is until somebody asks for an update."""

    def dropping(self, tx: Transaction, path: str) -> None:
        _, state = current_state(tx, path)
        if state in ACTIVE:
            raise InUse(f"the group is {state}: terminate it first")
        if deployments.has_objects(tx, path):
            raise InUse("clusters may still have objects of the group, which are being removed")
        deployments.drop_group(tx, path)


class DeployedClusterHook:
    """Keeps the document of a cluster while groups are deployed there; an `ObjectHook` before
    another one. A cluster that is gone for good can go when its groups were told to end."""

    def __init__(self, hook: ObjectHook) -> None:
        self._hook = hook

    def kept(self, tx: Transaction, written: KeptObject) -> None:
        self._hook.kept(tx, written)

    def dropping(self, tx: Transaction, path: str) -> None:
        groups = deployments.on_cluster(tx, name_of_path(path))
        if groups:
            raise InUse(f"{groups[0]} is deployed there: terminate it first")
        self._hook.dropping(tx, path)
