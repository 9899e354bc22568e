"""Writes settings into NRI messages and reads them back; the event handlers call it. Pure.

The rules are those of `injection`: resources of ours win, and what the container has of its own
environment, annotations, mounts and devices stays. Here that includes what comes from its image,
but for variables that say which devices the container has: images for GPUs come with one that says
"all", and nobody tells whether a variable is the image's or the pod's.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.cri.injection import has_resources, normal
from dovetail.node.wire import nri

Devices = Mapping[str, nri.LinuxDevice]
"""By path on the host: what kind of device it is, and its numbers."""


def adjustment(
    container: nri.Container, settings: ContainerSettings, devices: Devices
) -> nri.ContainerAdjustment:
    """Of a container that is about to be created."""
    environment = {each.partition("=")[0] for each in container.env}
    mounted = {each.destination for each in container.mounts}
    there = {each.path for each in container.linux.devices}
    oom = settings.numbers.get("OomScoreAdj")
    return nri.ContainerAdjustment(
        annotations={
            key: value
            for key, value in settings.annotations.items()
            if key not in container.annotations
        },
        mounts=tuple(
            nri.Mount(
                destination=each.container_path,
                type="bind",
                source=each.host_path,
                options=("rbind", "rprivate", "ro" if each.read_only else "rw"),
            )
            for each in settings.mounts
            if each.container_path not in mounted
        ),
        env=tuple(
            nri.KeyValue(key=key, value=value)
            for key, value in sorted(settings.envs.items())
            if key not in environment or key in settings.device_envs
        ),
        linux=nri.LinuxContainerAdjustment(
            devices=tuple(
                _renamed(devices[each.host_path], each.container_path)
                for each in settings.devices
                if each.container_path not in there
            ),
            resources=resources(settings),
            oom_score_adj=None if oom is None else nri.OptionalInt(value=oom),
        ),
        CDI_devices=tuple(nri.CDIDevice(name=name) for name in settings.cdi_devices),
    )


def update(id_: str, settings: ContainerSettings) -> nri.ContainerUpdate:
    return nri.ContainerUpdate(
        container_id=id_, linux=nri.LinuxContainerUpdate(resources=resources(settings))
    )


def resources(settings: ContainerSettings) -> nri.LinuxResources | None:
    """Of the score for running out of memory there is nothing: it is no property of a cgroup."""
    if not has_resources(settings):
        return None

    def number(name: str) -> nri.OptionalInt | None:
        found = settings.numbers.get(name)
        return None if found is None else nri.OptionalInt(value=found)

    return nri.LinuxResources(
        memory=nri.LinuxMemory(
            limit=number("MemoryLimitInBytes"), swap=number("MemorySwapLimitInBytes")
        ),
        cpu=nri.LinuxCPU(
            shares=number("CpuShares"),
            quota=number("CpuQuota"),
            period=number("CpuPeriod"),
            cpus=settings.cpus,
            mems=settings.mems,
        ),
        hugepage_limits=tuple(
            nri.HugepageLimit(page_size=size, limit=limit)
            for size, limit in sorted(settings.hugepages.items())
        ),
        unified=dict(settings.unified),
    )


def read_back(container: nri.Container) -> ContainerSettings:
    """What the runtime was told to give it."""
    oom = container.linux.oom_score_adj
    found = settings_of(container.linux.resources)
    if not (oom and oom.value):
        return found
    return replace(found, numbers={**found.numbers, "OomScoreAdj": oom.value})


def settings_of(resources: nri.LinuxResources | None) -> ContainerSettings:
    found = resources or nri.LinuxResources()
    cpu, memory = found.cpu or nri.LinuxCPU(), found.memory or nri.LinuxMemory()
    said = {
        "CpuPeriod": cpu.period,
        "CpuQuota": cpu.quota,
        "CpuShares": cpu.shares,
        "MemoryLimitInBytes": memory.limit,
        "MemorySwapLimitInBytes": memory.swap,
    }
    return ContainerSettings(
        numbers={name: number.value for name, number in said.items() if number and number.value},
        cpus=normal(cpu.cpus),
        mems=normal(cpu.mems),
        hugepages={each.page_size: each.limit for each in found.hugepage_limits},
        unified=found.unified,
    )


def _renamed(device: nri.LinuxDevice, path: str) -> nri.LinuxDevice:
    return nri.LinuxDevice(path=path, type=device.type, major=device.major, minor=device.minor)
