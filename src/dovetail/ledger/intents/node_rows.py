"""Rows of nodes: what the ledger has on record of the nodes of clusters, and what is held of them.

`nodes` writes them; `others`, `charges` and the fleet's cache read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from dovetail.core.device import Device
from dovetail.intents.names import DEPLOYMENT_LABEL, ClusterName
from dovetail.ledger.database.loading import chunks, marks
from dovetail.ledger.database.protocol import Transaction
from dovetail.ledger.intents.node_names import root_name
from dovetail.ledger.intents.observed import (
    NODE_DECODER,
    PODS_DECODER,
    DeviceUse,
    SeenPod,
    observed_pod,
)
from dovetail.podfit.objects import Node

GONE = ""
"""The document of a node that is no more, but of which something is held."""


class NodeRow(msgspec.Struct, frozen=True):
    """A node as it is in the ledger."""

    root_id: int
    cluster: ClusterName
    name: str
    document: str
    pods: str

    @property
    def is_gone(self) -> bool:
        return self.document == GONE

    @property
    def root(self) -> str:
        """The name of its root."""
        return root_name(self.cluster, self.name)


SELECT = "SELECT root_id, cluster, name, document, pods FROM cluster_nodes"

# Whoever writes a row, or what follows from it, locks it before anything else, in the order of
# roots: else what was read may be old when it is written.


def of_cluster(tx: Transaction, cluster: ClusterName, *, lock: bool = False) -> list[NodeRow]:
    return _rows(tx, "cluster = ?", (cluster,), lock=lock)


def of_roots(
    tx: Transaction, roots: Iterable[int] | None = None, *, lock: bool = False
) -> list[NodeRow]:
    """Nodes among these roots, or all."""
    if roots is None:
        return _rows(tx, "TRUE", (), lock=lock)
    return [
        row
        for some in chunks(sorted(roots))
        for row in _rows(tx, f"root_id IN ({marks(len(some))})", some, lock=lock)
    ]


def gone(tx: Transaction) -> list[int]:
    """Roots of nodes that are no more, but of which something was held."""
    rows = tx.rows("SELECT root_id FROM cluster_nodes WHERE document = ?", (GONE,))
    return [root for (root,) in rows]


def holding_pods_of(tx: Transaction, cluster: ClusterName, deployment: str) -> list[NodeRow]:
    """Nodes that a pod with the label of a deployment is on, and perhaps some others."""
    like = f'%"{DEPLOYMENT_LABEL}":"{deployment}"%'
    return _rows(tx, "cluster = ? AND pods LIKE ?", (cluster, like))


def named(
    tx: Transaction, cluster: ClusterName, names: Iterable[str], *, lock: bool = False
) -> dict[str, NodeRow]:
    return {
        row.name: row
        for some in chunks(sorted(names))
        for row in _rows(
            tx, f"cluster = ? AND name IN ({marks(len(some))})", (cluster, *some), lock=lock
        )
    }


def _rows(
    tx: Transaction, where: str, parameters: Sequence[Any], *, lock: bool = False
) -> list[NodeRow]:
    until_the_end = tx.for_update if lock else ""
    rows = tx.rows(f"{SELECT} WHERE {where} ORDER BY root_id{until_the_end}", parameters)
    return [NodeRow(*row) for row in rows]


def usage(tx: Transaction, roots: Iterable[int]) -> dict[int, list[tuple[str, str, int]]]:
    """By root: names of providers in its tree, of classes, and what is held of them by anybody."""
    found: dict[int, list[tuple[str, str, int]]] = {}
    for some in chunks(sorted(roots)):
        for root, *held in tx.rows(
            f"""SELECT p.root_id, p.name, k.name, i.used
                FROM providers p
                JOIN inventories i ON i.provider_id = p.id
                JOIN resource_classes k ON k.id = i.class_id
                WHERE i.used > 0 AND p.root_id IN ({marks(len(some))})""",  # noqa: S608
            some,
        ):
            provider, name, used = held
            found.setdefault(root, []).append((provider, name, used))
    return found


class NodeContent(msgspec.Struct, frozen=True):
    """What of a node decides what it has and what is used of it."""

    node: Node
    devices: tuple[Device, ...]
    pods: tuple[SeenPod, ...]
    uses: tuple[DeviceUse, ...]


def content_of(row: NodeRow) -> NodeContent:
    node, pods = NODE_DECODER.decode(row.document), PODS_DECODER.decode(row.pods)
    seen = tuple(filter(None, map(observed_pod, pods.pods)))
    return NodeContent(node.node, node.devices, seen, pods.uses)
