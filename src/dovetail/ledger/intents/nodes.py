"""Nodes of clusters, each a tree of providers with what it has, for the mirror and snapshots.

The root has inventories of the node's resources, its devices are below it, and the cluster is an
aggregate of its nodes. What pods of others use is held by one consumer per node, as observed: it
may be more than there is, and then nothing more can be claimed. Pods of our own deployments are no
others as long as their deployment holds its claim; without one they are, whoever made them.

A node that goes while somebody holds something of it leaves its tree behind, of which nothing more
can be had; `sweep` drops it when that is released.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from dovetail.core.device import Device
from dovetail.core.errors import Malformed
from dovetail.core.inventory import Inventory
from dovetail.core.provider import Provider
from dovetail.intents.names import ClusterName
from dovetail.ledger import aggregates, claims, devices, inventories, resource_classes
from dovetail.ledger.database.loading import chunks, marks
from dovetail.ledger.database.protocol import Change, Transaction
from dovetail.ledger.intents import node_rows, others
from dovetail.ledger.intents.node_names import aggregate_uuid, others_uuid, root_name
from dovetail.ledger.intents.node_rows import (
    GONE,
    NodeContent,
    NodeRow,
    named,
    of_cluster,
    of_roots,
)
from dovetail.ledger.intents.observed import (
    NODE_DECODER,
    SeenNode,
    node_document,
    pods_document,
)
from dovetail.ledger.intents.others import AT_ONCE, LARGEST_AMOUNT, is_pool, total_of
from dovetail.ledger.intents.resource_names import class_of_resource
from dovetail.podfit.pod_sum import allocatable_of
from dovetail.podfit.readiness import is_ready


def enter(tx: Transaction, cluster: ClusterName, seen: Sequence[SeenNode]) -> int:
    """Make these nodes of the cluster what was seen; others of it stay as they are.

    How many are others than before: the rest costs a look.
    """
    return sum(_enter_some(tx, cluster, some) for some in chunks(seen, AT_ONCE))


def replace(tx: Transaction, cluster: ClusterName, seen: Sequence[SeenNode]) -> int:
    """Make these all the nodes of the cluster."""
    names = {each.name for each in seen}
    gone = [row.name for row in of_cluster(tx, cluster, lock=True) if row.name not in names]
    leave(tx, cluster, gone)
    return enter(tx, cluster, seen) + len(gone)


def _enter_some(tx: Transaction, cluster: ClusterName, seen: Sequence[SeenNode]) -> int:
    before = named(tx, cluster, [each.name for each in seen], lock=True)
    changed: list[tuple[NodeRow, NodeContent]] = []
    for each in seen:
        known = before.get(each.name)
        document, pods = node_document(each), pods_document(each)
        if known is not None and (known.document, known.pods) == (document, pods):
            continue
        content = NodeContent(each.node, each.devices, each.pods, each.uses)
        if known is None or known.document != document:
            root = _enter_tree(tx, cluster, content, known)
        else:
            root = known.root_id
        changed.append((NodeRow(root, cluster, each.name, document, pods), content))
    _write_rows(tx, [row for row, _ in changed], before)
    others.observe(tx, changed)
    _tidy(tx, changed)
    return len(changed)


def _tidy(tx: Transaction, changed: Sequence[tuple[NodeRow, NodeContent]]) -> None:
    """Drop what nodes had, and was kept only because pods used it that are gone by now."""
    roots = [row.root_id for row, _ in changed]
    rows = tx.rows(
        f"""SELECT DISTINCT p.root_id FROM providers p JOIN inventories i ON i.provider_id = p.id
            WHERE i.used = 0 AND i.total = i.reserved AND p.root_id IN ({marks(len(roots))})""",  # noqa: S608
        roots,
    )
    closed = {root for (root,) in rows}
    for row, content in changed:
        if row.root_id in closed:
            root = devices.ensure_root(tx, row.root)
            _set_inventories(tx, root, resource_totals(content.node.status.allocatable), ())
            devices.publish(tx, row.root, providers_of(content))


def providers_of(content: NodeContent) -> list[Device]:
    """Devices that have providers of their own."""
    return [each for each in content.devices if not is_pool(each)]


def _write_rows(tx: Transaction, rows: Sequence[NodeRow], before: Mapping[str, NodeRow]) -> None:
    tx.many(
        "INSERT INTO cluster_nodes (root_id, cluster, name, document, pods) VALUES (?, ?, ?, ?, ?)",
        [
            (row.root_id, row.cluster, row.name, row.document, row.pods)
            for row in rows
            if row.name not in before
        ],
    )
    tx.many(
        "UPDATE cluster_nodes SET document = ?, pods = ? WHERE root_id = ?",
        [(row.document, row.pods, row.root_id) for row in rows if row.name in before],
    )
    for row in rows:
        tx.changed(Change.USAGE, row.root_id)


def _enter_tree(
    tx: Transaction, cluster: ClusterName, content: NodeContent, known: NodeRow | None
) -> int:
    """The node's providers with what it has; the id of the root."""
    name = root_name(cluster, content.node.metadata.name)
    root = devices.ensure_root(tx, name)
    if root.uuid != devices.own_uuid(name):
        raise Malformed(f"the provider {name!r} is somebody else's")
    if known is None or known.is_gone:
        aggregate = aggregate_uuid(cluster)
        aggregates.assign(tx, root, {*aggregates.of_provider(tx, root), aggregate})
        before: set[str] = set()
    else:
        node = NODE_DECODER.decode(known.document).node
        before = set(resource_totals(node.status.allocatable))
    root = _set_inventories(tx, root, resource_totals(content.node.status.allocatable), before)
    devices.publish(tx, name, providers_of(content))
    devices.set_node_health(tx, root, is_healthy=is_ready(content.node))
    tx.changed(Change.TREE, root.id)
    return root.id


def resource_totals(written: Mapping[str, str]) -> dict[str, Inventory]:
    """What a node has, by resource class."""
    return {
        class_of_resource(name): total_of(units)
        for name, units in allocatable_of(written).items()
        if units > 0
    }


def _set_inventories(
    tx: Transaction, root: Provider, wanted: Mapping[str, Inventory], before: Collection[str]
) -> Provider:
    """What others put on the root stays; of what is held and gone, nothing more can be had."""
    now = inventories.of_provider(tx, root)
    for name, inventory in wanted.items():
        resource_classes.ensure(tx, name)
        if name not in now:
            root = inventories.add(tx, root, name, inventory)
        elif now[name].inventory != inventory:
            root = inventories.change(tx, root, name, inventory)
    for name, recorded in now.items():
        is_closed = recorded.inventory.total == recorded.inventory.reserved
        if name in wanted or not (name in before or is_closed):
            continue
        if not recorded.used:
            root = inventories.remove(tx, root, name)
        elif not is_closed:
            total = recorded.inventory.total
            closed = Inventory(total=total, reserved=total, max_unit=LARGEST_AMOUNT)
            root = inventories.change(tx, root, name, closed)
    return root


# -- nodes go --------------------------------------------------------------------------------------


def leave(tx: Transaction, cluster: ClusterName, names: Iterable[str]) -> None:
    """These nodes of the cluster are no more."""
    for row in named(tx, cluster, names, lock=True).values():
        _leave(tx, row)


def leave_cluster(tx: Transaction, cluster: ClusterName) -> None:
    for row in of_cluster(tx, cluster, lock=True):
        _leave(tx, row)


def sweep(tx: Transaction, roots: Iterable[int] | None = None) -> None:
    """Drop nodes that went while something of them was held, and is no more."""
    for row in of_roots(tx, node_rows.gone(tx) if roots is None else roots, lock=True):
        if row.is_gone:
            _leave(tx, row)


def _leave(tx: Transaction, row: NodeRow) -> None:
    claims.release(tx, others_uuid(row.root))
    root = devices.by_name(tx, row.root)
    if root is not None:
        before = {name for name in inventories.of_provider(tx, root) if name.startswith("CUSTOM_")}
        root = _set_inventories(tx, root, {}, before)
        for name in devices.units_of(tx, row.root):
            devices.retire(tx, name)
    if root is None or _drop(tx, root, row.cluster):
        tx.run("DELETE FROM cluster_nodes WHERE root_id = ?", (row.root_id,))
    else:
        tx.run(
            "UPDATE cluster_nodes SET document = ?, pods = ? WHERE root_id = ?",
            (GONE, GONE, row.root_id),
        )
    tx.changed(Change.TREE, row.root_id)


def _drop(tx: Transaction, root: Provider, cluster: ClusterName) -> bool:
    """Whether the root is gone; one of which somebody holds something stays with its cluster."""
    is_held = tx.row(
        """SELECT 1 FROM inventories i JOIN providers p ON p.id = i.provider_id
           WHERE p.root_id = ? AND i.used > 0 LIMIT 1""",
        (root.id,),
    )
    if is_held:
        return False
    of_others = set(aggregates.of_provider(tx, root)) - {aggregate_uuid(cluster)}
    aggregates.assign(tx, root, of_others)
    devices.set_node_health(tx, root, is_healthy=True)
    devices.drop_if_own(tx, root)
    return True
