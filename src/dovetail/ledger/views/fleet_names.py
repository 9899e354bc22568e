"""What a map of the fleet needs beyond the snapshot: names of providers, clusters of nodes, and
which roots are no hosts."""

from __future__ import annotations

import msgspec

from dovetail.ledger.database.protocol import Transaction
from dovetail.ledger.intents.node_rows import GONE
from dovetail.ledger.machines import stock


class FleetNames(msgspec.Struct, frozen=True):
    names: dict[int, str]
    """By provider id."""
    clusters: dict[int, str]
    """Of registered clusters, by the root of a node."""
    gone: frozenset[int]
    """Roots of nodes that are no more, but of which something is held."""
    no_hosts: frozenset[int]
    """Roots that the ledger keeps books in, and are no hardware."""


def of_fleet(tx: Transaction) -> FleetNames:
    names: dict[int, str] = {}
    for rows in tx.stream("SELECT id, name FROM providers"):
        names.update(rows)
    nodes = tx.rows("SELECT root_id, cluster, document = ? FROM cluster_nodes", (GONE,))
    return FleetNames(
        names=names,
        clusters={root: cluster for root, cluster, _ in nodes},
        gone=frozenset(root for root, _, is_gone in nodes if is_gone),
        no_hosts=stock.roots(tx),
    )
