"""The packed order, the kubelet's accumulator: whole NUMA nodes, sockets, caches, cores, threads.

At every level a group is taken only if all of it is free and still needed. Groups with fewer free
CPUs come first, so that what is broken already is used up; ties go to the lower number. The order
is nested: the groups of the first parent come before those of the second. Greedy and without
backtracking: each level passes once over its groups, and the threads fill whatever is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dovetail.core.errors import DovetailError
from dovetail.node.common.cpus import CpuSet
from dovetail.node.topology import Machine


class NotEnough(DovetailError):
    def __init__(self, wanted: int, free: CpuSet) -> None:
        super().__init__(f"{wanted} CPUs are wanted, {len(free)} are free ({free})")


Groups = Mapping[int, CpuSet]


def take_packed(
    machine: Machine, free: CpuSet, wanted: int, *, spread: bool = False, by_uncore: bool = False
) -> CpuSet:
    """`spread`: over cores, rather than whole ones; `by_uncore`: whole caches before cores."""
    if wanted > len(free):
        raise NotEnough(wanted, free)
    taking = CpuAccumulator(machine, free, wanted)
    taking.whole(taking.outer, taking.outer_order())
    taking.whole(taking.inner, taking.inner_order())
    if by_uncore:
        taking.caches()
    if spread:
        taking.threads(taking.spread_order())
    else:
        taking.whole(machine.by_core, taking.core_order())
        taking.threads(taking.packed_order())
    return taking.taken


def take_whole_cores(
    machine: Machine, free: CpuSet, wanted: int, *, by_uncore: bool = False
) -> CpuSet:
    """No core is split: those with most threads first, others for what is left then.

    `free` are whole cores, and `wanted` is a multiple of the threads of the largest: so what larger
    cores leave is a multiple of each smaller size, as long as sizes divide each other.
    """
    taken = CpuSet()
    by_size: dict[int, set[int]] = {}
    for each in free:
        by_size.setdefault(len(machine.by_core[machine.cpu(each).core]), set()).add(each)
    for size in sorted(by_size, reverse=True):
        part = min(wanted - len(taken), len(by_size[size]))
        part -= part % size
        taken |= take_packed(machine, CpuSet(by_size[size]), part, by_uncore=by_uncore)
    if len(taken) < wanted:
        raise NotEnough(wanted, free)
    return taken


def numa_order(machine: Machine, free: CpuSet) -> list[int]:
    """The nodes that have free CPUs, in the order in which they are used."""
    return CpuAccumulator(machine, free, 0).numa_order()


class CpuAccumulator:
    """What is free, what is taken so far, and how many are still wanted."""

    def __init__(self, machine: Machine, free: CpuSet, wanted: int) -> None:
        self.machine, self.free, self.wanted = machine, free, wanted
        self.taken = CpuSet()
        numa = {node: cpus for node, cpus in machine.by_numa.items() if cpus}
        # Whichever is larger comes first; if they are the same, NUMA nodes do.
        self.numa_outside = len(machine.by_socket) >= len(numa)
        self.outer: Groups = numa if self.numa_outside else machine.by_socket
        self.inner: Groups = machine.by_socket if self.numa_outside else numa

    def take(self, cpus: CpuSet) -> None:
        self.taken |= cpus
        self.free -= cpus
        self.wanted -= len(cpus)

    def whole(self, groups: Groups, order: Iterable[int]) -> None:
        for each in order:
            if groups[each] <= self.free and len(groups[each]) <= self.wanted:
                self.take(groups[each])

    def threads(self, order: Iterable[int]) -> None:
        self.take(CpuSet([*order][: self.wanted]))

    def caches(self) -> None:
        """Whole caches as long as that many are wanted; the rest from one cache, if it fits."""
        caches = self.machine.by_uncore
        size = len(self.machine.cpus) // len(caches)
        for each in self.uncore_order():
            if self.wanted >= size:
                self.whole(caches, self.uncore_order())
            self.part_of(caches[each])
            if not self.wanted:
                return

    def part_of(self, cache: CpuSet) -> None:
        """All that is wanted from its lowest cores, if these are as free as it takes.

        An odd number takes the cores of the next even one, and leaves the highest of their threads.
        """
        cores = sorted(self.machine.cores_of(cache & self.free))
        threads = self.machine.threads_per_core
        enough = cores[: -(-self.wanted // threads)]
        found = sorted(cpu for core in enough for cpu in self.machine.by_core[core] & self.free)
        if threads > 1 and self.wanted % 2 and len(found) > self.wanted:
            found.pop()
        if len(found) == self.wanted:
            self.take(CpuSet(found))

    def ranked(self, groups: Groups, within: CpuSet) -> list[int]:
        """The groups that have free CPUs in there, those with the fewest first."""
        free = {each: cpus & self.free for each, cpus in groups.items() if cpus & within}
        return sorted(
            (each for each, cpus in free.items() if cpus & within),
            key=lambda each: (len(free[each]), each),
        )

    def outer_order(self) -> list[int]:
        return self.ranked(self.outer, self.free)

    def inner_order(self) -> list[int]:
        return [
            each
            for parent in self.outer_order()
            for each in self.ranked(self.inner, self.outer[parent])
        ]

    def numa_order(self) -> list[int]:
        return self.outer_order() if self.numa_outside else self.inner_order()

    def socket_order(self) -> list[int]:
        return self.inner_order() if self.numa_outside else self.outer_order()

    def uncore_order(self) -> list[int]:
        numa, caches = self.machine.by_numa, self.machine.by_uncore
        return [each for node in self.numa_order() for each in self.ranked(caches, numa[node])]

    def core_order(self) -> list[int]:
        cores = self.machine.by_core
        return [
            each for parent in self.inner_order() for each in self.ranked(cores, self.inner[parent])
        ]

    def packed_order(self) -> list[int]:
        cores = self.machine.by_core
        return [cpu for core in self.core_order() for cpu in sorted(cores[core] & self.free)]

    def spread_order(self) -> list[int]:
        """Ascending in each socket: on most machines siblings are numbered far apart."""
        sockets = self.machine.by_socket
        return [cpu for each in self.socket_order() for cpu in sorted(sockets[each] & self.free)]
