"""Device sources: one list of a node's devices, whoever published them; the catalogue reads it.

An annotation says most and counts first; then what DRA drivers publish in ResourceSlices; then the
bare numbers of device plugins. A name that was there already is not taken again, and a device
plugin's resource that another source describes by kind is that source's. Labels of the node tell
properties of a device plugin's devices, whether these are listed by ID or only counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from dovetail.core.device import Device, PluginOrigin
from dovetail.kube.classes.extended_resources import (
    is_by_id,
    label_properties,
    plugin_devices,
    vendor_of,
)
from dovetail.kube.classes.node_annotation import annotated_devices
from dovetail.kube.classes.slices import slice_devices
from dovetail.podfit.objects import Node, ResourceSlice


def devices_of(node: Node, slices: Iterable[ResourceSlice] = ()) -> tuple[Device, ...]:
    """In the order of kind and name, which is the order of first fit.

    Raises BadDevices.
    """
    name = node.metadata.name
    annotated = annotated_devices(name, node.metadata.annotations)
    found = {device.name: device for device in with_labels(node, annotated)}
    for device in slice_devices(name, slices):
        found.setdefault(device.name, device)
    described = {device.kind for device in found.values()}
    for device in plugin_devices(node):
        if device.kind not in described:
            found.setdefault(device.name, device)
    return tuple(sorted(found.values(), key=lambda device: (device.kind, device.name)))


def with_labels(node: Node, devices: Iterable[Device]) -> Iterator[Device]:
    """Devices by ID with what follows from their resource; what is said of one itself counts more
    than what is said of all on the node."""
    told: dict[str, dict[str, str]] = {}
    for device in devices:
        if not is_by_id(device):
            yield device
            continue
        assert isinstance(device.origin, PluginOrigin)
        if device.kind not in told:
            told[device.kind] = dict(label_properties(node, device.kind))
        known = {**told[device.kind], "id": device.origin.id}
        yield replace(
            device,
            vendor=device.vendor or vendor_of(device.kind),
            properties={**known, **device.properties},
        )
