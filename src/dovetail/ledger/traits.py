"""Traits: what can be said of a provider, and which providers it is said of."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from dovetail.core.errors import StandardName, TraitInUse, TraitNotFound
from dovetail.core.provider import Provider
from dovetail.ledger import providers
from dovetail.ledger.database.loading import CHUNK, chunks, marks
from dovetail.ledger.database.protocol import Change, Transaction
from dovetail.ledger.standards import CUSTOM_PREFIX


class Trait(msgspec.Struct, frozen=True):
    id: int
    name: str
    created_at: int


def listing(
    tx: Transaction,
    *,
    names: Sequence[str] | None = None,
    prefix: str | None = None,
    associated: bool | None = None,
) -> list[Trait]:
    if names is not None and len(names) > CHUNK:
        # A statement takes so many parameters and no more; a body may name half a million traits.
        parts = (
            listing(tx, names=some, prefix=prefix, associated=associated) for some in chunks(names)
        )
        return sorted((trait for part in parts for trait in part), key=lambda trait: trait.id)
    conditions, parameters = ["1 = 1"], list[Any]()
    if names is not None:
        conditions.append(f"name IN ({marks(len(names))})" if names else "1 = 0")
        parameters += names
    if prefix is not None:
        # No LIKE: `_` stands in every trait's name and would match anything.
        conditions.append("substr(name, 1, ?) = ?")
        parameters += [len(prefix), prefix]
    if associated is not None:
        exists = "EXISTS (SELECT 1 FROM provider_traits x WHERE x.trait_id = traits.id)"
        conditions.append(exists if associated else f"NOT {exists}")
    rows = tx.rows(
        f"SELECT id, name, created_at FROM traits WHERE {' AND '.join(conditions)} ORDER BY id",  # noqa: S608
        parameters,
    )
    return [Trait(*row) for row in rows]


def find(tx: Transaction, name: str) -> Trait | None:
    row = tx.row("SELECT id, name, created_at FROM traits WHERE name = ?", (name,))
    return Trait(*row) if row else None


def get(tx: Transaction, name: str) -> Trait:
    found = find(tx, name)
    if found is None:
        raise TraitNotFound([name])
    return found


def ids(tx: Transaction, names: Collection[str]) -> list[int]:
    """Ids of traits that all have to exist."""
    found = listing(tx, names=sorted(names))
    missing = set(names) - {trait.name for trait in found}
    if missing:
        raise TraitNotFound(missing)
    return [trait.id for trait in found]


def ensure(tx: Transaction, name: str) -> tuple[Trait, bool]:
    """The trait, and whether it had to be made."""
    found = find(tx, name)
    if found:
        return found, False
    tx.run("INSERT INTO traits (name, created_at) VALUES (?, ?)", (name, tx.now))
    tx.changed(Change.NAMES)
    return get(tx, name), True


def delete(tx: Transaction, name: str) -> None:
    found = get(tx, name)
    if not name.startswith(CUSTOM_PREFIX):
        raise StandardName(f"Cannot delete standard trait {name}.")
    if tx.row("SELECT 1 FROM provider_traits WHERE trait_id = ? LIMIT 1", (found.id,)):
        raise TraitInUse(name)
    tx.run("DELETE FROM traits WHERE id = ?", (found.id,))
    tx.changed(Change.NAMES)


def of_provider(tx: Transaction, provider: Provider) -> list[Trait]:
    rows = tx.rows(
        """SELECT t.id, t.name, t.created_at
           FROM provider_traits x JOIN traits t ON t.id = x.trait_id
           WHERE x.provider_id = ? ORDER BY t.id""",
        (provider.id,),
    )
    return [Trait(*row) for row in rows]


def assign(tx: Transaction, provider: Provider, wanted: Sequence[Trait]) -> Provider:
    """Make `wanted` all the traits of the provider; a new generation only if that changes them."""
    now = {trait.id for trait in of_provider(tx, provider)}
    then = {trait.id for trait in wanted}
    if now == then:
        return provider
    tx.many(
        "DELETE FROM provider_traits WHERE provider_id = ? AND trait_id = ?",
        [(provider.id, id_) for id_ in now - then],
    )
    tx.many(
        "INSERT INTO provider_traits (provider_id, trait_id) VALUES (?, ?)",
        [(provider.id, id_) for id_ in sorted(then - now)],
    )
    tx.changed(Change.TREE, provider.root_id)
    return providers.bump(tx, provider)
