"""Nodes of machine pools: their CPUs, memory and devices as inventories, for `service`.

Units take of them, and so does everybody else. What others put there is left alone: a mark on the
node's provider tells what was put there for machines, and an inventory that is not as the mark says
is somebody else's by now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

import msgspec

from dovetail.core.device import Device
from dovetail.core.inventory import Inventory
from dovetail.core.provider import Provider
from dovetail.ledger import attributes, devices, inventories, providers
from dovetail.ledger.database.loading import chunks, marks
from dovetail.ledger.database.protocol import Transaction
from dovetail.ledger.devices import DEVICE_CLASS
from dovetail.ledger.inventories import RecordedInventory
from dovetail.machines.names import GPU_TYPE

VCPU, MEMORY_MB = "VCPU", "MEMORY_MB"
MACHINE, MACHINE_STOCK = "MACHINE", "MACHINE_STOCK"
"""Types of consumers: who was sold a unit, and the sleeper that holds one."""
MARK = "Machines"
"""The attribute."""


class NodeMark(msgspec.Struct, frozen=True):
    """What was put on a node for machines, and is to go with them."""

    totals: dict[str, int]
    """By resource class."""
    has_devices: bool
    """There were none before."""


class NodeGpus(msgspec.Struct, frozen=True):
    """GPUs of a node, in units."""

    healthy: int
    free: int
    """Of the healthy ones those that nobody holds."""
    held_by_others: int
    """By consumers that are no units: clients of Placement, pods that asked by class."""


class GpuDevice(msgspec.Struct):
    """A device with GPUs: one, or a pool of them."""

    id: int
    uuid: str
    capacity: int
    free: int
    """Below nothing, if more is held than is healthy."""


def is_entered(
    tx: Transaction, node: str, totals: dict[str, int], found: Sequence[Device], *, is_ready: bool
) -> bool:
    """Whether there is nothing that `enter` would change."""
    root = providers.find_named(tx, node)
    mark = mark_of(tx, root) if root is not None else None
    if root is None or mark is None or not devices.is_published(tx, node, found):
        return False
    if devices.is_node_healthy(tx, root) != is_ready:
        return False
    now = inventories.of_provider(tx, root)
    return all(
        name in now
        and (name not in mark.totals or (mark.totals[name] == total and is_ours(now[name], total)))
        for name, total in totals.items()
    )


def enter(
    tx: Transaction, node: str, totals: dict[str, int], found: Sequence[Device], *, is_ready: bool
) -> None:
    """Have the node say what it has: of resource classes so much, and these devices."""
    root = devices.ensure_root(tx, node)
    mark = mark_of(tx, root) or NodeMark({}, has_devices=False)
    has_devices = mark.has_devices or (bool(found) and not devices.units_of(tx, node))
    devices.publish(tx, node, found)
    ours: dict[str, int] = {}
    for name, total in totals.items():
        now = inventories.of_provider(tx, root).get(name)
        if now is None:
            root = inventories.add(tx, root, name, Inventory(total=total))
        elif not is_ours(now, mark.totals.get(name)):
            continue
        elif now.inventory.total != total:
            root = inventories.change(tx, root, name, Inventory(total=total))
        ours[name] = total
    root = devices.set_node_health(tx, root, is_healthy=is_ready)
    put_mark(tx, root, NodeMark(ours, has_devices))


def leave(tx: Transaction, node: str) -> bool:
    """Take out what was put there and nobody holds; the mark tells what is left. Whether nothing
    is."""
    root = devices.by_name(tx, node)
    mark = mark_of(tx, root) if root is not None else None
    if root is None or mark is None:
        return True
    if mark.has_devices:
        for name in devices.units_of(tx, node):
            devices.retire(tx, name)
    left: dict[str, int] = {}
    for name, total in mark.totals.items():
        now = inventories.of_provider(tx, root).get(name)
        if now is None or not is_ours(now, total):
            continue
        if now.used:
            left[name] = total
        else:
            root = inventories.remove(tx, root, name)
    has_devices = mark.has_devices and bool(devices.units_of(tx, node))
    is_empty = not left and not has_devices
    root = devices.set_node_health(tx, root, is_healthy=True)
    put_mark(tx, root, None if is_empty else NodeMark(left, has_devices))
    devices.drop_if_own(tx, root)
    return is_empty


def is_ours(now: RecordedInventory, marked: int | None) -> bool:
    """Whether an inventory is as it was put there."""
    return marked is not None and now.inventory == Inventory(total=marked)


def mark_of(tx: Transaction, root: Provider) -> NodeMark | None:
    row = tx.row(
        "SELECT value FROM provider_attributes WHERE provider_id = ? AND key = ?", (root.id, MARK)
    )
    return msgspec.json.decode(row[0], type=NodeMark) if row else None


def put_mark(tx: Transaction, root: Provider, mark: NodeMark | None) -> None:
    kept = attributes.of_provider(tx, root)
    kept.pop(MARK, None)
    if mark is not None:
        kept[MARK] = msgspec.json.encode(mark).decode()
    attributes.assign(tx, root, kept)


def entered(tx: Transaction) -> list[str]:
    """The names of all nodes with a mark."""
    rows = tx.rows(
        """SELECT p.name FROM providers p
           JOIN provider_attributes v ON v.provider_id = p.id AND v.key = ?
           WHERE p.parent_id IS NULL ORDER BY p.name""",
        (MARK,),
    )
    return [name for (name,) in rows]


def named(tx: Transaction, names: Iterable[str]) -> dict[str, tuple[int, str]]:
    """Ids and UUIDs of providers by name; those that are not there are left out."""
    return {
        name: (id_, uuid)
        for some in chunks(sorted(set(names)))
        for name, id_, uuid in tx.rows(
            f"SELECT name, id, uuid FROM providers WHERE name IN ({marks(len(some))})",  # noqa: S608
            some,
        )
    }


# -- GPUs ------------------------------------------------------------------------------------------

GPUS = f"""
    SELECT root.id, root.name, p.id, p.uuid, p.name, i.used, {inventories.COLUMNS}
    FROM providers root
    JOIN providers p ON p.root_id = root.id
    JOIN provider_attributes v ON v.provider_id = p.id AND v.key = 'Kind' AND v.value = ?
    JOIN inventories i ON i.provider_id = p.id
    WHERE i.class_id = (SELECT id FROM resource_classes WHERE name = ?)"""  # noqa: S608

HELD_BY_OTHERS = """
    SELECT a.provider_id, sum(a.used)
    FROM allocations a JOIN consumers c ON c.id = a.consumer_id
    WHERE a.class_id = (SELECT id FROM resource_classes WHERE name = ?)
      AND coalesce(c.consumer_type, '') NOT IN (?, ?)"""


def gpu_devices(tx: Transaction, roots: Collection[int]) -> dict[int, list[GpuDevice]]:
    """In the order of their names, by the root of the tree."""
    found: dict[int, list[GpuDevice]] = defaultdict(list)
    for some in chunks(sorted(roots)):
        among = f"AND root.id IN ({marks(len(some))})"
        rows = tx.rows(f"{GPUS} {among}", (GPU_TYPE, DEVICE_CLASS, *some))
        for root, node, id_, uuid, name, used, *columns in sorted(rows, key=lambda row: row[4]):
            if name.startswith(f"{node}/"):
                capacity = inventories.of_row(columns).capacity
                found[root].append(GpuDevice(id_, uuid, capacity, capacity - used))
    return found


def gpus(tx: Transaction, nodes: Collection[str]) -> dict[str, NodeGpus]:
    """By node; of one that is not known: none."""
    ids = {name: id_ for name, (id_, _) in named(tx, nodes).items()}
    listed = gpu_devices(tx, ids.values())
    held: dict[int, int] = {}
    for some in chunks([each.id for on_node in listed.values() for each in on_node]):
        among = f"AND a.provider_id IN ({marks(len(some))}) GROUP BY a.provider_id"
        rows = tx.rows(f"{HELD_BY_OTHERS} {among}", (DEVICE_CLASS, MACHINE, MACHINE_STOCK, *some))
        held.update((device, int(units)) for device, units in rows)
    found = dict.fromkeys(nodes, NodeGpus(0, 0, 0))
    for node, root in ids.items():
        found[node] = NodeGpus(
            healthy=sum(each.capacity for each in listed[root]),
            free=sum(max(each.free, 0) for each in listed[root]),
            held_by_others=sum(held.get(each.id, 0) for each in listed[root]),
        )
    return found
