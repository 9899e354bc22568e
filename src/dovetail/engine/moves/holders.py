"""Holders: consumers and what they hold, by row of a snapshot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from dovetail.engine.snapshot import Snapshot

HeldRow = tuple[str, int, int, int]
"""consumer uuid, provider id, class id, amount: as the ledger has it"""
RowClass = tuple[int, str]
"""Row and resource class."""


class Holder(msgspec.Struct, frozen=True):
    consumer: str
    held: Mapping[RowClass, int]


def holders_of(snapshot: Snapshot, rows: Iterable[HeldRow]) -> list[Holder]:
    """In the order in which they come; what is held of providers that are gone is left out."""
    held: dict[str, dict[RowClass, int]] = defaultdict(dict)
    for consumer, provider_id, class_id, amount in rows:
        known = 0 <= provider_id < snapshot.row_of.size
        row = int(snapshot.row_of.values[provider_id]) if known else -1
        if row >= 0 and class_id in snapshot.class_names:
            held[consumer][row, snapshot.class_names[class_id]] = amount
    return [Holder(consumer, amounts) for consumer, amounts in held.items()]
