"""Merges the allocations of a container's plugins into the settings that its runtime is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dovetail.node.common.container_settings import (
    CPUSET_CPUS,
    CPUSET_MEMS,
    INTEGER_PROPERTIES,
    ContainerSettings,
)
from dovetail.node.common.cpus import BadCpuList, CpuSet
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.common.reasons import CONFLICTING_SETTINGS, PLUGIN_GARBAGE, UNKNOWN_PROPERTY
from dovetail.node.state.pod_state import Allocations
from dovetail.node.wire.resource_plugin import ResourceAllocationInfo

V = TypeVar("V")

UNIFIED, HUGEPAGES = "Unified", "HugepageLimits"


class OwnedSettings(dict[str, V]):
    """Settings of one kind, by name, and whose they are."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind
        self._owners: dict[str, str] = {}

    def set(self, name: str, value: V, resource: str) -> None:
        """Raises AdmissionRejected if another resource sets it to something else."""
        owner = self._owners.setdefault(name, resource)
        if self.setdefault(name, value) != value:
            raise AdmissionRejected(
                CONFLICTING_SETTINGS,
                f"{owner} and {resource} set the {self._kind} {name} to different values:"
                f" {self[name]!r} and {value!r}. One of the two plugins must leave it alone",
            )


class SettingsDraft:
    """Settings being put together, allocation by allocation."""

    def __init__(self) -> None:
        self.numbers: OwnedSettings[int] = OwnedSettings("property")
        self.sets: OwnedSettings[str] = OwnedSettings("property")
        self.hugepages: OwnedSettings[int] = OwnedSettings("hugepage limit of")
        self.unified: OwnedSettings[str] = OwnedSettings("cgroup file")
        self.envs: OwnedSettings[str] = OwnedSettings("environment variable")
        self.annotations: OwnedSettings[str] = OwnedSettings("annotation")
        self.mounts: OwnedSettings[Any] = OwnedSettings("mount at")
        self.devices: OwnedSettings[Any] = OwnedSettings("device at")
        self.device_envs: set[str] = set()
        self.cdi_devices: dict[str, None] = {}
        """In order. The runtime merges what they bring along, and refuses what does not fit."""

    def add(self, resource: str, info: ResourceAllocationInfo) -> None:
        if info.oci_property_name and info.allocation_result:
            self._property(resource, info.oci_property_name, info.allocation_result)
        for column, values in ((self.envs, info.envs), (self.annotations, info.annotations)):
            for name, value in sorted(values.items()):
                column.set(name, value, resource)
        if info.device_ids:
            self.device_envs |= info.envs.keys()
        for mount in info.mounts:
            self.mounts.set(mount.container_path, mount, resource)
        for device in info.devices:
            self.devices.set(device.container_path, device, resource)
        self.cdi_devices |= dict.fromkeys(info.cdi_devices)

    def _property(self, resource: str, name: str, result: str) -> None:
        if name in INTEGER_PROPERTIES:
            self.numbers.set(name, _read(_integer, resource, name, result), resource)
        elif name in (CPUSET_CPUS, CPUSET_MEMS):
            self.sets.set(name, _read(_cpus, resource, name, result), resource)
        elif name == UNIFIED:
            for file, text in _read(_texts, resource, name, result).items():
                self.unified.set(file, text, resource)
        elif name == HUGEPAGES:
            for size, limit in _read(_sizes, resource, name, result).items():
                self.hugepages.set(size, limit, resource)
        else:
            known = ", ".join(
                sorted((*INTEGER_PROPERTIES, CPUSET_CPUS, CPUSET_MEMS, UNIFIED, HUGEPAGES))
            )
            raise AdmissionRejected(
                UNKNOWN_PROPERTY,
                f"the plugin of {resource} sets the property {name!r}, which containers do not"
                f" have. There are {known}",
            )

    def settings(self) -> ContainerSettings:
        return ContainerSettings(
            numbers=dict(self.numbers),
            cpus=self.sets.get(CPUSET_CPUS, ""),
            mems=self.sets.get(CPUSET_MEMS, ""),
            hugepages=dict(self.hugepages),
            unified=dict(self.unified),
            envs=dict(self.envs),
            device_envs=tuple(sorted(self.device_envs)),
            annotations=dict(self.annotations),
            mounts=tuple(self.mounts.values()),
            devices=tuple(self.devices.values()),
            cdi_devices=tuple(self.cdi_devices),
        )


def settings_of(allocations: Allocations) -> ContainerSettings:
    """Raises AdmissionRejected if resources contradict each other, or one makes no sense."""
    draft = SettingsDraft()
    for resource in sorted(allocations):
        draft.add(resource, allocations[resource])
    return draft.settings()


def _read(reader: Callable[[str], V], resource: str, name: str, result: str) -> V:
    try:
        return reader(result)
    except (ValueError, BadCpuList) as error:
        words = f"the plugin of {resource} sets {name} to {result!r}: {error}"
        raise AdmissionRejected(PLUGIN_GARBAGE, words) from None


def _integer(text: str) -> int:
    number = int(text) if text.isascii() and len(text) <= 20 and "_" not in text else None
    if number is None or not -(2**63) <= number < 2**63:
        raise ValueError("a decimal integer of 64 bits is expected")
    return number


def _cpus(text: str) -> str:
    """As the kernel writes it, so that equal sets are equal."""
    return str(CpuSet.parse(text))


def _texts(text: str) -> Mapping[str, str]:
    found = _object(text, str, "of texts by cgroup file")
    for name in found:
        # A path would lead out of the container's own cgroup.
        if not name or "/" in name or "\0" in name or name.startswith("."):
            raise ValueError(f"{name!r} is no cgroup file such as io.weight")
    return found


def _sizes(text: str) -> Mapping[str, int]:
    found = _object(text, int, "of bytes by page size")
    if any(isinstance(each, bool) or not 0 <= each < 2**63 for each in found.values()):
        raise ValueError("a JSON object of bytes by page size is expected")
    return found


def _object(text: str, kind: type[V], content: str) -> Mapping[str, V]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(each, kind) for each in found.values()):
        raise ValueError(f"a JSON object {content} is expected")
    return dict(sorted(found.items()))
