"""Deployments of groups and their outbox: objects on the way to clusters, in the ledger.

`service/intents` writes both in the transaction that takes the claims; its worker takes objects
from here and records how far they are. Whoever changes a deployment holds its group's row, so that
two cannot decide about one group at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from dovetail.core.errors import NotFound
from dovetail.intents.deployment import (
    ENDING,
    DeploymentDocument,
    DeploymentRecord,
    DeploymentState,
    ObjectKey,
    ObjectReadiness,
    ObjectState,
    OutboxObject,
)
from dovetail.intents.names import ClusterName
from dovetail.ledger.database.loading import marks
from dovetail.ledger.database.protocol import Row, Transaction

COLUMNS = "id, group_path, revision, state, document, created_at, changed_at"
WATCHED = tuple(
    state
    for state in DeploymentState
    if state not in (DeploymentState.CREATED, DeploymentState.APPROVED, DeploymentState.TERMINATED)
)
"""States in which a worker has something to do, or to look at."""


class ObjectText(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of an object as one document."""

    manifest: Mapping[str, Any]
    uid: str = ""
    readiness: ObjectReadiness | None = None
    observed_at: int = 0


DOCUMENTS = msgspec.json.Decoder(DeploymentDocument)
OBJECTS = msgspec.json.Decoder(ObjectText)


def lock_group(tx: Transaction, path: str) -> None:
    """Keep others from deciding about the group until the end. Raises NotFound."""
    group_made_at(tx, path, tx.for_update)


def group_made_at(tx: Transaction, path: str, how: str = "") -> int:
    """Raises NotFound."""
    row = tx.row(
        f"SELECT created_at FROM intent_objects WHERE path = ?{how}",  # noqa: S608
        (path,),
    )
    if row is None:
        raise NotFound(f"there is no deployment-intent-group {path.rpartition('/')[2]!r}")
    made_at: int = row[0]
    return made_at


def current(tx: Transaction, group: str) -> DeploymentRecord | None:
    """The newest one; older ones are there as long as something of them is."""
    row = tx.row(
        f"""SELECT {COLUMNS} FROM deployments WHERE group_path = ?
            ORDER BY revision DESC LIMIT 1""",  # noqa: S608
        (group,),
    )
    return None if row is None else record_of(row)


def find(tx: Transaction, id_: str, *, lock: bool = False) -> DeploymentRecord | None:
    row = tx.row(
        f"SELECT {COLUMNS} FROM deployments WHERE id = ?{tx.for_update if lock else ''}",  # noqa: S608
        (id_,),
    )
    return None if row is None else record_of(row)


def watched(tx: Transaction) -> list[tuple[str, int, DeploymentState]]:
    """id, revision and state of those that a worker has to do with: of failed ones, while there is
    anything left of them."""
    rows = tx.rows(
        f"""SELECT d.id, d.revision, d.state FROM deployments d
            WHERE d.state IN ({marks(len(WATCHED))}) AND (d.state <> ? OR EXISTS (
              SELECT 1 FROM deployment_objects o WHERE o.deployment = d.id AND o.state <> ?))
            ORDER BY d.created_at, d.id""",  # noqa: S608
        (*WATCHED, DeploymentState.INSTANTIATE_FAILED, ObjectState.DELETED),
    )
    return [(id_, revision, DeploymentState(state)) for id_, revision, state in rows]


def of_states(tx: Transaction, states: Collection[DeploymentState]) -> list[DeploymentRecord]:
    rows = tx.rows(
        f"""SELECT {COLUMNS} FROM deployments WHERE state IN ({marks(len(states))})
            ORDER BY created_at, id""",  # noqa: S608
        tuple(states),
    )
    return [record_of(row) for row in rows]


def put(tx: Transaction, record: DeploymentRecord) -> None:
    """As it is from now on, whatever it was."""
    document = msgspec.json.encode(record.document).decode()
    about = (record.revision, record.state, document, record.changed_at)
    touched = tx.run(
        """UPDATE deployments SET revision = ?, state = ?, document = ?, changed_at = ?
           WHERE id = ?""",
        (*about, record.id),
    )
    if not touched:
        tx.run(
            """INSERT INTO deployments
                 (revision, state, document, changed_at, id, group_path, created_at)
               VALUES (?, ?, ?, ?, ?, ?, ?)""",
            (*about, record.id, record.group, record.created_at),
        )


def drop(tx: Transaction, id_: str) -> None:
    tx.run("DELETE FROM deployment_objects WHERE deployment = ?", (id_,))
    tx.run("DELETE FROM deployments WHERE id = ?", (id_,))


def drop_group(tx: Transaction, group: str) -> None:
    for (id_,) in tx.rows("SELECT id FROM deployments WHERE group_path = ?", (group,)):
        drop(tx, id_)


def has_objects(tx: Transaction, group: str) -> bool:
    """Whether anything that was sent for the group may be on a cluster."""
    row = tx.row(
        """SELECT 1 FROM deployments d JOIN deployment_objects o ON o.deployment = d.id
           WHERE d.group_path = ? AND o.state NOT IN (?, ?) LIMIT 1""",
        (group, ObjectState.DELETED, ObjectState.SKIPPED),
    )
    return row is not None


def on_cluster(tx: Transaction, cluster: ClusterName) -> list[str]:
    """Groups that are deployed on a cluster, and are not about to leave it."""
    rows = tx.rows(
        f"""SELECT DISTINCT d.group_path FROM deployments d
            JOIN deployment_objects o ON o.deployment = d.id
            WHERE o.cluster = ? AND o.state NOT IN (?, ?) AND d.state NOT IN ({marks(len(ENDING))})
            ORDER BY d.group_path""",  # noqa: S608
        (cluster, ObjectState.DELETED, ObjectState.SKIPPED, *sorted(ENDING)),
    )
    return [group for (group,) in rows]


def drop_ended(tx: Transaction, group: str, *, but: str) -> None:
    """Earlier deployments of which nothing is left."""
    rows = tx.rows(
        """SELECT d.id FROM deployments d WHERE d.group_path = ? AND d.id <> ?
             AND NOT EXISTS (SELECT 1 FROM deployment_objects o
                             WHERE o.deployment = d.id AND o.state <> ?)""",
        (group, but, ObjectState.DELETED),
    )
    for (id_,) in rows:
        drop(tx, id_)


def record_of(row: Row) -> DeploymentRecord:
    id_, group, revision, state, document, created_at, changed_at = row
    return DeploymentRecord(
        id=id_,
        group=group,
        revision=revision,
        state=DeploymentState(state),
        document=DOCUMENTS.decode(document),
        created_at=created_at,
        changed_at=changed_at,
    )


# -- objects -------------------------------------------------------------------------------------


def objects(tx: Transaction, deployment: str) -> list[OutboxObject]:
    """In the order of cluster, app and position."""
    rows = tx.rows(
        """SELECT cluster, app, position, object_key, document, state, message
           FROM deployment_objects WHERE deployment = ? ORDER BY cluster, app, position""",
        (deployment,),
    )
    return [object_of(row) for row in rows]


def object_of(row: Row) -> OutboxObject:
    cluster, app, position, key, document, state, message = row
    text = OBJECTS.decode(document)
    return OutboxObject(
        cluster=cluster,
        app=app,
        position=position,
        key=ObjectKey.of_text(key),
        manifest=text.manifest,
        state=ObjectState(state),
        uid=text.uid,
        message=message,
        readiness=text.readiness,
        observed_at=text.observed_at,
    )


def set_objects(tx: Transaction, deployment: str, wanted: Iterable[OutboxObject]) -> None:
    """Make these all that the deployment has."""
    tx.run("DELETE FROM deployment_objects WHERE deployment = ?", (deployment,))
    tx.many(
        """INSERT INTO deployment_objects
             (object_key, document, state, message, deployment, cluster, app, position)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
        [(*columns_of(each), deployment, *each.place) for each in wanted],
    )


def put_objects(tx: Transaction, deployment: str, changed: Sequence[OutboxObject]) -> None:
    """These are as they say from now on."""
    tx.many(
        """UPDATE deployment_objects SET object_key = ?, document = ?, state = ?, message = ?
           WHERE deployment = ? AND cluster = ? AND app = ? AND position = ?""",
        [(*columns_of(each), deployment, *each.place) for each in changed],
    )


def columns_of(one: OutboxObject) -> tuple[str, str, str, str]:
    text = ObjectText(
        manifest=one.manifest, uid=one.uid, readiness=one.readiness, observed_at=one.observed_at
    )
    return one.key.text, msgspec.json.encode(text).decode(), one.state, one.message
