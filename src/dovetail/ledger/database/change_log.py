"""Reader of the change log: what a snapshot has to take in since a cursor, for `Ledger.poll`.

The log has a row per changed tree; `sqlite` and `postgres` write and trim it, and call this.
"""

from __future__ import annotations

from dovetail.core.tables import Tables
from dovetail.ledger.database import loading
from dovetail.ledger.database.protocol import Change, Cursor, Delta, Log, Transaction

WHOLE_FOREST_AFTER = 2_000
"""So many changed trees are read faster as the whole forest than one by one."""


def delta(tx: Transaction, cursor: Cursor, log: Log | None) -> Delta:
    """What a snapshot has to take in, given what it has not seen; None: everything."""
    return whole(tx, cursor) if log is None else since(tx, cursor, log)


def whole(tx: Transaction, cursor: Cursor) -> Delta:
    tx.lift_timeouts()
    return Delta(
        cursor=cursor,
        forest=loading.forest(tx),
        names=loading.names(tx),
        definitions=loading.definitions(tx),
    )


def since(tx: Transaction, cursor: Cursor, log: Log) -> Delta:
    """The delta that brings a snapshot to `cursor`, given the (kind, root) rows it has not seen."""
    roots: dict[int, set[int]] = {kind: set() for kind in Change}
    for kind, root in log:
        roots[kind].add(root)
    changed_trees = roots[Change.TREE]
    if len(changed_trees) > WHOLE_FOREST_AFTER:
        return whole(tx, cursor)
    delta = Delta(cursor=cursor)
    if changed_trees:
        delta.trees = loading.trees(tx, list(changed_trees))
        delta.removed_roots = sorted(changed_trees - roots_of(delta.trees))
    if used := roots[Change.USAGE] - changed_trees:
        delta.usage = loading.usage(tx, list(used))
    if roots[Change.NAMES] or changed_trees:
        # A changed tree may use a name made in the same transaction.
        delta.names = loading.names(tx)
    if roots[Change.CLASSES]:
        delta.definitions = loading.definitions(tx)
    return delta


def roots_of(tables: Tables) -> set[int]:
    return {root for _, _, _, root in tables.providers}
