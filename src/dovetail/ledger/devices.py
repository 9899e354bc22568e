"""Devices of nodes, as providers: the node is a root, each device a provider in its tree.

A device has so many units of one resource class, and its properties as attributes. Providers that
somebody else made under these names are taken over: their place in the tree and what else they have
stays as it is. What is held stays on record whatever becomes of the device; nothing more can be
taken of it then.
"""

from __future__ import annotations

import hashlib
import uuid as uuids
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dovetail.core.device import (
    HEALTH,
    MOST_UNITS,
    RESERVED,
    UNHEALTHY,
    Device,
    DeviceFault,
    faults_of,
)
from dovetail.core.errors import BadDevices, BadParent, Malformed
from dovetail.core.inventory import Inventory
from dovetail.core.provider import Provider
from dovetail.core.selectors.attributes import refuse_bad
from dovetail.ledger import attributes, claims, inventories, providers, resource_classes
from dovetail.ledger.database.loading import chunks, marks
from dovetail.ledger.database.protocol import Transaction

DEVICE_CLASS = "CUSTOM_DEVICE"
NAMESPACE = uuids.UUID("6ab2f7f0-3d0c-5c56-9d1b-3c1f7e8b2a44")
LONGEST_NAME = 200
"""Of a provider."""
LONGEST_NODE = 160
"""Leaves room for a device, and for the digest of a longer one."""


class Unit(msgspec.Struct, frozen=True):
    """A device as the ledger has it."""

    node: str
    provider: str
    """The provider's name; likewise the node."""
    inventory: Inventory
    used: int
    attributes: Mapping[str, str]

    @property
    def device(self) -> Device:
        """What was published; of what is there no more, or failed, nothing is healthy."""
        properties = {k: v for k, v in self.attributes.items() if k not in RESERVED}
        capacity = self.inventory.total - self.inventory.reserved
        return Device(
            node=self.node,
            name=device_name(self.node, self.provider, self.attributes.get("Name")),
            kind=self.attributes.get("Kind", ""),
            vendor=self.attributes.get("Vendor", ""),
            units=capacity or self.inventory.total,
            healthy=capacity > 0,
            properties=properties,
        )


def provider_name(node: str, device: str) -> str:
    """Names that are too long end in a digest of all of it."""
    name = f"{node}/{device}"
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{name[: LONGEST_NAME - 17]}~{digest}"


def device_name(node: str, provider: str, name: str | None) -> str:
    """From the name of a provider; `name` is the attribute, which tells what was cut."""
    if len(provider) == LONGEST_NAME and name:
        return name
    return provider.removeprefix(f"{node}/")


def own_uuid(name: str) -> str:
    """Of a provider that is made here."""
    return str(uuids.uuid5(NAMESPACE, name))


STOCK = f"""
    SELECT p.id, root.name, p.name, i.used, {inventories.COLUMNS}
    FROM providers p
    JOIN providers root ON root.id = p.root_id
    JOIN inventories i ON i.provider_id = p.id
    WHERE i.class_id = (SELECT id FROM resource_classes WHERE name = ?)"""  # noqa: S608


def units_of(tx: Transaction, node: str | None = None) -> dict[str, Unit]:
    """What is recorded of the devices of a node, or of all, by the provider's name."""
    if node is None:
        stock = tx.rows(f"{STOCK} ORDER BY root.name, p.name", (DEVICE_CLASS,))
    else:
        stock = tx.rows(f"{STOCK} AND root.name = ?", (DEVICE_CLASS, node))
    marked: dict[int, dict[str, str]] = defaultdict(dict)
    for some in chunks([row[0] for row in stock]):
        for id_, key, value in tx.rows(
            f"""SELECT provider_id, key, value FROM provider_attributes
                WHERE provider_id IN ({marks(len(some))})""",  # noqa: S608
            some,
        ):
            marked[id_][key] = value
    return {
        name: Unit(root, name, inventories.of_row(columns), used, marked[id_])
        for id_, root, name, used, *columns in stock
        if name.startswith(f"{root}/")
    }


def wanted_stock(device: Device, used: int) -> Inventory:
    """What is held stays within the total; what is not to be had any more is reserved."""
    total = max(device.units, used)
    return Inventory(total=total, reserved=total - device.units if device.healthy else total)


def is_published(tx: Transaction, node: str, devices: Sequence[Device]) -> bool:
    """Whether the ledger says just this already."""
    now = units_of(tx, node)
    names = [provider_name(node, device.name) for device in devices]
    return now.keys() == set(names) and all(
        now[name].attributes == device.attributes
        and now[name].inventory == wanted_stock(device, now[name].used)
        for name, device in zip(names, devices, strict=True)
    )


def publish(tx: Transaction, node: str, devices: Sequence[Device]) -> bool:
    """Make these the devices of the node; False if they are already, and nothing was touched."""
    refuse_unfit(node, devices)
    if is_published(tx, node, devices):
        return False
    resource_classes.ensure(tx, DEVICE_CLASS)
    root = ensure_root(tx, node)
    now = units_of(tx, node)
    for device in devices:
        name = provider_name(node, device.name)
        provider = ensure_below(tx, root, name)
        stock = inventories.of_provider(tx, provider).get(DEVICE_CLASS)
        then = wanted_stock(device, stock.used if stock else 0)
        if stock is None:
            provider = inventories.add(tx, provider, DEVICE_CLASS, then)
        elif stock.inventory != then:
            provider = inventories.change(tx, provider, DEVICE_CLASS, then)
        attributes.assign(tx, provider, device.attributes)
        now.pop(name, None)
    for name in now:
        retire(tx, name)
    return True


def refuse_unfit(node: str, devices: Sequence[Device]) -> None:
    if not 1 <= len(node) <= LONGEST_NODE:
        raise Malformed(
            f"node {node[:40]!r}: its name has {len(node)} characters; "
            f"1 to {LONGEST_NODE} are expected"
        )
    for device, faults in zip(devices, faults_of(devices), strict=True):
        where = f"device {device.name!r} of node {node!r}"
        if faults:
            raise BadDevices(f"{where}: {_in_words(faults[0], device)}")
        refuse_bad(device.attributes, where)


def _in_words(fault: DeviceFault, device: Device) -> str:
    match fault:
        case DeviceFault.NO_NAME:
            return "a device needs a name"
        case DeviceFault.NAME_TAKEN:
            return "there are two of that name"
        case DeviceFault.UNITS:
            return f"{device.units} units; 1 to {MOST_UNITS} are expected"


def by_name(tx: Transaction, name: str) -> Provider | None:
    """The provider, not to be changed by others before the transaction ends."""
    row = tx.row(f"SELECT uuid FROM providers WHERE name = ?{tx.for_update}", (name,))  # noqa: S608
    return providers.find(tx, row[0]) if row else None


def ensure_root(tx: Transaction, node: str) -> Provider:
    found = by_name(tx, node)
    if found is None:
        return providers.create(tx, node, own_uuid(node), None)
    if found.parent_uuid is not None:
        raise BadParent(
            f"node {node!r}: the provider of that name is below another, and a node is a root"
        )
    return found


def is_node_healthy(tx: Transaction, root: Provider) -> bool:
    return attributes.of_provider(tx, root).get(HEALTH) != UNHEALTHY


def set_node_health(tx: Transaction, root: Provider, *, is_healthy: bool) -> Provider:
    """Have a node's root say that the node is not ready; of one that is, or of which nobody knows
    it, nothing is said."""
    told = attributes.of_provider(tx, root)
    told.pop(HEALTH, None)
    return attributes.assign(tx, root, told if is_healthy else {**told, HEALTH: UNHEALTHY})


def ensure_below(tx: Transaction, root: Provider, name: str) -> Provider:
    found = by_name(tx, name)
    if found is None:
        return providers.create(tx, name, own_uuid(name), root.uuid)
    if found.root_id != root.id:
        if found.parent_uuid is not None:
            raise BadParent(f"provider {name!r} is in another tree than that of {root.name!r}")
        providers.move(tx, found, root.uuid, free=True)
        return providers.get(tx, found.uuid)
    return found


def withdraw(tx: Transaction, node: str) -> bool:
    """Take the devices of a node out of use, and the node if nothing else is known of it."""
    found = by_name(tx, node)
    if found is None:
        return False
    left = [retire(tx, name) for name in units_of(tx, node)]
    return drop_if_own(tx, found) or any(left)


def retire(tx: Transaction, name: str) -> bool:
    """Forget a device that nobody holds; of one that is held, nothing more can be had."""
    provider = by_name(tx, name)
    if provider is None:
        return False
    stock = inventories.of_provider(tx, provider).get(DEVICE_CLASS)
    if stock is None:
        return False
    if stock.used:
        gone = Inventory(total=stock.inventory.total, reserved=stock.inventory.total)
        if stock.inventory == gone:
            return False
        inventories.change(tx, provider, DEVICE_CLASS, gone)
        return True
    provider = inventories.remove(tx, provider, DEVICE_CLASS)
    if not drop_if_own(tx, provider):
        attributes.assign(tx, provider, {})
    return True


def drop_if_own(tx: Transaction, provider: Provider) -> bool:
    """Delete a provider that was made here and of which nothing is left."""
    parts = (
        "SELECT 1 FROM providers WHERE parent_id = ?",
        "SELECT 1 FROM inventories WHERE provider_id = ?",
        "SELECT 1 FROM provider_traits WHERE provider_id = ?",
        "SELECT 1 FROM provider_aggregates WHERE provider_id = ?",
    )
    if provider.uuid != own_uuid(provider.name):
        return False
    if any(tx.row(f"{part} LIMIT 1", (provider.id,)) for part in parts):
        return False
    providers.delete(tx, provider.uuid)
    return True


def places(tx: Transaction, names: Sequence[str]) -> dict[str, str]:
    """UUIDs of providers by name; those that are not there are left out."""
    return {
        name: uuid
        for some in chunks(names)
        for name, uuid in tx.rows(
            f"SELECT name, uuid FROM providers WHERE name IN ({marks(len(some))})",  # noqa: S608
            some,
        )
    }


# -- who holds what ------------------------------------------------------------------------------

Claimed = tuple[tuple[int, ...], ...]
"""What tells one claim of a consumer from every later one, be it on the same devices."""


def claimed(tx: Transaction, consumer: str) -> Claimed:
    """The consumer's claim; empty if it has none.

    A consumer that comes back may get its old row and begins with the same generation. But each
    claim raises the generations of its providers. Claims of others do so, too, on a device with
    units for several: then a claim is taken for another one, never another one for it.
    """
    rows = tx.rows(
        """SELECT c.id, c.generation, a.provider_id, a.class_id, a.used, a.created_at, p.generation
           FROM consumers c
           JOIN allocations a ON a.consumer_id = c.id
           JOIN providers p ON p.id = a.provider_id
           WHERE c.uuid = ? ORDER BY a.provider_id, a.class_id""",
        (consumer,),
    )
    return tuple(map(tuple, rows))


def release(tx: Transaction, consumer: str, claim: Claimed) -> bool:
    """Give back this claim; False if it is not what the consumer holds any more."""
    # Locks the consumer, so that what is compared is what is released.
    if claims.find_consumer(tx, consumer) is None or claimed(tx, consumer) != claim:
        return False
    return claims.release(tx, consumer)


class HeldDevice(msgspec.Struct, frozen=True):
    """Units of a device that a consumer holds."""

    root: int
    node: str
    provider: str
    consumer: str
    consumer_type: str | None
    units: int
    name: str | None
    """The attribute: what the device is called even where its provider's name was cut."""

    @property
    def device(self) -> str:
        return device_name(self.node, self.provider, self.name)


HELD = """
    SELECT p.root_id, root.name, p.name, c.uuid, c.consumer_type, a.used, v.value
    FROM allocations a
    JOIN providers p ON p.id = a.provider_id
    JOIN providers root ON root.id = p.root_id
    JOIN consumers c ON c.id = a.consumer_id
    LEFT JOIN provider_attributes v ON v.provider_id = p.id AND v.key = 'Name'
    WHERE a.class_id = (SELECT id FROM resource_classes WHERE name = ?)"""


def held(tx: Transaction, roots: Iterable[int] | None = None) -> list[HeldDevice]:
    """Everything held of devices, or of those in these trees."""
    if roots is None:
        rows = tx.rows(HELD, (DEVICE_CLASS,))
    else:
        rows = [
            row
            for some in chunks(sorted(roots))
            for row in tx.rows(
                f"{HELD} AND p.root_id IN ({marks(len(some))})", (DEVICE_CLASS, *some)
            )
        ]
    return [HeldDevice(*row) for row in rows if row[2].startswith(f"{row[1]}/")]


def nodes(tx: Transaction, roots: Iterable[int] | None = None) -> dict[int, str]:
    """Names of the roots whose trees have devices, by id; of these roots, or of all."""
    statement = """SELECT DISTINCT root.id, root.name FROM inventories i
        JOIN providers p ON p.id = i.provider_id
        JOIN providers root ON root.id = p.root_id
        WHERE i.class_id = (SELECT id FROM resource_classes WHERE name = ?)"""
    if roots is None:
        return dict(tx.rows(statement, (DEVICE_CLASS,)))
    found: dict[int, str] = {}
    for some in chunks(sorted(roots)):
        among = f"{statement} AND p.root_id IN ({marks(len(some))})"
        found.update(tx.rows(among, (DEVICE_CLASS, *some)))
    return found
