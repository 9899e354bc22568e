"""Turns a device plugin's answer to Allocate into a grant, and its preference into IDs. Pure.

What a runtime could only refuse later, in words of its own, is refused here: raises BadMessage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from dovetail.node.common.device_plugins import DeviceGrant
from dovetail.node.wire.device_plugin import (
    AllocateResponse,
    ContainerAllocateResponse,
    PreferredAllocationResponse,
)
from dovetail.wire.codec import BadMessage

PERMISSIONS = frozenset("rwm")


def grant_of(answer: AllocateResponse) -> DeviceGrant:
    """Of a question for one container. Raises BadMessage."""
    if len(answer.container_responses) != 1:
        raise BadMessage(
            f"it answered for {len(answer.container_responses)} containers, and was asked for 1"
        )
    (given,) = answer.container_responses
    if wrong := next(faults(given), None):
        raise BadMessage(wrong)
    return DeviceGrant(
        envs=given.envs,
        annotations=given.annotations,
        mounts=given.mounts,
        devices=given.devices,
        cdi_devices=tuple(each.name for each in given.cdi_devices),
    )


def faults(given: ContainerAllocateResponse) -> Iterator[str]:
    for name, value in given.envs.items():
        if not name or "=" in name or "\0" in name + value:
            yield f"{name!r} is no name of an environment variable, or its value no value"
    for name in given.annotations:
        if not name:
            yield "an annotation has no name"
    for mount in given.mounts:
        yield from path_faults("mount", mount.host_path, mount.container_path)
    for device in given.devices:
        yield from path_faults("device", device.host_path, device.container_path)
        if not PERMISSIONS.issuperset(device.permissions):
            yield f"{device.permissions!r} are no permissions of a device, such as rwm"
    for cdi in given.cdi_devices:
        kind, equals, name = cdi.name.partition("=")
        if not (equals and name and all(kind.partition("/"))):
            yield f"{cdi.name!r} is no name of a CDI device, such as vendor.com/gpu=0"


def path_faults(what: str, *paths: str) -> Iterator[str]:
    for path in paths:
        if not path.startswith("/") or "\0" in path:
            yield f"{path!r} is no path for a {what}: it must be absolute"


def preferred_of(
    answer: PreferredAllocationResponse,
    available: Collection[str],
    must_include: Collection[str],
    size: int,
) -> Sequence[str]:
    """Raises BadMessage."""
    if len(answer.container_responses) != 1:
        raise BadMessage(
            f"it answered for {len(answer.container_responses)} containers, and was asked for 1"
        )
    chosen = answer.container_responses[0].deviceIDs
    if len(chosen) != size or len({*chosen}) != size:
        raise BadMessage(f"it prefers {len({*chosen})} devices, and was asked for {size}")
    if not {*available} >= {*chosen} >= {*must_include}:
        raise BadMessage("it prefers devices that are not to be had, or leaves out what must be in")
    return chosen
