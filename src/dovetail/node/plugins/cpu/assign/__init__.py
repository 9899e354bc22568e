"""The CPU assignment of the kubelet's static policy: which CPUs a container gets. Pure.

The CPU plugin's state asks it. Two orders, as in the kubelet: packed (`packed`, its topology-first
accumulator) and distributed over NUMA nodes (`distributed`); the policy options choose between
them and narrow what may be given. CPUs near to the hinted nodes go first, then others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dovetail.node.common.cpus import CpuSet
from dovetail.node.plugins.common.cpu_policy_options import CpuPolicyOption
from dovetail.node.plugins.cpu.assign.distributed import take_distributed
from dovetail.node.plugins.cpu.assign.packed import NotEnough, take_packed
from dovetail.node.topology import Machine

__all__ = ["CpuPolicyOption", "NotEnough", "aligned", "choose", "usable"]


def usable(machine: Machine, free: CpuSet, options: Collection[CpuPolicyOption]) -> CpuSet:
    """Those of the free CPUs that may be given. Other roles may have left halves of cores."""
    if CpuPolicyOption.FULL_PCPUS_ONLY not in options:
        return free
    # One with a thread that is offline would have another core split to make up for it.
    return CpuSet(
        each
        for each in machine.whole_cores(free)
        if len(machine.by_core[machine.cpu(each).core]) == machine.threads_per_core
    )


def aligned(machine: Machine, nodes: Iterable[int], options: Collection[CpuPolicyOption]) -> CpuSet:
    """The CPUs that count as near to these NUMA nodes."""
    near = machine.in_nodes(nodes)
    if CpuPolicyOption.ALIGN_BY_SOCKET not in options:
        return near
    sockets = {machine.cpu(each).socket for each in near}
    return CpuSet(cpu.id for cpu in machine.cpus if cpu.socket in sockets)


def choose(
    machine: Machine,
    free: CpuSet,
    wanted: int,
    options: Collection[CpuPolicyOption] = (),
    nodes: Iterable[int] | None = None,
) -> CpuSet:
    """As many CPUs as wanted: near to the nodes as far as these go, then elsewhere."""
    free = usable(machine, free, options)
    near = free & aligned(machine, nodes, options) if nodes is not None else CpuSet()
    first = _take(machine, near, min(wanted, len(near)), options)
    return first | _take(machine, free - first, wanted - len(first), options)


def _take(
    machine: Machine, free: CpuSet, wanted: int, options: Collection[CpuPolicyOption]
) -> CpuSet:
    spread = CpuPolicyOption.DISTRIBUTE_CPUS_ACROSS_CORES in options
    if CpuPolicyOption.DISTRIBUTE_CPUS_ACROSS_NUMA in options:
        group = machine.threads_per_core if CpuPolicyOption.FULL_PCPUS_ONLY in options else 1
        return take_distributed(machine, free, wanted, group)
    by_uncore = CpuPolicyOption.PREFER_ALIGN_CPUS_BY_UNCORECACHE in options
    return take_packed(machine, free, wanted, spread=spread, by_uncore=by_uncore)
