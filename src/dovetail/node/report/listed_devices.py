"""Devices in the pod resources API: those that classes gave, and all that plugins list. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dovetail.node.class_devices.names import device_resource, is_class_resource
from dovetail.node.common.device_plugins import DevicePlugins, PluginDevice
from dovetail.node.state.pod_state import Allocations
from dovetail.node.wire.pod_resources import ContainerDevices
from dovetail.node.wire.resource_plugin import NUMANode, TopologyInfo


def held_devices(
    allocations: Allocations, plugins: DevicePlugins, memory: tuple[str, ...]
) -> Iterator[ContainerDevices]:
    """Of a container. `memory`: how resources begin whose devices are listed as memory."""
    for name, info in sorted(allocations.items()):
        if not info.device_ids or name.startswith(memory):
            continue
        plugin = plugins.of(device_resource(name)) if is_class_resource(name) else None
        # A plugin that went takes the knowledge along, unless all its devices are on one node.
        hints = info.resource_hints.hints if info.resource_hints else ()
        near = hints[0].nodes if len(hints) == 1 else ()
        lost = {id_: PluginDevice(id_, numa_nodes=near) for id_ in info.device_ids}
        known = lost | {
            id_: plugin.devices[id_] for id_ in lost if plugin and id_ in plugin.devices
        }
        yield from by_nodes(device_resource(name), info.device_ids, known)


def allocatable_devices(plugins: DevicePlugins) -> Iterator[ContainerDevices]:
    """Those that are well, whoever has them."""
    for plugin in plugins.all():
        well = [id_ for id_, each in plugin.devices.items() if each.healthy]
        yield from by_nodes(plugin.resource, well, plugin.devices)


def by_nodes(
    resource: str, ids: Iterable[str], known: Mapping[str, PluginDevice]
) -> Iterator[ContainerDevices]:
    """An entry for each set of NUMA nodes, as the kubelet lists them."""
    found: dict[tuple[int, ...], list[str]] = {}
    for each in ids:
        found.setdefault(known[each].numa_nodes, []).append(each)
    for nodes, own in sorted(found.items()):
        where = TopologyInfo(nodes=tuple(NUMANode(ID=node) for node in nodes)) if nodes else None
        yield ContainerDevices(
            resource_name=resource, device_ids=tuple(sorted(own)), topology=where
        )
