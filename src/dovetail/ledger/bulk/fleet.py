"""Bulk load of a planned fleet in one transaction: seconds for ten thousand hosts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dovetail.core.errors import AlreadyExists, ProviderExists
from dovetail.core.fleet import FleetPlan, PlannedProvider
from dovetail.ledger import resource_classes, traits
from dovetail.ledger.database.loading import chunks, marks
from dovetail.ledger.database.protocol import Change, Transaction
from dovetail.ledger.inventories import values
from dovetail.ledger.standards import CUSTOM_PREFIX


def load(tx: Transaction, plan: FleetPlan) -> dict[str, int]:
    """Add everything planned; what is there already stays as it is and must not be in the plan."""
    tx.lift_timeouts()
    refuse_taken(tx, plan)
    class_ids = ensure_classes(tx, {name for p in plan.providers for name in p.inventories})
    trait_ids = ensure_traits(tx, {name for p in plan.providers for name in p.traits})
    if plan.providers:
        first = tx.reserve_ids("providers", len(plan.providers))
        write_providers(tx, plan, first, class_ids, trait_ids)
        write_consumers(tx, plan, first, class_ids)
    return {"providers": len(plan.providers), "consumers": len(plan.consumers)}


def refuse_taken(tx: Transaction, plan: FleetPlan) -> None:
    if tx.row("SELECT 1 FROM providers LIMIT 1"):
        for column, keys in (
            ("name", [provider.name for provider in plan.providers]),
            ("uuid", [provider.uuid for provider in plan.providers]),
        ):
            for taken in existing(tx, "providers", column, keys):
                raise ProviderExists({column: taken})
    for taken in existing(tx, "consumers", "uuid", [c.uuid for c in plan.consumers]):
        raise AlreadyExists(f"Consumer {taken} already exists.")


def existing(tx: Transaction, table: str, column: str, keys: Sequence[str]) -> Iterable[str]:
    for some in chunks(keys):
        for (key,) in tx.rows(
            f"SELECT {column} FROM {table} WHERE {column} IN ({marks(len(some))})",  # noqa: S608
            some,
        ):
            yield key


def ensure_classes(tx: Transaction, names: Iterable[str]) -> dict[str, int]:
    wanted = sorted(names)
    for name in wanted:
        if name.startswith(CUSTOM_PREFIX):
            resource_classes.ensure(tx, name)
    return resource_classes.ids(tx, wanted)


def ensure_traits(tx: Transaction, names: Iterable[str]) -> dict[str, int]:
    wanted = sorted(names)
    for name in wanted:
        if name.startswith(CUSTOM_PREFIX):
            traits.ensure(tx, name)
    traits.ids(tx, wanted)
    return {trait.name: trait.id for trait in traits.listing(tx, names=wanted)}


def write_providers(
    tx: Transaction,
    plan: FleetPlan,
    first: int,
    class_ids: dict[str, int],
    trait_ids: dict[str, int],
) -> None:
    numbered = list(enumerate(plan.providers, first))
    tx.bulk(
        "providers",
        ("id", "uuid", "name", "generation", "parent_id", "root_id", "changed_at"),
        (
            (
                id_,
                provider.uuid,
                provider.name,
                0,
                None if provider.parent is None else first + provider.parent,
                first + provider.root,
                tx.now,
            )
            for id_, provider in numbered
        ),
    )
    tx.bulk(
        "inventories",
        (
            "provider_id",
            "class_id",
            "used",
            "changed_at",
            "total",
            "reserved",
            "min_unit",
            "max_unit",
            "step_size",
            "allocation_ratio",
        ),
        (
            (id_, class_ids[name], provider.used.get(name, 0), tx.now, *values(inventory))
            for id_, provider in numbered
            for name, inventory in provider.inventories.items()
        ),
    )
    write_marks(tx, numbered, trait_ids)
    for position, provider in enumerate(plan.providers):
        if provider.root == position:
            tx.changed(Change.TREE, first + position)


def write_marks(
    tx: Transaction, numbered: Sequence[tuple[int, PlannedProvider]], trait_ids: dict[str, int]
) -> None:
    """What is said of providers, beside their inventories."""
    tx.bulk(
        "provider_traits",
        ("provider_id", "trait_id"),
        ((id_, trait_ids[name]) for id_, provider in numbered for name in provider.traits),
    )
    tx.bulk(
        "provider_aggregates",
        ("provider_id", "aggregate"),
        ((id_, aggregate) for id_, provider in numbered for aggregate in provider.aggregates),
    )
    tx.bulk(
        "provider_attributes",
        ("provider_id", "key", "value"),
        (
            (id_, key, value)
            for id_, provider in numbered
            for key, value in provider.attributes.items()
        ),
    )


def write_consumers(
    tx: Transaction, plan: FleetPlan, first_provider: int, class_ids: dict[str, int]
) -> None:
    if not plan.consumers:
        return
    first = tx.reserve_ids("consumers", len(plan.consumers))
    tx.bulk(
        "consumers",
        ("id", "uuid", "generation", "project_id", "user_id", "consumer_type"),
        (
            (id_, consumer.uuid, 1, consumer.project, consumer.user, consumer.consumer_type)
            for id_, consumer in enumerate(plan.consumers, first)
        ),
    )
    tx.bulk(
        "allocations",
        ("consumer_id", "provider_id", "class_id", "used", "created_at"),
        (
            (id_, first_provider + position, class_ids[name], amount, tx.now)
            for id_, consumer in enumerate(plan.consumers, first)
            for position, name, amount in consumer.allocations
        ),
    )
