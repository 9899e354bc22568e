"""Short words for ledger tests."""

from __future__ import annotations

import uuid as uuids

from dovetail.core.claim import Claim
from dovetail.core.inventory import Inventory
from dovetail.core.provider import Provider
from dovetail.ledger import Ledger, claims, inventories, providers, usages


def new() -> str:
    return str(uuids.uuid4())


def make(
    ledger: Ledger, name: str, parent: Provider | None = None, **stock: int | Inventory
) -> Provider:
    """A provider with inventories; a bare number is the total."""
    given = {
        key: Inventory(total=value) if isinstance(value, int) else value
        for key, value in stock.items()
    }
    provider = ledger.write(
        lambda tx: providers.create(tx, name, new(), parent.uuid if parent else None)
    ).result()
    if given:
        provider = ledger.write(lambda tx: inventories.assign(tx, provider, given)).result()
    return provider


def get(ledger: Ledger, provider: Provider) -> Provider:
    return ledger.read(lambda tx: providers.get(tx, provider.uuid)).result()


def claim(
    ledger: Ledger,
    *held: tuple[Provider, dict[str, int]],
    consumer: str | None = None,
    generation: int | None = None,
) -> str:
    """Make the claim; the consumer's uuid."""
    wanted = Claim(
        consumer=consumer or new(),
        project="p",
        user="u",
        allocations={provider.uuid: amounts for provider, amounts in held},
        generation=generation,
    )
    ledger.write(lambda tx: claims.replace(tx, [wanted])).result()
    return wanted.consumer


def used(ledger: Ledger, provider: Provider) -> dict[str, int]:
    return ledger.read(lambda tx: usages.of_provider(tx, provider)).result()


def summed(ledger: Ledger) -> dict[tuple[str, str], int]:
    """Amounts by provider and class, added up from the allocations themselves."""
    return {
        (provider, name): int(amount)
        for provider, name, amount in ledger.read(
            lambda tx: tx.rows(
                """SELECT p.uuid, c.name, sum(a.used) FROM allocations a
                   JOIN providers p ON p.id = a.provider_id
                   JOIN resource_classes c ON c.id = a.class_id GROUP BY p.uuid, c.name"""
            )
        ).result()
    }
