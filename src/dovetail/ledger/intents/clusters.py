"""Registered clusters: how each is known, when it was last heard of, and what classes it has.

The document store has a cluster registered (`service/intents/cluster_hook.py`); the mirror tells
what becomes of it, or a posted snapshot does. Kubeconfigs stay with the documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from dovetail.intents.fleet import ClusterHealth
from dovetail.intents.names import ClusterName, cluster_name, provider_and_cluster
from dovetail.ledger.database.loading import chunks, marks
from dovetail.ledger.database.protocol import Row, Transaction
from dovetail.ledger.intents import nodes
from dovetail.ledger.intents.observed import SeenNode

KUBECONFIG = "kubeconfig"
"""The file that comes with the document of a cluster."""
REFERENCE = "kubeconfigRef"
"""The member of its specification that stands for one."""
RECENT_SECONDS = 5
"""Documents that changed so lately are read again: they may change twice within a second."""
CLUSTER_KIND, LABEL_KIND = "cluster", "cluster-label"
"""Kinds of documents."""


class ClusterSource(StrEnum):
    """Who tells what a cluster has."""

    MIRROR = "mirror"
    SNAPSHOT = "snapshot"
    NONE = "none"
    """Nobody: it has neither a kubeconfig nor a snapshot."""


class UnreachablePolicy(StrEnum):
    """What is done with a cluster while it does not answer."""

    EXCLUDE = "exclude"
    LAST_KNOWN = "lastKnown"


class ClusterRecord(msgspec.Struct, frozen=True):
    name: ClusterName
    state: ClusterHealth
    """As it was told: READY, AWAY or UNKNOWN."""
    why: str
    observed_at: int
    source: ClusterSource
    unreachable: UnreachablePolicy


class ClusterAccess(msgspec.Struct, frozen=True):
    """How the mirror and the worker of deployments get to a cluster."""

    kubeconfig: bytes = b""
    reference: str = ""
    """The name of a kubeconfig that the operator of the server keeps; empty if there is one."""


class ReportedWay(msgspec.Struct, frozen=True):
    """How a cluster was reached of which somebody tells."""

    access: ClusterAccess
    registered_at: int
    """When its document had changed last."""


class ClusterReport(msgspec.Struct, frozen=True):
    """How a cluster is, and when it was last heard of."""

    state: ClusterHealth
    observed_at: int
    """0: as it was."""
    why: str = ""
    way: ReportedWay | None = None
    """None: whichever."""


class SeenCluster(msgspec.Struct, frozen=True, kw_only=True):
    """All of a cluster, as a posted snapshot has it."""

    nodes: tuple[SeenNode, ...]
    classes: Mapping[str, Mapping[str, Any]] = {}
    """By name: the specifications of ResourceClasses, as they were written."""
    observed_at: int = 0
    """0: now."""


def document_path(cluster: ClusterName) -> str:
    provider, name = provider_and_cluster(cluster)
    return f"cluster-providers/{provider}/clusters/{name}"


def name_of_path(path: str) -> ClusterName:
    """Of the document of a cluster, or of one below it."""
    _, provider, _, cluster, *_ = path.split("/")
    return cluster_name(provider, cluster)


def register(
    tx: Transaction,
    cluster: ClusterName,
    source: ClusterSource,
    unreachable: UnreachablePolicy = UnreachablePolicy.EXCLUDE,
    *,
    is_new_way: bool = False,
) -> None:
    """Anew, or again in another way: what is known of its nodes stays until somebody knows more,
    but is not believed. `is_new_way`: it is reached in another way than before."""
    row = tx.row(f"SELECT source FROM clusters WHERE name = ?{tx.for_update}", (cluster,))  # noqa: S608
    if row is None:
        tx.run(
            """INSERT INTO clusters (name, state, why, observed_at, source, unreachable, classes)
               VALUES (?, ?, '', 0, ?, ?, '{}')""",
            (cluster, ClusterHealth.UNKNOWN, source, unreachable),
        )
        return
    tx.run(
        "UPDATE clusters SET source = ?, unreachable = ? WHERE name = ?",
        (source, unreachable, cluster),
    )
    if row[0] != source or is_new_way:
        # Who told of it before is asked no more, and it may be another cluster by now.
        tx.run(
            "UPDATE clusters SET state = ?, why = '' WHERE name = ?",
            (ClusterHealth.UNKNOWN, cluster),
        )


def forget(tx: Transaction, cluster: ClusterName) -> None:
    """It is registered no more; of its nodes stays what somebody holds."""
    tx.run("DELETE FROM clusters WHERE name = ?", (cluster,))
    nodes.leave_cluster(tx, cluster)


def tell(tx: Transaction, reports: Mapping[ClusterName, ClusterReport]) -> None:
    """Of those that are registered, for the mirror to tell; others are passed over, and so are
    those that were registered anew since they were reached."""
    registered = mirrored(tx)
    recent = [name for name, at in registered.items() if at >= tx.now - RECENT_SECONDS]
    anew = accesses(tx, recent)
    believed = [
        (name, each)
        for name, each in sorted(reports.items())
        if name in registered
        and (
            each.way is None
            or (
                each.way.registered_at == registered[name]
                and anew.get(name, each.way.access) == each.way.access
            )
        )
    ]
    tx.many(
        """UPDATE clusters SET state = ?, why = ?,
             observed_at = CASE WHEN observed_at > ? THEN observed_at ELSE ? END
           WHERE name = ?""",
        [
            (each.state, each.why, each.observed_at, each.observed_at, name)
            for name, each in believed
        ],
    )


def set_classes(
    tx: Transaction, cluster: ClusterName, classes: Mapping[str, Mapping[str, Any]]
) -> None:
    text = msgspec.json.encode(classes, order="sorted").decode()
    tx.run("UPDATE clusters SET classes = ? WHERE name = ? AND classes <> ?", (text, cluster, text))


def enter_snapshot(tx: Transaction, cluster: ClusterName, snapshot: SeenCluster) -> None:
    """Make the snapshot all that is known of a registered cluster."""
    nodes.replace(tx, cluster, snapshot.nodes)
    set_classes(tx, cluster, snapshot.classes)
    tx.run(
        "UPDATE clusters SET state = ?, why = '', observed_at = ?, source = ? WHERE name = ?",
        (ClusterHealth.READY, snapshot.observed_at or tx.now, ClusterSource.SNAPSHOT, cluster),
    )


SELECT = "SELECT name, state, why, observed_at, source, unreachable FROM clusters"


def listing(tx: Transaction) -> list[ClusterRecord]:
    """In the order of their names."""
    return [_record_of(row) for row in sorted(tx.rows(SELECT))]


def find(tx: Transaction, cluster: ClusterName, *, lock: bool = False) -> ClusterRecord | None:
    """`lock`: it stays registered as it is until the transaction ends."""
    share = " FOR SHARE" if lock and tx.for_update else ""
    row = tx.row(f"{SELECT} WHERE name = ?{share}", (cluster,))
    return _record_of(row) if row else None


def _record_of(row: Row) -> ClusterRecord:
    name, state, why, observed_at, source, unreachable = row
    return ClusterRecord(
        name,
        ClusterHealth(state),
        why,
        observed_at,
        ClusterSource(source),
        UnreachablePolicy(unreachable),
    )


def classes(tx: Transaction) -> dict[ClusterName, str]:
    """The document of each cluster that has some."""
    return dict(tx.rows("SELECT name, classes FROM clusters WHERE classes <> '{}'"))


def labels(tx: Transaction) -> dict[ClusterName, frozenset[str]]:
    found: dict[ClusterName, set[str]] = {}
    for (path,) in tx.rows("SELECT path FROM intent_objects WHERE kind = ?", (LABEL_KIND,)):
        found.setdefault(name_of_path(path), set()).add(path.rpartition("/")[2])
    return {name: frozenset(each) for name, each in found.items()}


# -- the ways to clusters --------------------------------------------------------------------------


def mirrored(tx: Transaction) -> dict[ClusterName, int]:
    """Clusters that are to be followed, and when their documents changed last."""
    rows = tx.rows("SELECT name FROM clusters WHERE source = ?", (ClusterSource.MIRROR,))
    changed: dict[str, int] = dict(
        tx.rows("SELECT path, changed_at FROM intent_objects WHERE kind = ?", (CLUSTER_KIND,))
    )
    return {name: changed.get(document_path(name), 0) for (name,) in rows}


def accesses(tx: Transaction, names: Iterable[ClusterName]) -> dict[ClusterName, ClusterAccess]:
    """Of clusters that there is a way to."""
    paths = {document_path(name): name for name in names}
    found: dict[ClusterName, ClusterAccess] = {}
    for some in chunks(sorted(paths)):
        among = f"path IN ({marks(len(some))})"
        for path, text in tx.rows(
            f"SELECT path, document FROM intent_objects WHERE {among}",  # noqa: S608
            some,
        ):
            spec = (msgspec.json.decode(text).get("spec") or {}) if text else {}
            if reference := spec.get(REFERENCE):
                found[paths[path]] = ClusterAccess(reference=reference)
        for path, content in tx.rows(
            f"SELECT path, content FROM intent_files WHERE name = ? AND {among}",  # noqa: S608
            (KUBECONFIG, *some),
        ):
            found[paths[path]] = ClusterAccess(bytes(content))
    return found
