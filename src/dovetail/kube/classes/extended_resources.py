"""Extended resources: devices of which a node tells only a number, reported by device plugins.

`sources` reads them as devices: a resource is one device with as many units as the plugin can give.
Its properties are the node's labels that begin with the resource's name, as feature discovery
writes them: `nvidia.com/gpu.memory` is the property `memory` of `nvidia.com/gpu`.

Such a device is a pool that pods can also ask for directly, without a class; both sorts of pods
take of the same units. So for the scheduler and the extender a pod that asks for `nvidia.com/gpu`
holds units of that device, and what is held by class is no room on the node for pods that ask so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dovetail.core import quantity
from dovetail.core.device import MOST_UNITS, RESERVED, Device
from dovetail.core.errors import Malformed
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.podfit.objects import Node
from dovetail.podfit.pod_request import PodRequest

OWN = "resourceclass."
"""Classes are no devices, even where somebody published them as a node's capacity."""

KUBERNETES = "kubernetes.io"

Pools = tuple[tuple[str, str], ...]
"""Devices, and the resource that each is a unit or a pool of."""


def plugin_devices(node: Node) -> Iterator[Device]:
    allocatable = node.status.allocatable
    for resource, total in node.status.capacity.items():
        units = _whole(total)
        if units and is_extended(resource):
            yield Device(
                node=node.metadata.name,
                name=pool_name(resource),
                kind=resource,
                vendor=resource.partition("/")[0],
                units=min(units, _whole(allocatable.get(resource, "0"))) or units,
                # The plugin took all of them back: they are there, but nobody can have them.
                healthy=_whole(allocatable.get(resource, "0")) > 0,
                properties=dict(_labels(node, resource)),
            )


def pool_name(resource: str) -> str:
    """Of the device that a resource is."""
    return resource.replace("/", ".")


def is_extended(resource: str) -> bool:
    domain, slash, _ = resource.partition("/")
    native = domain == KUBERNETES or domain.endswith(f".{KUBERNETES}")
    return bool(slash) and not native and not resource.startswith(OWN)


def _labels(node: Node, resource: str) -> Iterator[tuple[str, str]]:
    for label, value in node.metadata.labels.items():
        key = label.removeprefix(f"{resource}.")
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
    return tuple((each.name, each.kind) for each in devices if is_extended(each.kind))
