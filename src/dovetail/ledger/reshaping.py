"""Reshaping: inventories and the claims on them move together, in one step.

Needed when a flat host becomes a tree: neither "inventories first" nor "claims first" is possible
while both are checked against each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dovetail.core.claim import Claim
from dovetail.core.errors import StaleGeneration
from dovetail.core.inventory import Inventory
from dovetail.core.provider import Provider
from dovetail.ledger import claims, inventories, providers
from dovetail.ledger.database.protocol import Transaction


def reshape(
    tx: Transaction,
    wanted: Mapping[str, tuple[int, Mapping[str, Inventory]]],
    new_claims: Sequence[Claim],
) -> None:
    """Give providers (by uuid: their generation and inventories) and consumers what is said."""
    reshaped = [
        (expect(tx, uuid, generation), stock)
        for uuid, (generation, stock) in sorted(wanted.items())
    ]
    # First everything old and new side by side, then the claims move over, then the old goes.
    interim = []
    for provider, stock in reshaped:
        if not stock:
            interim.append(provider)
            continue
        kept = {
            name: kept.inventory for name, kept in inventories.of_provider(tx, provider).items()
        }
        interim.append(inventories.assign(tx, provider, {**kept, **stock}))
    claims.replace(tx, new_claims)
    for provider, (_, stock) in zip(interim, reshaped, strict=True):
        inventories.assign(tx, provider, stock)


def expect(tx: Transaction, uuid: str, generation: int) -> Provider:
    provider = providers.get_locked(tx, uuid)
    if provider.generation != generation:
        raise StaleGeneration(
            f"resource provider generation conflict for provider {uuid}: "
            f"actual: {provider.generation}, given: {generation}"
        )
    return provider
