"""Provider search by a provider's own properties; whole trees are the engine's affair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dovetail.core.inventory import MAX_INT
from dovetail.core.provider import Provider
from dovetail.ledger import providers, resource_classes, traits
from dovetail.ledger.database.loading import marks
from dovetail.ledger.database.protocol import Transaction


class ProviderFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What a listing may be narrowed by; empty fields do not narrow."""

    name: str | None = None
    uuid: str | None = None
    in_tree: str | None = None
    resources: dict[str, int] = {}
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    not_member_of: frozenset[str] = frozenset()


def listing(tx: Transaction, wanted: ProviderFilter) -> list[Provider]:
    """The providers that meet every part of the filter, oldest first."""
    if any(amount > MAX_INT for amount in wanted.resources.values()):
        return []
    conditions: list[str] = []
    parameters: list[Any] = []

    def require(condition: str, *values: Any) -> None:
        conditions.append(condition)
        parameters.extend(values)

    if wanted.name is not None:
        require("p.name = ?", wanted.name)
    if wanted.uuid is not None:
        require("p.uuid = ?", wanted.uuid)
    if wanted.in_tree is not None:
        require("p.root_id = (SELECT root_id FROM providers WHERE uuid = ?)", wanted.in_tree)
    for names in wanted.required:
        require(*having("trait_id", "provider_traits", traits.ids(tx, names)))
    if wanted.forbidden:
        condition, *ids = having("trait_id", "provider_traits", traits.ids(tx, wanted.forbidden))
        require(f"NOT {condition}", *ids)
    for aggregates in wanted.member_of:
        require(*having("aggregate", "provider_aggregates", sorted(aggregates)))
    if wanted.not_member_of:
        outside = sorted(wanted.not_member_of)
        condition, *values = having("aggregate", "provider_aggregates", outside)
        require(f"NOT {condition}", *values)
    for name, amount in wanted.resources.items():
        require(FITS, resource_classes.get_id(tx, name), amount, amount, amount, amount)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return [
        providers.made_of(row)
        for row in tx.rows(f"{providers.SELECT}{where} ORDER BY p.id", parameters)
    ]


FITS = """EXISTS (
    SELECT 1 FROM inventories i
    WHERE i.provider_id = p.id AND i.class_id = ?
      AND i.used + ? <= (i.total - i.reserved) * i.allocation_ratio
      AND ? >= i.min_unit AND ? <= i.max_unit AND ? % i.step_size = 0)"""


def having(column: str, table: str, values: Sequence[Any]) -> tuple[Any, ...]:
    """A condition, then its parameters: the provider has at least one of the values."""
    condition = (
        f"EXISTS (SELECT 1 FROM {table} x WHERE x.provider_id = p.id"  # noqa: S608
        f" AND x.{column} IN ({marks(len(values))}))"
    )
    return (condition, *values)
