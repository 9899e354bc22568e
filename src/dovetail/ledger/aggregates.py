"""Aggregates: sets of providers, known only by their UUIDs."""

from __future__ import annotations

from collections.abc import Collection

from dovetail.core.provider import Provider
from dovetail.ledger.database.protocol import Change, Transaction


def of_provider(tx: Transaction, provider: Provider) -> list[str]:
    rows = tx.rows(
        "SELECT aggregate FROM provider_aggregates WHERE provider_id = ? ORDER BY aggregate",
        (provider.id,),
    )
    return [aggregate for (aggregate,) in rows]


def assign(tx: Transaction, provider: Provider, aggregates: Collection[str]) -> None:
    """Make these all the aggregates of the provider. The generation is the caller's affair."""
    now, then = set(of_provider(tx, provider)), set(aggregates)
    tx.many(
        "DELETE FROM provider_aggregates WHERE provider_id = ? AND aggregate = ?",
        [(provider.id, aggregate) for aggregate in now - then],
    )
    tx.many(
        "INSERT INTO provider_aggregates (provider_id, aggregate) VALUES (?, ?)",
        [(provider.id, aggregate) for aggregate in sorted(then - now)],
    )
    tx.changed(Change.TREE, provider.root_id)
