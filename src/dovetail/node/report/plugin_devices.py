"""Devices that device plugins have, as devices of the node; the publisher tells of them.

Their kind is the plugin's resource. They are known by a name made of it and of the plugin's ID:
real IDs have colons and slashes, and names have none. Of devices that share the node's vendor and
labels only what differs is told; who reads the node's annotation knows the rest.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from msgspec.structs import replace

from dovetail.core.device import HELD_BY, KUBELET, Device, PluginOrigin
from dovetail.node.common.device_plugins import DevicePlugin, PluginDevice

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?", re.ASCII)
LONGEST_NAME = 100
DIGITS = 10
"""Of the hash that ends a name which could not be made of resource and ID as they are."""

NUMA = "numa"

PropertiesOf = Callable[[str, str], Mapping[str, str]]
"""What is known of a device besides, by resource and ID."""

HeldIds = Callable[[str], Collection[str]]
"""Of a resource, the IDs of devices that pods have by classes."""


def plugin_devices(
    node: str,
    plugins: Iterable[DevicePlugin],
    properties_of: PropertiesOf,
    held_ids: HeldIds = lambda _: (),
) -> tuple[Device, ...]:
    """By resource and ID, which is a fixed order: who comes later gives way in names.

    While it is not known which devices the kubelet gave to pods, any of them may be such a pod's,
    but for those that classes hold.
    """
    found: dict[str, Device] = {}
    for plugin in sorted(plugins, key=lambda each: each.resource):
        for device in _devices(node, plugin, properties_of, held_ids):
            assert isinstance(device.origin, PluginOrigin)
            name = device.name
            if name in found:
                name = hashed_name(device.origin.resource, device.origin.id)
            found[name] = replace(device, name=name)
    return tuple(found.values())


def _devices(
    node: str, plugin: DevicePlugin, properties_of: PropertiesOf, held_ids: HeldIds
) -> Iterator[Device]:
    listed = plugin.devices
    elsewhere = set(plugin.held_elsewhere(tuple(listed)))
    if plugin.held_elsewhere_unknown:
        elsewhere |= listed.keys() - set(held_ids(plugin.resource))
    for id_, each in sorted(listed.items()):
        yield Device(
            node=node,
            name=device_name(plugin.resource, id_),
            kind=plugin.resource,
            healthy=each.healthy and id_ not in elsewhere,
            properties={
                **properties_of(plugin.resource, id_),
                **_numa(each),
                **({HELD_BY: KUBELET} if each.healthy and id_ in elsewhere else {}),
            },
            origin=PluginOrigin(plugin.resource, id_),
        )


def _numa(device: PluginDevice) -> dict[str, str]:
    nodes = ",".join(map(str, sorted(device.numa_nodes)))
    return {NUMA: nodes} if nodes else {}


def device_name(resource: str, id_: str) -> str:
    """The same for a device at all times."""
    plain = f"{resource.replace('/', '.')}-{id_}"
    if len(plain) <= LONGEST_NAME and NAME.fullmatch(plain):
        return plain
    return hashed_name(resource, id_)


def hashed_name(resource: str, id_: str) -> str:
    digest = hashlib.sha256(f"{resource}\0{id_}".encode(errors="replace")).hexdigest()[:DIGITS]
    plain = f"{resource.replace('/', '.')}-{id_}"[: LONGEST_NAME - DIGITS - 1]
    return f"{re.sub(r'[^A-Za-z0-9_.-]', '-', plain, flags=re.ASCII)}-{digest}"
