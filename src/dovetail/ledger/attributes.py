"""Attributes: texts by key, of a provider."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.core.provider import Provider
from dovetail.ledger import providers
from dovetail.ledger.database.protocol import Change, Transaction


def of_provider(tx: Transaction, provider: Provider) -> dict[str, str]:
    return dict(
        tx.rows(
            "SELECT key, value FROM provider_attributes WHERE provider_id = ? ORDER BY key",
            (provider.id,),
        )
    )


def assign(tx: Transaction, provider: Provider, wanted: Mapping[str, str]) -> Provider:
    """Make these all the attributes of the provider; a new generation only if that changes them."""
    now = of_provider(tx, provider)
    if now == dict(wanted):
        return provider
    fresh = {key: value for key, value in wanted.items() if now.get(key) != value}
    tx.many(
        "DELETE FROM provider_attributes WHERE provider_id = ? AND key = ?",
        [(provider.id, key) for key in now if key in fresh or key not in wanted],
    )
    tx.many(
        "INSERT INTO provider_attributes (provider_id, key, value) VALUES (?, ?, ?)",
        [(provider.id, key, value) for key, value in sorted(fresh.items())],
    )
    tx.changed(Change.TREE, provider.root_id)
    return providers.bump(tx, provider)
