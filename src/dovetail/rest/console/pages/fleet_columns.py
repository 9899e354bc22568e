"""What a page shows of the map, taken from its columns: which hosts, and what they amount to.

In vector operations over all hosts. Names are looked through one by one, in steps.
"""

from __future__ import annotations

import msgspec
import numpy as np

from dovetail.aio.pace import Pace
from dovetail.core.columns import Amounts, Mask, Numbers
from dovetail.rest.server.http import Query
from dovetail.service.fleet_map.layout import DEAD, DRAINED, NONE, OK, FleetLayout, per_host
from dovetail.service.fleet_map.maps import FleetMap

STATES = ("all", "free", "full", "drained", "dead")
"""By which hosts are chosen."""
USUAL_CLASSES = ("VCPU", "PCPU", "CUSTOM_MILLICPU", "MEMORY_MB")
"""That people think of first; else the first of the fleet."""
NAMES_AT_ONCE = 1000


class FleetChoice(msgspec.Struct, frozen=True):
    """What is looked at, as the address says it; what it does not say, or nobody has, as usual."""

    grouping: str
    class_: str
    """Nothing, if no host has anything."""
    state: str
    text: str
    group: str | None
    """One of the grouping, by its name."""

    @classmethod
    def of(cls, query: Query, layout: FleetLayout) -> FleetChoice:
        used = [name for name, each in layout.groups.items() if each.names] or [*layout.groups]
        known = [each for each in USUAL_CLASSES if each in layout.classes]
        usual = next(iter((*known, *layout.classes)), "")
        grouping = one_of(query.get("group"), used, used[0])
        within = query.get("in")
        return cls(
            grouping=grouping,
            class_=one_of(query.get("class"), layout.classes, usual),
            state=one_of(query.get("state"), STATES, STATES[0]),
            text=(query.get("q") or "").strip(),
            group=within if within in layout.groups[grouping].names else None,
        )


def one_of(asked: str | None, known: list[str] | tuple[str, ...], usual: str) -> str:
    return asked if asked is not None and asked in known else usual


class MapTotal(msgspec.Struct, frozen=True):
    class_: str
    used: int
    capacity: int


class GroupTotal(msgspec.Struct, frozen=True):
    name: str | None
    """None: of hosts in no group."""
    hosts: int
    used: int
    capacity: int
    out: int
    """Drained or dead."""


class HostAmounts(msgspec.Struct, frozen=True):
    """Of one class, by host."""

    used: Amounts
    capacity: Amounts

    @property
    def full(self) -> Mask:
        found: Mask = (self.capacity > 0) & (self.used >= self.capacity)
        return found


def class_totals(fleet: FleetMap) -> list[MapTotal]:
    layout = fleet.layout
    used = np.bincount(layout.lanes.class_, fleet.usage.of_lanes, len(layout.classes))
    each = zip(layout.classes, used.tolist(), layout.capacity, strict=True)
    return [MapTotal(name, int(taken), int(capacity.sum())) for name, taken, capacity in each]


def columns_of(fleet: FleetMap, class_: str) -> HostAmounts:
    layout = fleet.layout
    if not class_:
        nothing = np.zeros(len(layout.names), np.int64)
        return HostAmounts(nothing, nothing)
    at = layout.classes.index(class_)
    mine = layout.lanes.class_ == at
    used = per_host(layout.lanes.host, mine, len(layout.names), fleet.usage.of_lanes)
    return HostAmounts(used, layout.capacity[at])


async def chosen_hosts(layout: FleetLayout, choice: FleetChoice, of: HostAmounts) -> Numbers:
    """In the order of the map."""
    found = in_state(layout, choice.state, of)
    if choice.group is not None:
        groups = layout.groups[choice.grouping]
        found &= groups.of_host == groups.names.index(choice.group)
    hosts = np.flatnonzero(found).astype(np.int32)
    return await named_like(layout, hosts, choice.text) if choice.text else hosts


def in_state(layout: FleetLayout, state: str, of: HostAmounts) -> Mask:
    found: Mask = np.ones(len(layout.names), np.bool_)
    if state == "drained":
        found = layout.state == DRAINED
    elif state == "dead":
        found = layout.state == DEAD
    elif state != "all":
        found = (layout.state == OK) & (of.full if state == "full" else ~of.full)
    return found


async def named_like(layout: FleetLayout, hosts: Numbers, text: str) -> Numbers:
    """Those with the text in their name, or the one whose UUID it is."""
    wanted, found, pace = text.lower(), list[int](), Pace()
    for first in range(0, len(hosts), NAMES_AT_ONCE):
        found += [
            at
            for at in hosts[first : first + NAMES_AT_ONCE].tolist()
            if wanted in layout.names[at].lower() or wanted == layout.uuids[at]
        ]
        await pace.give_way()
    return np.array(found, np.int32)


def group_totals(
    layout: FleetLayout, grouping: str, of: HostAmounts, hosts: Numbers
) -> list[GroupTotal]:
    """Of these hosts; those in no group come last."""
    groups = layout.groups[grouping]
    nowhere = len(groups.names)
    which = groups.of_host.take(hosts)
    which = np.where(which == NONE, nowhere, which)

    def added_up(amounts: Amounts | Mask) -> list[int]:
        sums = np.bincount(which, amounts.take(hosts), nowhere + 1)
        return [int(each) for each in sums.tolist()]

    counts = np.bincount(which, minlength=nowhere + 1).tolist()
    used, capacity = added_up(of.used), added_up(of.capacity)
    out = added_up(layout.state != OK)
    names: list[str | None] = [*groups.names, None]
    return [
        GroupTotal(name, counts[at], used[at], capacity[at], out[at])
        for at, name in enumerate(names)
        if counts[at]
    ]
