"""Holders: consumers and what they hold, by row of a snapshot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from dovetail.engine.snapshot import Snapshot
from dovetail.engine.work import Work

HeldRow = tuple[str, int, int, int]
"""consumer uuid, provider id, class id, amount: as the ledger has it"""
RowClass = tuple[int, str]
"""Row and resource class."""
ROWS_PER_YIELD = 2048


class Holder(msgspec.Struct, frozen=True):
    consumer: str
    held: Mapping[RowClass, int]


def holders_of(snapshot: Snapshot, rows: Sequence[HeldRow]) -> Work[list[Holder]]:
    """In the order in which they come; what is held of providers that are gone is left out."""
    held: dict[str, dict[RowClass, int]] = defaultdict(dict)
    for start in range(0, len(rows), ROWS_PER_YIELD):
        some = rows[start : start + ROWS_PER_YIELD]
        for (consumer, _, class_id, amount), row in zip(
            some, rows_of_providers(snapshot, [one[1] for one in some]), strict=True
        ):
            name = snapshot.class_names.get(class_id)
            if row >= 0 and name is not None:
                held[consumer][row, name] = amount
        yield
    found: list[Holder] = []
    for consumer, amounts in held.items():
        found.append(Holder(consumer, amounts))
        if len(found) % ROWS_PER_YIELD == 0:
            yield
    return found


def rows_of_providers(snapshot: Snapshot, provider_ids: Sequence[int]) -> list[int]:
    """-1 for those that the snapshot does not know."""
    ids = np.array(provider_ids, np.int64)
    known = (ids >= 0) & (ids < snapshot.row_of.size)
    rows: list[int] = np.where(known, snapshot.row_of.values[np.where(known, ids, 0)], -1).tolist()
    return rows
