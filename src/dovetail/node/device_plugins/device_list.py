"""Reads what a device plugin says of its devices; the follower calls it with each list.

What is wrong with one device is no reason to lose the others: it is left out and said. What is no
list at all raises BadMessage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from google.protobuf.message import DecodeError

from dovetail.node.common.device_plugins import PluginDevice
from dovetail.node.device_plugins.limits import LARGEST_NODE, LONGEST_ID_BYTES, MOST_DEVICES
from dovetail.node.wire.device_plugin import HEALTHY, Device, ListAndWatchResponse
from dovetail.wire.codec import BadMessage, cooked, raw_class


class DeviceList(NamedTuple):
    devices: Mapping[str, PluginDevice]
    """By ID, in order."""
    troubles: tuple[str, ...] = ()
    """What was left out, or mended."""


def read_list(data: bytes) -> DeviceList:
    """Raises BadMessage."""
    try:
        parsed = raw_class(ListAndWatchResponse).FromString(data)
    except DecodeError as error:
        raise BadMessage(f"{len(data)} bytes are no list of devices: {error}") from None
    # Before anything is made of them.
    if len(parsed.devices) > MOST_DEVICES:
        raise BadMessage(f"it lists {len(parsed.devices)} devices; {MOST_DEVICES} are possible")
    return judged(cooked(ListAndWatchResponse, parsed))


def judged(told: ListAndWatchResponse) -> DeviceList:
    found: dict[str, PluginDevice] = {}
    nameless = overlong = 0
    twice: set[str] = set()
    for each in told.devices:
        if not each.ID:
            nameless += 1
        elif len(each.ID.encode()) > LONGEST_ID_BYTES:
            overlong += 1
        else:
            device = device_of(each)
            if each.ID in found:
                twice.add(each.ID)
                device = both(found[each.ID], device)
            found[each.ID] = device
    troubles = []
    if nameless:
        troubles.append(f"{nameless} devices without an ID were left out")
    if overlong:
        troubles.append(f"{overlong} IDs of more than {LONGEST_ID_BYTES} bytes were left out")
    if twice:
        troubles.append(f"{len(twice)} IDs were listed twice, {min(twice)!r} among them")
    return DeviceList({each: found[each] for each in sorted(found)}, tuple(troubles))


def device_of(told: Device) -> PluginDevice:
    nodes = told.topology.nodes if told.topology else ()
    return PluginDevice(
        id=told.ID,
        healthy=told.health == HEALTHY,
        # Devices that are near to no node are told as being at -1 by some.
        numa_nodes=tuple(sorted({each.ID for each in nodes if 0 <= each.ID <= LARGEST_NODE})),
    )


def both(one: PluginDevice, other: PluginDevice) -> PluginDevice:
    """It is one device, and as good as the worse of what is said of it."""
    return PluginDevice(
        id=one.id,
        healthy=one.healthy and other.healthy,
        numa_nodes=tuple(sorted({*one.numa_nodes, *other.numa_nodes})),
    )
