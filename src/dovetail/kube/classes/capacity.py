"""Devices of which only a number is known: what device plugins report as extended resources.

A resource is one device with as many units as the plugin can give. Its properties are the node's
labels that begin with the resource's name, as feature discovery writes them:
`nvidia.com/gpu.memory` is the property `memory` of `nvidia.com/gpu`.
"""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.core import quantity
from dovetail.core.device import MOST_UNITS, RESERVED, Device
from dovetail.core.errors import Malformed
from dovetail.podfit.objects import Node

OWN = "resourceclass."
"""Classes are no devices, even where somebody published them as a node's capacity."""

KUBERNETES = "kubernetes.io"


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
