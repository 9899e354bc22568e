"""Node annotation: the devices of a node as JSON, for fleets without DRA drivers, and agents.

`sources` reads it; the agent publishes by it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from dovetail.core.device import (
    MOST_UNITS,
    RESERVED,
    Device,
    DeviceFault,
    PluginOrigin,
    faults_of,
)
from dovetail.core.errors import BadDevices
from dovetail.kube.api.port import KubeApi
from dovetail.podfit.objects import Node

DEVICES = "dovetail.dev/devices"

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?", re.ASCII)
LONGEST = 200

ALL_ANNOTATIONS = 256 * 1024
"""Bytes that the annotations of one object may have in all: Kubernetes refuses more."""
LEFT_TO_OTHERS = 16 * 1024
"""Of these: kubelets, network plugins and volumes write some, too."""


class TooManyDevices(BadDevices):
    """More than an annotation can hold."""


class AnnotatedDevice(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One device, as the annotation has it."""

    name: str
    kind: str
    vendor: str = ""
    units: int = 1
    healthy: bool = True
    properties: dict[str, str] = {}
    resource: str = ""
    id: str = ""
    """By which its plugin knows it, and what the plugin serves; both are empty without one."""


def annotated_devices(node: str, annotations: Mapping[str, str]) -> tuple[Device, ...]:
    text = annotations.get(DEVICES)
    if text is None:
        return ()
    try:
        written = msgspec.json.decode(text, type=tuple[AnnotatedDevice, ...])
    except msgspec.MsgspecError as error:
        raise BadDevices(
            f"annotation {DEVICES} of node {node}: {error}; a JSON list of devices is expected,"
            ' such as [{"name": "gpu-0", "kind": "nvidia-gpu", "properties": {"memory": "80G"}}]'
        ) from error
    for index, (each, faults) in enumerate(zip(written, faults_of(written), strict=True)):
        if problem := _problem(each, faults):
            raise BadDevices(f"annotation {DEVICES} of node {node}: [{index}]{problem}")
    return tuple(_device(node, each) for each in written)


def text_of(devices: Sequence[Device]) -> str:
    """What to write in the annotation for these devices to be read."""
    return msgspec.json.encode([_annotated(device) for device in devices]).decode()


async def publish(api: KubeApi, node: str, devices: Sequence[Device]) -> None:
    """Raises TooManyDevices, and NotFound if there is no such node: only a kubelet makes one."""
    text = text_of(devices)
    if len(text.encode()) > ALL_ANNOTATIONS - LEFT_TO_OTHERS:
        raise TooManyDevices(
            f"annotation {DEVICES} of node {node}: {len(devices)} devices take"
            f" {len(text.encode()) / 1024:.0f} KiB, and at most"
            f" {(ALL_ANNOTATIONS - LEFT_TO_OTHERS) // 1024} KiB are possible: tell fewer properties"
            " of each, or have a DRA driver publish them in ResourceSlices"
        )
    await api.merge(Node, node, {"metadata": {"annotations": {DEVICES: text}}})


def _device(node: str, written: AnnotatedDevice) -> Device:
    fields = msgspec.structs.asdict(written)
    resource, id_ = fields.pop("resource"), fields.pop("id")
    return Device(node=node, origin=PluginOrigin(resource, id_) if resource else None, **fields)


def _annotated(device: Device) -> AnnotatedDevice:
    fields = msgspec.structs.asdict(device)
    del fields["node"]
    origin = fields.pop("origin")
    if isinstance(origin, PluginOrigin):
        fields |= msgspec.structs.asdict(origin)
    return AnnotatedDevice(**fields)


def _problem(device: AnnotatedDevice, faults: Sequence[DeviceFault]) -> str:
    if not NAME.fullmatch(device.name) or len(device.name) > LONGEST:
        return f".name: {device.name!r}: letters, digits, '-', '_' and '.' are expected"
    if DeviceFault.NAME_TAKEN in faults:
        return f".name: {device.name!r} is there already"
    if not device.kind:
        return ".kind: is empty"
    if DeviceFault.UNITS in faults:
        return f".units: {device.units}: at least 1 and at most {MOST_UNITS} are expected"
    if bool(device.resource) != bool(device.id):
        return ".resource and .id: a device of a plugin has both, and others have neither"
    for key in device.properties:
        if not key or key in RESERVED:
            return f".properties: {key!r} cannot be the name of a property"
    return ""
