"""Writes settings into CRI messages and reads them back; proxy and client call it. Pure.

Resources: ours win, over what the kubelet worked out itself, now and not only at the next
reconcile. Environment, annotations and mounts: what the pod says itself stays, ours are added; who
wrote a pod knows what it is for, and the kubelet lets the pod's own values win, too. Devices no pod
writes: where the kubelet has put another one, the container is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.cpus import BadCpuList, CpuSet
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.common.reasons import CONFLICTING_SETTINGS
from dovetail.node.wire import cri

FIELDS = {
    "CpuPeriod": "cpu_period",
    "CpuQuota": "cpu_quota",
    "CpuShares": "cpu_shares",
    "MemoryLimitInBytes": "memory_limit_in_bytes",
    "OomScoreAdj": "oom_score_adj",
    "MemorySwapLimitInBytes": "memory_swap_limit_in_bytes",
}
"""Of LinuxContainerResources, by their Go names."""


def has_resources(settings: ContainerSettings) -> bool:
    """Whether there is anything that can be set while a container runs."""
    return bool(
        settings.numbers or settings.cpus or settings.mems or settings.hugepages or settings.unified
    )


def inject(request: Any, settings: ContainerSettings) -> None:
    """Into the library's form of a CreateContainerRequest. Raises AdmissionRejected."""
    config = request.config
    if has_resources(settings):
        put_resources(config.linux.resources, settings)
    _add_entries(config.annotations, settings.annotations)
    for key, value in _missing(settings.envs.items(), {each.key for each in config.envs}):
        config.envs.add(key=key, value=value.encode())
    taken = {each.container_path for each in config.mounts}
    for mount in settings.mounts:
        if mount.container_path not in taken:
            config.mounts.add(
                container_path=mount.container_path,
                host_path=mount.host_path,
                readonly=mount.read_only,
            )
    there = {each.container_path: each.host_path for each in config.devices}
    for device in settings.devices:
        # A pod does not write devices: the kubelet has these of a device plugin.
        if there.get(device.container_path, device.host_path) != device.host_path:
            words = (
                f"the container is given {device.host_path} at {device.container_path}, and there "
                f"it has {there[device.container_path]} of the kubelet: it cannot have both"
            )
            raise AdmissionRejected(CONFLICTING_SETTINGS, words)
        if device.container_path not in there:
            config.devices.add(
                container_path=device.container_path,
                host_path=device.host_path,
                permissions=device.permissions,
            )
    taken = {each.name for each in config.CDI_devices}
    for name in settings.cdi_devices:
        if name not in taken:
            config.CDI_devices.add(name=name)


def put_resources(resources: Any, settings: ContainerSettings) -> None:
    """Into the library's form of LinuxContainerResources; what settings leave open stays."""
    for name, number in settings.numbers.items():
        setattr(resources, FIELDS[name], number)
    if settings.cpus:
        resources.cpuset_cpus = settings.cpus
    if settings.mems:
        resources.cpuset_mems = settings.mems
    _without(resources.hugepage_limits, "page_size", settings.hugepages)
    for size in sorted(settings.hugepages):
        resources.hugepage_limits.add(page_size=size, limit=settings.hugepages[size])
    _without(resources.unified, "key", settings.unified)
    _add_entries(resources.unified, settings.unified)


def read_back(resources: cri.LinuxContainerResources) -> ContainerSettings:
    """What the runtime says is in force; a zero there means that it does not say."""
    return ContainerSettings(
        numbers={
            name: number for name, field in FIELDS.items() if (number := getattr(resources, field))
        },
        cpus=normal(resources.cpuset_cpus),
        mems=normal(resources.cpuset_mems),
        hugepages={each.page_size: each.limit for each in resources.hugepage_limits},
        unified=resources.unified,
    )


def normal(cpus: str) -> str:
    """As the kernel writes it, so that equal sets are equal text."""
    try:
        return str(CpuSet.parse(cpus))
    except BadCpuList:
        return cpus


def _add_entries(entries: Any, ours: Mapping[str, str]) -> None:
    for key, value in _missing(ours.items(), {each.key for each in entries}):
        entries.add(key=key, value=value)


def _missing(ours: Iterable[tuple[str, str]], taken: set[str]) -> list[tuple[str, str]]:
    return [(key, value) for key, value in sorted(ours) if key not in taken]


def _without(repeated: Any, name: str, ours: Mapping[str, object]) -> None:
    """Remove the items that ours replace."""
    kept = [each for each in repeated if getattr(each, name) not in ours]
    if len(kept) < len(repeated):
        del repeated[:]
        repeated.extend(kept)
