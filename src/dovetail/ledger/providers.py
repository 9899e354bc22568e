"""Providers and their place in trees."""

from __future__ import annotations

import msgspec

from dovetail.core.errors import (
    BadParent,
    ProviderExists,
    ProviderInUse,
    ProviderIsParent,
    ProviderNotFound,
    StaleGeneration,
)
from dovetail.core.provider import Provider
from dovetail.ledger.database.protocol import Change, Row, Transaction

SELECT = """
    SELECT p.id, p.uuid, p.name, p.generation, parent.uuid, root.uuid, p.root_id, p.changed_at
    FROM providers p
    JOIN providers root ON root.id = p.root_id
    LEFT JOIN providers parent ON parent.id = p.parent_id"""


def made_of(row: Row) -> Provider:
    uuid, name, generation, parent, root, root_id, changed_at = row[1:]
    return Provider(
        id=row[0],
        uuid=uuid,
        name=name,
        generation=generation,
        parent_uuid=parent,
        root_uuid=root,
        root_id=root_id,
        changed_at=changed_at,
    )


def is_empty(tx: Transaction) -> bool:
    """Whether the ledger has no providers; `dovetail serve --demo` then loads its fleet."""
    return tx.row("SELECT 1 FROM providers LIMIT 1") is None


def find(tx: Transaction, uuid: str) -> Provider | None:
    row = tx.row(f"{SELECT} WHERE p.uuid = ?", (uuid,))
    return made_of(row) if row else None


def find_named(tx: Transaction, name: str) -> Provider | None:
    row = tx.row(f"{SELECT} WHERE p.name = ?", (name,))
    return made_of(row) if row else None


def get(tx: Transaction, uuid: str) -> Provider:
    found = find(tx, uuid)
    if found is None:
        raise ProviderNotFound(uuid)
    return found


def get_locked(tx: Transaction, uuid: str) -> Provider:
    """The provider, not to be changed by others before the transaction ends."""
    if tx.for_update:
        tx.row(f"SELECT id FROM providers WHERE uuid = ?{tx.for_update}", (uuid,))  # noqa: S608
    return get(tx, uuid)


def get_current(tx: Transaction, uuid: str, generation: int) -> Provider:
    """The provider, locked, if it is still at the generation that the client knows."""
    provider = get_locked(tx, uuid)
    if provider.generation != generation:
        raise StaleGeneration(
            "Resource provider's generation already changed. "
            "Please update the generation and try again."
        )
    return provider


def bump(tx: Transaction, provider: Provider) -> Provider:
    """The next generation of the provider."""
    tx.run(
        "UPDATE providers SET generation = generation + 1, changed_at = ? WHERE id = ?",
        (tx.now, provider.id),
    )
    return msgspec.structs.replace(provider, generation=provider.generation + 1, changed_at=tx.now)


def create(tx: Transaction, name: str, uuid: str, parent_uuid: str | None) -> Provider:
    if not name:
        raise BadParent("name is required")
    if parent_uuid == uuid:
        raise BadParent(
            "parent provider UUID cannot be same as UUID. "
            "Please set parent provider UUID to None if there is no parent."
        )
    parent = locked_parent(tx, parent_uuid) if parent_uuid else None
    refuse_taken(tx, name=name, uuid=uuid)
    inserted = tx.row(
        """INSERT INTO providers (uuid, name, generation, parent_id, root_id, changed_at)
           VALUES (?, ?, 0, ?, ?, ?) RETURNING id""",
        (uuid, name, parent and parent.id, parent.root_id if parent else 0, tx.now),
    )
    assert inserted
    if parent is None:
        tx.run("UPDATE providers SET root_id = id WHERE id = ?", inserted)
    provider = get(tx, uuid)
    tx.changed(Change.TREE, provider.root_id)
    return provider


def locked_parent(tx: Transaction, uuid: str) -> Provider:
    """The parent-to-be, with its tree held still: nobody moves or deletes it meanwhile."""
    parent = find(tx, uuid)
    while parent is not None:
        if not tx.for_update:
            return parent
        tx.rows(
            f"SELECT id FROM providers WHERE id IN (?, ?) ORDER BY id{tx.for_update}",  # noqa: S608
            (parent.root_id, parent.id),
        )
        again = find(tx, uuid)
        if again is not None and again.root_id == parent.root_id:
            return again
        parent = again
    raise BadParent("parent provider UUID does not exist.")


def refuse_taken(tx: Transaction, *, name: str, uuid: str) -> None:
    rows = tx.rows("SELECT uuid, name FROM providers WHERE uuid = ? OR name = ?", (uuid, name))
    taken = {}
    if any(row[0] == uuid for row in rows):
        taken["uuid"] = uuid
    elif rows:
        taken["name"] = name
    if taken:
        raise ProviderExists(taken)


def rename(tx: Transaction, provider: Provider, name: str) -> None:
    other = tx.row("SELECT 1 FROM providers WHERE name = ? AND id <> ?", (name, provider.id))
    if other:
        raise ProviderExists({"name": name})
    tx.run(
        "UPDATE providers SET name = ?, changed_at = ? WHERE id = ?", (name, tx.now, provider.id)
    )
    tx.changed(Change.TREE, provider.root_id)


def move(tx: Transaction, provider: Provider, parent_uuid: str | None, *, free: bool) -> None:
    """Give the provider another parent (None: make it a root).

    Unless `free`, only a root may be given a parent: older clients count on a tree staying put.
    """
    if parent_uuid == provider.parent_uuid:
        return
    if not free and provider.parent_uuid is not None:
        kind = "un-parenting" if parent_uuid is None else "re-parenting"
        if parent_uuid is not None and find(tx, parent_uuid) is None:
            raise BadParent("parent provider UUID does not exist.")
        raise BadParent(f"{kind} a provider is not currently allowed.")
    parent = locked_parent(tx, parent_uuid) if parent_uuid else None
    below = subtree(tx, provider)
    if parent and parent.id in below:
        raise BadParent("creating loop in the provider tree is not allowed.")
    new_root = parent.root_id if parent else provider.id
    tx.run(
        "UPDATE providers SET parent_id = ?, changed_at = ? WHERE id = ?",
        (parent and parent.id, tx.now, provider.id),
    )
    tx.many("UPDATE providers SET root_id = ? WHERE id = ?", [(new_root, id_) for id_ in below])
    tx.changed(Change.TREE, provider.root_id)
    tx.changed(Change.TREE, new_root)


def subtree(tx: Transaction, provider: Provider) -> set[int]:
    """Ids of the provider and everything below it."""
    return {
        id_
        for (id_,) in tx.rows(
            """WITH RECURSIVE below (id) AS (
                 SELECT id FROM providers WHERE id = ?
                 UNION ALL
                 SELECT p.id FROM providers p JOIN below ON p.parent_id = below.id)
               SELECT id FROM below""",
            (provider.id,),
        )
    }


def delete(tx: Transaction, uuid: str) -> None:
    provider = get_locked(tx, uuid)
    if tx.row("SELECT 1 FROM providers WHERE parent_id = ? LIMIT 1", (provider.id,)):
        raise ProviderIsParent
    if tx.row("SELECT 1 FROM allocations WHERE provider_id = ? LIMIT 1", (provider.id,)):
        raise ProviderInUse
    for table in ("inventories", "provider_traits", "provider_aggregates", "provider_attributes"):
        tx.run(f"DELETE FROM {table} WHERE provider_id = ?", (provider.id,))  # noqa: S608
    tx.run("DELETE FROM providers WHERE id = ?", (provider.id,))
    tx.changed(Change.TREE, provider.root_id)
