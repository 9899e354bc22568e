"""Queues of machine groups: who waits for units and why, kept by the operator, shown by views.

A queue is one document, replaced as a whole: a change costs one row, whoever moved up in it. It is
what the operator knew when it last told of a change, and nothing is decided by it. So it is not
noted in the change log, and no backup has it: whoever leads the restored cluster tells it anew.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dovetail.ledger.database.protocol import Transaction


class QueuedGuest(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that waits for a unit, or for its way to the node."""

    uid: str
    namespace: str
    pod: str
    type: str
    since: str | None
    """When it was created, as Kubernetes writes times."""
    reason: str | None
    """A token of `WaitReason`; None: its turn is to come, or to come again, as the ledger refused
    the unit."""
    message: str


class GroupQueue(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator alone knows of a group."""

    waiting: dict[str, int]
    """By type, all who wait."""
    guests: tuple[QueuedGuest, ...]
    """In the order in which they are served; the first of them, if there are very many."""
    lent_seconds: dict[str, int]
    """By type, how long a unit is lent; types without an end are not in it."""
    pods: dict[str, str]
    """By uid, the name of each guest that has a unit."""


class ToldQueue(msgspec.Struct, frozen=True):
    queue: GroupQueue
    at: int
    """Unix seconds."""


def groups(tx: Transaction, prefix: str) -> list[str]:
    """Groups of a cluster that have a queue."""
    rows = tx.rows(
        "SELECT group_name FROM machine_queues WHERE cluster = ? ORDER BY group_name", (prefix,)
    )
    return [name for (name,) in rows]


def every(tx: Transaction) -> dict[tuple[str, str], ToldQueue]:
    """Queues of all clusters, by the prefix of the cluster and the group."""
    rows = tx.rows(
        """SELECT cluster, group_name, document, told_at FROM machine_queues
           ORDER BY cluster, group_name"""
    )
    return {
        (prefix, group): ToldQueue(msgspec.json.decode(document, type=GroupQueue), at)
        for prefix, group, document, at in rows
    }


def assign(tx: Transaction, prefix: str, queues: Mapping[str, GroupQueue | None]) -> None:
    """Make these the queues of these groups; None: the group has none any more."""
    # In one order, whoever writes: two that believe to lead do not wait for each other.
    for group, queue in sorted(queues.items()):
        if queue is None:
            tx.run(
                "DELETE FROM machine_queues WHERE cluster = ? AND group_name = ?", (prefix, group)
            )
        else:
            tx.run(
                """INSERT INTO machine_queues (cluster, group_name, document, told_at)
                   VALUES (?, ?, ?, ?)
                   ON CONFLICT (cluster, group_name)
                   DO UPDATE SET document = excluded.document, told_at = excluded.told_at""",
                (prefix, group, msgspec.json.encode(queue).decode(), tx.now),
            )
