"""Stock of a machine group: its types as resource classes of one provider, for `service`.

A type's inventory has as many units as are to be sold. Units that are sold in shares are counted in
parts, so that claims stay whole numbers: a unit of a root type with dependents is so many parts as
the least common denominator of all shares of it, and that is what its inventory says a single
claim takes at the most (`max_unit`). What is held stays on record when the stock is lowered or the
type goes: nothing more can be taken of it then.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import lcm

import msgspec

from dovetail.core.inventory import Inventory
from dovetail.core.provider import Provider
from dovetail.ledger import devices, inventories, providers, resource_classes
from dovetail.ledger.database.protocol import Transaction
from dovetail.ledger.inventories import RecordedInventory
from dovetail.machines.documents import MachineSpec
from dovetail.machines.shapes import shapes_of

MACHINE_CLASS = "CUSTOM_MACHINE_"
"""Begins the resource classes that types are."""
GROUPS = "machines:"
"""The provider above all groups of a cluster, and how their names begin: no node has a colon."""


class TypeStock(msgspec.Struct, frozen=True):
    """How many units of a type there are, and what share of its root's one of them is."""

    available: int
    root: str
    """The type itself, if it depends on none."""
    share: Fraction = Fraction(1)


def stock_of(spec: MachineSpec) -> dict[str, TypeStock]:
    """By type, for a specification that was accepted."""
    shapes = shapes_of(spec)
    return {
        each.name: TypeStock(each.available, shapes[each.name].root, shapes[each.name].share)
        for each in spec.machine_types
    }


def class_of(machine_type: str) -> str:
    """Types are DNS labels, without underscores: no two have the same class."""
    return MACHINE_CLASS + machine_type.upper().replace("-", "_")


def type_of(class_name: str) -> str:
    return class_name.removeprefix(MACHINE_CLASS).lower().replace("_", "-")


def group_provider(prefix: str, group: str) -> str:
    return f"{prefix}{GROUPS}{group}"


def roots(tx: Transaction) -> frozenset[int]:
    """Ids of the providers above groups, of all clusters: they are roots, but no hardware. One that
    somebody else made under such a name is somebody else's."""
    rows = tx.rows(
        """SELECT id, uuid, name FROM providers
           WHERE parent_id IS NULL AND (name = ? OR name LIKE ?)""",
        (GROUPS, f"%/{GROUPS}"),
    )
    return frozenset(id_ for id_, uuid, name in rows if uuid == devices.own_uuid(name))


def groups(tx: Transaction, prefix: str) -> list[str]:
    """Those that have a provider."""
    rows = tx.rows(
        """SELECT p.name FROM providers p JOIN providers root ON root.id = p.root_id
           WHERE root.name = ? AND p.id <> root.id ORDER BY p.name""",
        (prefix + GROUPS,),
    )
    return [name.removeprefix(group_provider(prefix, "")) for (name,) in rows]


def is_set(tx: Transaction, prefix: str, group: str, wanted: Mapping[str, TypeStock]) -> bool:
    """Whether the ledger says just this already."""
    provider = providers.find_named(tx, group_provider(prefix, group))
    return provider is not None and not due(tx, provider, wanted)


def assign(tx: Transaction, prefix: str, group: str, wanted: Mapping[str, TypeStock]) -> None:
    """Make these the types of the group."""
    lock_holders(tx, group_provider(prefix, group))
    above = devices.ensure_root(tx, prefix + GROUPS)
    provider = devices.ensure_below(tx, above, group_provider(prefix, group))
    adjust(tx, provider, due(tx, provider, wanted))


def drop(tx: Transaction, prefix: str, group: str) -> bool:
    """Take the group out; False while units are held: they stay on record."""
    lock_holders(tx, group_provider(prefix, group))
    provider = devices.by_name(tx, group_provider(prefix, group))
    if provider is None:
        return True
    adjust(tx, provider, due(tx, provider, {}))
    gone = devices.drop_if_own(tx, provider)
    above = devices.by_name(tx, prefix + GROUPS)
    if above is not None:
        devices.drop_if_own(tx, above)
    return gone


def lock_holders(tx: Transaction, provider: str) -> None:
    """Lock who holds units of the group before its provider is, as those do who move units.

    The other way round each could wait for the other, until the database finds out after a second.
    """
    if tx.for_update:
        tx.rows(
            f"""SELECT id FROM consumers WHERE id IN (
                  SELECT a.consumer_id FROM allocations a JOIN providers p ON p.id = a.provider_id
                  WHERE p.name = ?)
                ORDER BY uuid{tx.for_update}""",  # noqa: S608
            (provider,),
        )


def parts_of(wanted: Mapping[str, TypeStock]) -> dict[str, int]:
    """By type, how many parts a unit is counted in; more than one exactly if others share it."""
    parts = dict.fromkeys(wanted, 1)
    for name, each in wanted.items():
        if each.root != name:
            parts[each.root] = max(lcm(parts[each.root], each.share.denominator), 2)
    return parts


def stocked(capacity: int, parts: int, used: int) -> Inventory:
    """What is held stays within the total; what is not to be had any more is reserved."""
    total = max(capacity, used, 1)
    return Inventory(total=total, reserved=total - capacity, max_unit=parts)


def due(
    tx: Transaction, provider: Provider, wanted: Mapping[str, TypeStock]
) -> dict[str, Inventory | None]:
    """By class what has to change; None: it goes. Classes that are no types are others' affair."""
    now = {
        name: each
        for name, each in inventories.of_provider(tx, provider).items()
        if name.startswith(MACHINE_CLASS)
    }
    parts = parts_of(wanted)
    then: dict[str, Inventory | None] = {}
    for machine_type, each in wanted.items():
        name = class_of(machine_type)
        exact, used = rescaled(tx, provider, name, now.get(name), parts[machine_type])
        then[name] = stocked(each.available * exact, exact, used)
    for name, kept in now.items():
        if name not in then:
            then[name] = stocked(0, kept.inventory.max_unit, kept.used) if kept.used else None
    return {
        name: inventory
        for name, inventory in then.items()
        if name not in now or now[name].inventory != inventory
    }


def rescaled(
    tx: Transaction, provider: Provider, name: str, now: RecordedInventory | None, parts: int
) -> tuple[int, int]:
    """Parts of a unit, and how many of them are held.

    What is held is never rounded: while it cannot be told in so many parts, there are more.
    """
    if now is None or not now.used:
        return parts, 0
    before = now.inventory.max_unit
    if before != parts:
        amounts = tx.rows(
            "SELECT DISTINCT used FROM allocations WHERE provider_id = ? AND class_id = ?",
            (provider.id, resource_classes.get_id(tx, name)),
        )
        if any(amount * parts % before for (amount,) in amounts):
            parts = lcm(parts, before)
    return parts, now.used * parts // before


def adjust(tx: Transaction, provider: Provider, to: Mapping[str, Inventory | None]) -> None:
    now = inventories.of_provider(tx, provider)
    for name, inventory in to.items():
        if inventory is None:
            provider = inventories.remove(tx, provider, name)
        elif name not in now:
            resource_classes.ensure(tx, name)
            provider = inventories.add(tx, provider, name, inventory)
        else:
            rescale(tx, provider, name, now[name].inventory.max_unit, inventory.max_unit)
            provider = inventories.change(tx, provider, name, inventory)


def rescale(tx: Transaction, provider: Provider, name: str, before: int, after: int) -> None:
    """Tell what is held in other parts, without a remainder."""
    if before == after:
        return
    class_id = resource_classes.get_id(tx, name)
    # Who gives back just now has read what it holds, and must not be told otherwise meanwhile.
    tx.rows(
        f"""SELECT c.id FROM consumers c JOIN allocations a ON a.consumer_id = c.id
            WHERE a.provider_id = ? AND a.class_id = ? ORDER BY c.uuid{tx.for_update}""",  # noqa: S608
        (provider.id, class_id),
    )
    of = (after, before, provider.id, class_id)
    for table in ("allocations", "inventories"):
        tx.run(
            f"UPDATE {table} SET used = used * ? / ? WHERE provider_id = ? AND class_id = ?",  # noqa: S608
            of,
        )
