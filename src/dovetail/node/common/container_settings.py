"""Settings of a container in the terms of a runtime: what its plugins together give it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dovetail.node.wire.resource_plugin import DeviceSpec, Mount


class ContainerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Empty fields are left as they are."""

    numbers: Mapping[str, int] = {}
    """Properties of LinuxContainerResources that are integers, by their Go names, as CpuShares."""
    cpus: str = ""
    mems: str = ""
    """CpusetCpus and CpusetMems, as the kernel writes them."""
    hugepages: Mapping[str, int] = {}
    """Bytes by page size, as 2MB."""
    unified: Mapping[str, str] = {}
    """By file of cgroup v2."""
    envs: Mapping[str, str] = {}
    device_envs: tuple[str, ...] = ()
    """Names of those that say which devices are the container's: an image has no say in them."""
    annotations: Mapping[str, str] = {}
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceSpec, ...] = ()
    cdi_devices: tuple[str, ...] = ()
    """By their full names, as vendor.com/gpu=0."""


CPUSET_CPUS, CPUSET_MEMS = "CpusetCpus", "CpusetMems"

INTEGER_PROPERTIES = (
    "CpuPeriod",
    "CpuQuota",
    "CpuShares",
    "MemoryLimitInBytes",
    "OomScoreAdj",
    "MemorySwapLimitInBytes",
)
"""Names of properties of LinuxContainerResources, as plugins write them."""
