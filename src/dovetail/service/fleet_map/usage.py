"""What is in use on the map, in columns; compared with before, to tell what changed."""

from __future__ import annotations

import hashlib

import msgspec
import numpy as np

from dovetail.core.columns import Amounts, Mask, Numbers, spans
from dovetail.engine import Snapshot
from dovetail.service.fleet_map.layout import FleetLayout, per_host


class FleetUsage(msgspec.Struct, frozen=True):
    """True for one moment of the ledger."""

    of_lanes: Amounts
    digest: str
    """The same wherever the same is in use."""


class LanesInUse(msgspec.Struct, frozen=True):
    """Lanes of all hosts, or of some, and what is in use of each."""

    host: Numbers
    class_: Numbers
    capacity: Amounts
    used: Amounts
    hosts: int
    """So many there are; lanes have them numbered from 0."""
    classes: int


def usage_of(layout: FleetLayout, snapshot: Snapshot) -> FleetUsage:
    """The snapshot is the one that was laid out, or a later one with the same layout."""
    lanes = layout.lanes
    free = [
        snapshot.inventories[class_id].free.values.take(entries)
        for class_id, entries in lanes.entries
    ]
    used = lanes.offered - np.concatenate(free).take(lanes.order) if free else lanes.offered
    return FleetUsage(used, hashlib.blake2b(used.data, digest_size=9).hexdigest())


def all_in_use(layout: FleetLayout, usage: FleetUsage) -> LanesInUse:
    lanes = layout.lanes
    return LanesInUse(
        lanes.host,
        lanes.class_,
        lanes.capacity,
        usage.of_lanes,
        len(layout.names),
        len(layout.classes),
    )


def in_use_of(layout: FleetLayout, usage: FleetUsage, hosts: Numbers) -> LanesInUse:
    """Of some hosts, ascending: costs what they have. Lanes are laid out host by host."""
    lanes = layout.lanes
    at = spans(*(lanes.host.searchsorted(hosts, side) for side in ("left", "right")))
    return LanesInUse(
        hosts.searchsorted(lanes.host.take(at)).astype(np.int32),
        lanes.class_.take(at),
        lanes.capacity.take(at),
        usage.of_lanes.take(at),
        len(hosts),
        len(layout.classes),
    )


def used_by_host(lanes: LanesInUse) -> list[Amounts]:
    """By class."""
    return [
        per_host(lanes.host, lanes.class_ == at, lanes.hosts, lanes.used)
        for at in range(lanes.classes)
    ]


def fragmentation(lanes: LanesInUse) -> Numbers:
    """Of each host, in percent: the share of what is free that lies in units partly in use, of the
    class where that is largest among those that several units have. An empty host has none, and a
    full one neither."""
    free = np.maximum(lanes.capacity - lanes.used, 0)
    partly: Mask = (lanes.used > 0) & (free > 0)
    found = np.zeros(lanes.hosts, np.int32)
    for at in range(lanes.classes):
        mine = lanes.class_ == at
        several = np.bincount(lanes.host.compress(mine), minlength=lanes.hosts) > 1
        all_free = np.where(several, per_host(lanes.host, mine, lanes.hosts, free), 0)
        cut = per_host(lanes.host, mine, lanes.hosts, np.where(partly, free, 0))
        share = np.zeros(lanes.hosts, np.int32)
        np.floor_divide(100 * cut, all_free, out=share, where=all_free > 0, casting="unsafe")
        found = np.maximum(found, share)
    return found
