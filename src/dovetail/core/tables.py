"""Tables: rows of the ledger in the form in which the snapshot takes them in.

Plain tuples, because a fleet is loaded by the million: the ledger hands over what its database
driver returned, the engine turns it into columns.
"""

from __future__ import annotations

import msgspec

ProviderRow = tuple[int, str, int | None, int]
"""id, uuid, id of the parent, id of the root"""

InventoryRow = tuple[int, int, int, int, int, int, int, float, int]
"""provider id, class id, total, reserved, min_unit, max_unit, step_size, allocation_ratio, used"""


class Tables(msgspec.Struct):
    """Whole trees: every provider of each root named, in the order of (root id, id)."""

    providers: list[ProviderRow]
    inventories: list[InventoryRow]
    traits: list[tuple[int, int]]
    """provider id, trait id"""
    aggregates: list[tuple[int, str]]
    """provider id, aggregate uuid"""
    attributes: list[tuple[int, str, str]] = []
    """provider id, key, value"""


class Names(msgspec.Struct):
    """All names the ledger knows, by id."""

    classes: dict[int, str]
    traits: dict[int, str]
