"""The options of the kubelet's static CPU policy, here per role, and which exclude each other."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from dovetail.node.topology import Machine


class CpuPolicyOption(StrEnum):
    FULL_PCPUS_ONLY = "full-pcpus-only"
    DISTRIBUTE_CPUS_ACROSS_NUMA = "distribute-cpus-across-numa"
    ALIGN_BY_SOCKET = "align-by-socket"
    STRICT_CPU_RESERVATION = "strict-cpu-reservation"
    PREFER_ALIGN_CPUS_BY_UNCORECACHE = "prefer-align-cpus-by-uncorecache"
    DISTRIBUTE_CPUS_ACROSS_CORES = "distribute-cpus-across-cores"


EXCLUSIVE = (
    (CpuPolicyOption.DISTRIBUTE_CPUS_ACROSS_CORES, CpuPolicyOption.FULL_PCPUS_ONLY),
    (CpuPolicyOption.DISTRIBUTE_CPUS_ACROSS_CORES, CpuPolicyOption.DISTRIBUTE_CPUS_ACROSS_NUMA),
    (
        CpuPolicyOption.DISTRIBUTE_CPUS_ACROSS_CORES,
        CpuPolicyOption.PREFER_ALIGN_CPUS_BY_UNCORECACHE,
    ),
    (CpuPolicyOption.PREFER_ALIGN_CPUS_BY_UNCORECACHE, CpuPolicyOption.DISTRIBUTE_CPUS_ACROSS_NUMA),
)


def conflict(options: Collection[CpuPolicyOption], *, single_numa: bool) -> str | None:
    """Why these cannot be had together, on whatever machine; nothing if they can."""
    for one, other in EXCLUSIVE:
        if one in options and other in options:
            return f"{one} and {other} exclude each other: leave out one"
    if CpuPolicyOption.ALIGN_BY_SOCKET in options and single_numa:
        return (
            f'{CpuPolicyOption.ALIGN_BY_SOCKET} means nothing with numa = "single": leave out one'
        )
    return None


def unsuited(options: Collection[CpuPolicyOption], machine: Machine) -> str | None:
    """Why these do not suit the machine; nothing if they do."""
    sockets = len(machine.by_socket)
    nodes = sum(1 for cpus in machine.by_numa.values() if cpus)
    if CpuPolicyOption.ALIGN_BY_SOCKET in options and sockets > nodes:
        return (
            f"{CpuPolicyOption.ALIGN_BY_SOCKET} needs NUMA nodes within sockets; "
            f"this machine has {sockets} sockets on {nodes} nodes"
        )
    return None
