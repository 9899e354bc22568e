"""Device sources: one list of a node's devices, whoever published them; the catalogue reads it.

An annotation says most and counts first; then what DRA drivers publish in ResourceSlices; then the
bare numbers of device plugins. A name that was there already is not taken again, and a device
plugin's resource that another source describes by kind is that source's.
"""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.core.device import Device
from dovetail.kube.classes.extended_resources import plugin_devices
from dovetail.kube.classes.node_annotation import annotated_devices
from dovetail.kube.classes.slices import slice_devices
from dovetail.podfit.objects import Node, ResourceSlice


def devices_of(node: Node, slices: Iterable[ResourceSlice] = ()) -> tuple[Device, ...]:
    """In the order of kind and name, which is the order of first fit.

    Raises BadDevices.
    """
    name = node.metadata.name
    found = {device.name: device for device in annotated_devices(name, node.metadata.annotations)}
    for device in slice_devices(name, slices):
        found.setdefault(device.name, device)
    described = {device.kind for device in found.values()}
    for device in plugin_devices(node):
        if device.kind not in described:
            found.setdefault(device.name, device)
    return tuple(sorted(found.values(), key=lambda device: (device.kind, device.name)))
