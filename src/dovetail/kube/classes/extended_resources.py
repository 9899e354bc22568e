"""Extended resources: devices of which a node tells only a number, reported by device plugins.

`sources` reads them as devices: a resource is one device with as many units as the plugin can give.
Its properties are the node's labels that begin with the resource's name, as feature discovery
writes them: `nvidia.com/gpu.memory` is the property `memory` of `nvidia.com/gpu`.

Such a device is a pool that pods can also ask for directly, without a class; both sorts of pods
take of the same units. So for the scheduler and the extender a pod that asks for `nvidia.com/gpu`
holds units of that device, and what is held by class is no room on the node for pods that ask so.

Where the node agent has the plugin, the node's annotation lists its devices by ID, and they take
the pool's place. Pods that ask directly then hold devices that the kubelet chooses, and the agent
tells which ones (`Device.properties`, HELD_BY).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from dovetail.core import quantity
from dovetail.core.device import HELD_BY, KUBELET, MOST_UNITS, RESERVED, Device, PluginOrigin
from dovetail.core.errors import Malformed
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.podfit.objects import Node
from dovetail.podfit.pod_request import PodRequest

OWN = "resourceclass."
"""Classes are no devices, even where somebody published them as a node's capacity."""

KUBERNETES = "kubernetes.io"

FEATURES = "feature.node.kubernetes.io"
"""Where node feature discovery writes labels; a vendor's are in a domain below it."""


class PoolDevice(msgspec.Struct, frozen=True):
    """A device that is a unit or a pool of one of the node's own resources."""

    name: str
    resource: str
    units: int = 1
    by_id: bool = False
    """A plugin knows it by ID, and whoever of kubelet and agent has a device can tell which."""
    works: bool = True
    """The plugin can give it, be it held or not."""
    with_kubelet: bool = False
    """A pod that asked for the resource directly has it."""


Pools = tuple[PoolDevice, ...]


def plugin_devices(node: Node) -> Iterator[Device]:
    allocatable = node.status.allocatable
    for resource, total in node.status.capacity.items():
        units = _whole(total)
        if units and is_extended(resource):
            yield Device(
                node=node.metadata.name,
                name=pool_name(resource),
                kind=resource,
                vendor=vendor_of(resource),
                units=min(units, _whole(allocatable.get(resource, "0"))) or units,
                # The plugin took all of them back: they are there, but nobody can have them.
                healthy=_whole(allocatable.get(resource, "0")) > 0,
                properties=dict(label_properties(node, resource)),
            )


def pool_name(resource: str) -> str:
    """Of the device that a resource is."""
    return resource.replace("/", ".")


def vendor_of(resource: str) -> str:
    return resource.partition("/")[0]


def is_extended(resource: str) -> bool:
    domain, slash, _ = resource.partition("/")
    native = domain == KUBERNETES or domain.endswith(f".{KUBERNETES}")
    return bool(slash) and not native and not resource.startswith(OWN)


def label_properties(node: Node, resource: str) -> Iterator[tuple[str, str]]:
    """What labels of the node say of a resource's devices; those of the vendor's domain last."""
    domain, _, name = resource.partition("/")
    for prefix in (f"{domain}.{FEATURES}/{name}.", f"{resource}."):
        for label, value in node.metadata.labels.items():
            key = label.removeprefix(prefix)
            if key != label and key and key not in RESERVED:
                yield key, value


def _whole(amount: str) -> int:
    try:
        return min(int(quantity.parse(amount)), MOST_UNITS)
    except Malformed:
        return 0


def direct_holdings_of(pod_request: PodRequest) -> tuple[DeviceHolding, ...]:
    """What a pod uses of pools, should its node have them."""
    return tuple(
        DeviceHolding(pool_name(resource), amount)
        for resource, amount in pod_request.amounts
        if is_extended(resource)
    )


def pools_of(devices: Iterable[Device]) -> Pools:
    """Devices that count as one of the node's own resources, too: by their kind."""
    return tuple(_pool_device(each) for each in devices if is_extended(each.kind))


def is_by_id(device: Device) -> bool:
    """Whether a device plugin serves it, as one of the resource that it is called after."""
    return isinstance(device.origin, PluginOrigin) and device.origin.resource == device.kind


def _pool_device(device: Device) -> PoolDevice:
    with_kubelet = device.properties.get(HELD_BY) == KUBELET
    return PoolDevice(
        device.name,
        device.kind,
        device.units,
        by_id=is_by_id(device),
        works=device.healthy or with_kubelet,
        with_kubelet=with_kubelet,
    )
