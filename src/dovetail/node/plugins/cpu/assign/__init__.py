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
from dovetail.node.plugins.cpu.assign.packed import NotEnough, take_packed, take_whole_cores
from dovetail.node.topology import Machine

__all__ = ["CpuPolicyOption", "NotEnough", "aligned", "choose", "usable"]


def usable(machine: Machine, free: CpuSet, options: Collection[CpuPolicyOption]) -> CpuSet:
    """Those of the free CPUs that may be given. Other roles may have left halves of cores."""
    if CpuPolicyOption.FULL_PCPUS_ONLY not in options:
        return free
    threads = threads_of_kinds(machine)
    # One with a thread that is offline is no whole core: that may come back.
    return CpuSet(
        each
        for each in machine.whole_cores(free)
        if len(machine.by_core[machine.cpu(each).core]) == threads[machine.cpu(each).kind]
    )


def threads_of_kinds(machine: Machine) -> dict[str, int]:
    """How many threads a core of each kind has: hybrid CPUs have cores of two and of one."""
    found: dict[str, int] = {}
    for core, cpus in machine.by_core.items():
        kind = machine.cpu(core).kind
        found[kind] = max(len(cpus), found.get(kind, 0))
    return found


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
    part = min(wanted, len(near))
    if CpuPolicyOption.FULL_PCPUS_ONLY in options:
        part -= part % machine.threads_per_core
    first = _take(machine, near, part, options)
    return first | _take(machine, free - first, wanted - len(first), options)


def _take(
    machine: Machine, free: CpuSet, wanted: int, options: Collection[CpuPolicyOption]
) -> CpuSet:
    whole = CpuPolicyOption.FULL_PCPUS_ONLY in options and wanted % machine.threads_per_core == 0
    if CpuPolicyOption.DISTRIBUTE_CPUS_ACROSS_NUMA in options:
        return take_distributed(
            machine,
            free,
            wanted,
            machine.threads_per_core if CpuPolicyOption.FULL_PCPUS_ONLY in options else 1,
            by_socket=CpuPolicyOption.ALIGN_BY_SOCKET in options,
            take=take_whole_cores if whole else take_packed,
        )
    by_uncore = CpuPolicyOption.PREFER_ALIGN_CPUS_BY_UNCORECACHE in options
    if whole:
        return take_whole_cores(machine, free, wanted, by_uncore=by_uncore)
    spread = CpuPolicyOption.DISTRIBUTE_CPUS_ACROSS_CORES in options
    return take_packed(machine, free, wanted, spread=spread, by_uncore=by_uncore)
