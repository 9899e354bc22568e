"""What consumers hold, place by place."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.core.errors import NotFound
from dovetail.ledger.database.loading import chunks, marks
from dovetail.ledger.database.protocol import Transaction

Held = tuple[int, int, int]
"""provider id, class id, amount"""


def of_consumers(tx: Transaction, uuids: Sequence[str]) -> list[Held]:
    """All that these consumers hold; each has to be there."""
    found: list[Held] = []
    known: set[str] = set()
    for some in chunks(list(dict.fromkeys(uuids))):
        rows = tx.rows(
            f"""SELECT c.uuid, a.provider_id, a.class_id, a.used
                FROM allocations a JOIN consumers c ON c.id = a.consumer_id
                WHERE c.uuid IN ({marks(len(some))})""",  # noqa: S608
            some,
        )
        known.update(row[0] for row in rows)
        found += [row[1:] for row in rows]
    for uuid in uuids:
        if uuid not in known:
            raise NotFound(f"No consumer {uuid!r} holds anything.")
    return found
