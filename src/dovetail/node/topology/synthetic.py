"""Machines that do not exist, to try things on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dovetail.node.common.cpus import CpuSet
from dovetail.node.topology.machine import Cpu, Hugepages, Machine, Nic, NumaNode

HERE, SAME_SOCKET, OTHER_SOCKET = 10, 12, 21

GIB = 2**30


def synthetic(
    sockets: int = 2,
    numa_per_socket: int = 1,
    cores: int = 20,
    threads: int = 2,
    memory: int = 64 * GIB,
    *,
    adjacent_siblings: bool = True,
    uncores: int = 1,
    hugepages: Mapping[int, Hugepages] | None = None,
    nics: Iterable[Nic] = (),
    isolated: CpuSet = CpuSet(),  # noqa: B008 - immutable
) -> Machine:
    """A regular machine: `cores`, `uncores` and `memory` are of each NUMA node.

    By default 80 CPUs on two nodes, 0-39 and 40-79. With siblings that are adjacent, CPUs 0 and 1
    share a core; otherwise all cores are counted first, as most real machines do, and 0 shares
    with 40.
    """
    nodes = sockets * numa_per_socket
    physical = nodes * cores

    def threads_of(core: int) -> Sequence[int]:
        first, step = (core * threads, 1) if adjacent_siblings else (core, physical)
        return [first + each * step for each in range(threads)]

    def cpu(core: int, at: int) -> Cpu:
        node = core // cores
        # Cores of a node are dealt to its caches in runs; those at the end may get fewer.
        share = -(-cores // uncores)
        leader = node * cores + core % cores // share * share
        return Cpu(
            id=at,
            core=threads_of(core)[0],
            socket=node // numa_per_socket,
            numa=node,
            l2=threads_of(core)[0],
            l3=threads_of(leader)[0],
        )

    cpus = [cpu(core, at) for core in range(physical) for at in threads_of(core)]
    return Machine(
        cpus=tuple(sorted(cpus, key=lambda each: each.id)),
        nodes=tuple(
            NumaNode(
                id=node,
                cpus=CpuSet(each.id for each in cpus if each.numa == node),
                memory=memory,
                hugepages=dict(sorted((hugepages or {}).items())),
                distances={
                    other: _distance(node, other, numa_per_socket) for other in range(nodes)
                },
            )
            for node in range(nodes)
        ),
        nics=tuple(sorted(nics, key=lambda each: each.name)),
        isolated=isolated,
    )


def _distance(one: int, other: int, per_socket: int) -> int:
    if one == other:
        return HERE
    return SAME_SOCKET if one // per_socket == other // per_socket else OTHER_SOCKET
