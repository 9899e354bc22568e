"""Providers by name or UUID, whichever a person has at hand, and the host each belongs to."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dovetail.core.errors import NotFound
from dovetail.ledger.database.loading import chunks, marks
from dovetail.ledger.database.protocol import Transaction

SELECT = """
    SELECT p.id, p.name, p.uuid, p.root_id, root.name, root.uuid
    FROM providers p JOIN providers root ON root.id = p.root_id"""


class NamedProvider(msgspec.Struct, frozen=True):
    id: int
    name: str
    uuid: str
    root_id: int
    host: str
    host_uuid: str


def find(tx: Transaction, keys: Sequence[str]) -> dict[str, NamedProvider]:
    """Providers by the key that was given; what is unknown is left out. A UUID goes before a name
    that reads the same."""
    found: dict[str, NamedProvider] = {}
    for column in ("name", "uuid"):
        for some in chunks(keys):
            rows = tx.rows(f"{SELECT} WHERE p.{column} IN ({marks(len(some))})", some)
            for row in rows:
                named = NamedProvider(*row)
                found[getattr(named, column)] = named
    return found


def get(tx: Transaction, key: str) -> NamedProvider:
    found = find(tx, [key])
    if key not in found:
        raise NotFound(f"No provider has the name or UUID {key!r}.")
    return found[key]
