"""Layout of the map: which hosts and units there are, in columns, true until a tree changes.

A host is a tree of providers, but for those that the ledger keeps books in. A lane is a class of
resources of one provider in it: the VCPUs of a NUMA node, a GPU. `FleetMaps` makes a layout
whenever the snapshot's own one is another; made in vector operations over all rows, and in Python
once per host and per name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from dovetail.core.columns import Amounts, Mask, Numbers
from dovetail.core.device import HEALTH, UNHEALTHY
from dovetail.engine import Snapshot
from dovetail.engine.inventories import NEVER
from dovetail.ledger.devices import DEVICE_CLASS
from dovetail.ledger.machines.pool_nodes import MARK
from dovetail.ledger.views.fleet_names import FleetNames

DISABLED = "COMPUTE_STATUS_DISABLED"
OK, DRAINED, DEAD = 0, 1, 2
"""States of hosts. Drained: takes nothing new (the trait, or everything is reserved). Dead: there
is nothing of it, or its node is gone or not ready."""
NONE = -1
"""The group of a host that is in none."""
KINDS = ("host", "numa", "gpu", "fpga", "nic", "disk", "device")
HOST, NUMA, GPU, FPGA, NIC, DISK, DEVICE = range(len(KINDS))
KIND_OF_WORD = (
    ("GPU", GPU),
    ("FPGA", FPGA),
    ("NET_", NIC),
    ("NIC", NIC),
    ("DISK", DISK),
    ("STORAGE", DISK),
    ("CPU", NUMA),
    ("MEMORY", NUMA),
)
"""The kind of a unit by what its class, or the kind of its device, is called."""
POOLED = "machines"
"""The pool of nodes that machines are sold from, if nobody said which one."""


class HostGroups(msgspec.Struct, frozen=True):
    """One way to group hosts."""

    names: list[str]
    of_host: Numbers
    """By host: an index of `names`, or NONE."""


class LaneColumns(msgspec.Struct, frozen=True):
    """A class of one provider each, host by host."""

    host: Numbers
    kind: Numbers
    class_: Numbers
    names: list[str]
    """Without that of the host, where they begin with it."""
    capacity: Amounts
    """As it is told: not below nothing."""
    offered: Amounts
    """As the snapshot has it."""
    entries: tuple[tuple[int, Numbers], ...]
    """The entries in the inventories of each class (by its id), class by class."""
    order: NDArray[np.int64]
    """Of those entries, to be that of lanes."""


class FleetLayout(msgspec.Struct, frozen=True):
    token: object
    """`Snapshot.layout` as it was."""
    digest: str
    """The same wherever the same fleet is laid out."""
    trees: Numbers
    """The tree of each host."""
    root_ids: list[int]
    uuids: list[str]
    names: list[str]
    state: Numbers
    groups: dict[str, HostGroups]
    classes: list[str]
    capacity: list[Amounts]
    """By class: that of each host."""
    lanes: LaneColumns
    made: dict[str, Any] = msgspec.field(default_factory=dict)
    """What was made of it."""


class DecidedColumns(msgspec.Struct, frozen=True):
    """What only the snapshot's own thread may find out."""

    order: Numbers
    """Of trees."""
    disabled: Mask
    """By number of a trait set."""


def decided_of(snapshot: Snapshot) -> DecidedColumns:
    disabled = snapshot.trait_sets.meeting([{snapshot.trait_ids.get(DISABLED, -1)}])
    return DecidedColumns(snapshot.tree_order, disabled)


def layout_of(snapshot: Snapshot, decided: DecidedColumns, known: FleetNames) -> FleetLayout:
    """In the order of roots, which is that in which hosts came into the ledger. In a thread of its
    own, if the snapshot is held meanwhile."""
    order = decided.order
    trees = order.compress(snapshot.tree_size.values.take(order) > 0)
    first = snapshot.provider_id.values.take(snapshot.tree_start.values.take(trees))
    trees = trees.compress(~np.isin(first, list(known.no_hosts)))
    roots = snapshot.tree_start.values.take(trees)
    root_ids = snapshot.provider_id.values.take(roots).tolist()
    uuids = [text.decode() for text in snapshot.uuids.values.take(roots).tolist()]
    names = [known.names.get(id_, uuid) for id_, uuid in zip(root_ids, uuids, strict=True)]
    hosts = np.full(snapshot.tree_size.size, NONE, np.int32)
    hosts[trees] = np.arange(len(trees), dtype=np.int32)
    classes, lanes = lanes_of(snapshot, known, hosts, names)
    capacity = [
        per_host(lanes.host, lanes.class_ == at, len(trees), lanes.capacity)
        for at in range(len(classes))
    ]
    state = states_of(snapshot, roots, lanes, decided.disabled)
    if known.gone:
        state[[at for at, id_ in enumerate(root_ids) if id_ in known.gone]] = DEAD
    groups = groups_of(snapshot, roots, names, [known.clusters.get(id_) for id_ in root_ids])
    return FleetLayout(
        token=snapshot.layout,
        digest=digest_of(
            (uuids, names, classes, lanes.names, *(each.names for each in groups.values())),
            (
                *(state, lanes.host, lanes.kind, lanes.class_, lanes.capacity),
                *(each.of_host for each in groups.values()),
            ),
        ),
        trees=trees,
        root_ids=root_ids,
        uuids=uuids,
        names=names,
        state=state,
        groups=groups,
        classes=classes,
        capacity=capacity,
        lanes=lanes,
    )


# -- lanes ---------------------------------------------------------------------------------------


def lanes_of(
    snapshot: Snapshot, known: FleetNames, hosts: Numbers, host_names: list[str]
) -> tuple[list[str], LaneColumns]:
    """The classes that some host has, and all lanes; `hosts` is the host by tree, or NONE."""
    entries, rows, offered, which, classes = [], [], [], [], list[str]()
    for class_id in sorted(snapshot.inventories):
        inventories = snapshot.inventories[class_id]
        is_alive = inventories.free.values != NEVER
        is_alive &= hosts.take(snapshot.tree.values.take(inventories.rows.values)) != NONE
        alive = np.flatnonzero(is_alive).astype(np.int32)
        if len(alive):
            entries.append((class_id, alive))
            rows.append(inventories.rows.values.take(alive))
            offered.append(inventories.capacity.values.take(alive))
            which.append(np.full(len(alive), len(classes), np.int32))
            classes.append(snapshot.class_names[class_id])
    row, class_ = joined(rows, np.int32), joined(which, np.int32)
    host = hosts.take(snapshot.tree.values.take(row))
    order = np.lexsort((class_, row, host))
    row, class_, host = row.take(order), class_.take(order), host.take(order)
    offer = joined(offered, np.int64).take(order)
    ids = snapshot.provider_id.values.take(row).tolist()
    return classes, LaneColumns(
        host=host,
        kind=kinds_of(snapshot, row, class_, classes),
        class_=class_,
        names=[
            short_name(known.names.get(id_, ""), host_names[at])
            for id_, at in zip(ids, host.tolist(), strict=True)
        ],
        capacity=np.maximum(offer, 0),
        offered=offer,
        entries=tuple(entries),
        order=order,
    )


def short_name(name: str, host: str) -> str:
    return name[len(host) :].lstrip("_-./:") if name.startswith(host) else name


def joined(parts: Sequence[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, kind)


def kinds_of(snapshot: Snapshot, row: Numbers, class_: Numbers, classes: list[str]) -> Numbers:
    """What a lane is of; a published device says so itself."""
    kind = np.array([kind_of(each) for each in classes], np.int32).take(class_)
    if DEVICE_CLASS in classes:
        published = np.flatnonzero(class_ == classes.index(DEVICE_CLASS))
        told = attribute_values(snapshot, row.take(published), "Kind")
        kind[published] = [kind_of((each or "").upper()) for each in told]
    kind[snapshot.parent.values.take(row) < 0] = HOST
    return kind


def kind_of(word: str) -> int:
    return next((kind for part, kind in KIND_OF_WORD if part in word), DEVICE)


def per_host(host: Numbers, mine: Mask, hosts: int, amounts: Amounts) -> Amounts:
    """Amounts of those lanes, added up by host. Sums of floats are exact up to 2^53."""
    found = np.bincount(host.compress(mine), amounts.compress(mine), minlength=hosts)
    return found.astype(np.int64)


# -- hosts ---------------------------------------------------------------------------------------


def states_of(snapshot: Snapshot, roots: Numbers, lanes: LaneColumns, disabled: Mask) -> Numbers:
    hosts = len(roots)
    offering = np.bincount(lanes.host, lanes.capacity > 0, hosts)
    state = np.where(offering > 0, OK, DRAINED).astype(np.int32)
    state[disabled.take(snapshot.traits.values.take(roots))] = DRAINED
    state[np.bincount(lanes.host, minlength=hosts) == 0] = DEAD
    health = attribute_values(snapshot, roots, HEALTH)
    state[[at for at, each in enumerate(health) if each == UNHEALTHY]] = DEAD
    return state


def groups_of(
    snapshot: Snapshot, roots: Numbers, names: list[str], clusters: list[str | None]
) -> dict[str, HostGroups]:
    racks = attribute_values(snapshot, roots, "rack")
    pools = attribute_values(snapshot, roots, "pool")
    marks = attribute_values(snapshot, roots, MARK)
    return {
        "rack": grouped([said or rack_in(name) for said, name in zip(racks, names, strict=True)]),
        "aggregate": grouped(
            by_number(
                snapshot.aggregates.values.take(roots),
                lambda number: min(snapshot.aggregate_sets.members(number), default=None),
            )
        ),
        "cluster": grouped(clusters),
        "pool": grouped(
            [
                said or (POOLED if mark is not None else None)
                for said, mark in zip(pools, marks, strict=True)
            ]
        ),
    }


def rack_in(name: str) -> str | None:
    """What names begin with, up to their last dash."""
    return name.rpartition("-")[0] or None


def grouped(of_host: Sequence[str | None]) -> HostGroups:
    names = list(dict.fromkeys(each for each in of_host if each is not None))
    places = {name: at for at, name in enumerate(names)}
    index = [NONE if each is None else places[each] for each in of_host]
    return HostGroups(names, np.array(index, np.int32))


def attribute_values(snapshot: Snapshot, rows: Numbers, key: str) -> list[str | None]:
    """What each of the rows has under a key, if anything."""
    sets = snapshot.attribute_sets
    return by_number(
        snapshot.attributes.values.take(rows), lambda number: dict(sets.members(number)).get(key)
    )


def by_number(numbers: Numbers, value: Callable[[int], str | None]) -> list[str | None]:
    """The value of each, asked once per distinct number."""
    distinct, which = np.unique(numbers, return_inverse=True)
    values = [value(number) for number in distinct.tolist()]
    return [values[at] for at in which.tolist()]


def digest_of(texts: Iterable[list[str]], numbers: Iterable[NDArray[Any]]) -> str:
    digest = hashlib.blake2b(digest_size=9)
    for each in texts:
        digest.update(msgspec.msgpack.encode(each))
    for column in numbers:
        digest.update(np.ascontiguousarray(column).data)
    return digest.hexdigest()
