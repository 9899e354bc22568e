"""A machine: its CPUs and how they share cores, caches, sockets and memory; its NICs.

Pure values. Cores and caches have no numbers that are unique on a machine, so each is known by the
lowest of its CPUs. CPUs that are offline take no part: the kernel does not tell where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import chain

import msgspec

from dovetail.core.errors import DovetailError
from dovetail.node.common.cpus import CpuSet


class NotThere(DovetailError):
    """A CPU or NUMA node that the machine does not have."""


class Cpu(msgspec.Struct, frozen=True, kw_only=True):
    """A hardware thread that is online."""

    id: int
    core: int
    """The lowest CPU of its core."""
    socket: int
    """As the kernel numbers it."""
    numa: int
    l2: int | None = None
    """The lowest CPU that shares this cache; nothing if the kernel tells of none."""
    l3: int | None = None
    kind: str = ""
    """Of a hybrid machine, what the kernel calls this type of core, such as core or atom."""
    capacity: int | None = None
    """Relative to the fastest CPU, which has 1024, where the kernel tells."""


class Hugepages(msgspec.Struct, frozen=True):
    """Pages of one size."""

    total: int
    free: int


class NumaNode(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    cpus: CpuSet = CpuSet()
    """Those online; a node may have none."""
    memory: int = 0
    """Bytes; a node may have none."""
    hugepages: Mapping[int, Hugepages] = {}
    """By size of a page in bytes."""
    distances: Mapping[int, int] = {}
    """To every node of the machine, itself included."""


class Nic(msgspec.Struct, frozen=True, kw_only=True):
    """A network interface that is hardware (bridges, bonds and the like are not)."""

    name: str
    numa: int | None = None
    """Nothing if the kernel does not tell."""
    speed: int | None = None
    """Mb/s; nothing if unknown, as it is without a link."""
    mac: str = ""
    addresses: tuple[str, ...] = ()
    """Without prefix lengths: IPv6 (those that are link-local last), then IPv4."""
    netns: str = ""
    """The path of its network namespace; the host's if empty."""


class Machine(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Every tuple is in the order of ids or names."""

    cpus: tuple[Cpu, ...]
    nodes: tuple[NumaNode, ...]
    nics: tuple[Nic, ...] = ()
    offline: CpuSet = CpuSet()
    isolated: CpuSet = CpuSet()
    """Kept from the scheduler by the kernel's command line."""

    @cached_property
    def online(self) -> CpuSet:
        return CpuSet(cpu.id for cpu in self.cpus)

    @cached_property
    def node_ids(self) -> CpuSet:
        return CpuSet(node.id for node in self.nodes)

    @cached_property
    def by_numa(self) -> Mapping[int, CpuSet]:
        """Of nodes without CPUs, too."""
        return {node.id: node.cpus for node in self.nodes}

    @cached_property
    def by_socket(self) -> Mapping[int, CpuSet]:
        return self.grouped(lambda cpu: cpu.socket)

    @cached_property
    def by_core(self) -> Mapping[int, CpuSet]:
        return self.grouped(lambda cpu: cpu.core)

    @cached_property
    def by_uncore(self) -> Mapping[int, CpuSet]:
        """By last level cache (L3). CPUs without one share that of their part of a NUMA node."""
        lowest = {
            (cpu.numa, cpu.socket): cpu.id
            for cpu in reversed(self.cpus)  # So that the lowest stays.
        }
        return self.grouped(lambda cpu: lowest[cpu.numa, cpu.socket] if cpu.l3 is None else cpu.l3)

    @cached_property
    def threads_per_core(self) -> int:
        """Of the core that has most."""
        return max(map(len, self.by_core.values()))

    @cached_property
    def distances(self) -> Mapping[int, Mapping[int, int]]:
        return {node.id: node.distances for node in self.nodes}

    @cached_property
    def memory(self) -> int:
        return sum(node.memory for node in self.nodes)

    def cpu(self, id_: int) -> Cpu:
        if id_ not in self._cpus:
            raise NotThere(f"there is no CPU {id_} online; online are {self.online}")
        return self._cpus[id_]

    def node(self, id_: int) -> NumaNode:
        if id_ not in self._nodes:
            raise NotThere(f"there is no NUMA node {id_}; there are {self.node_ids}")
        return self._nodes[id_]

    def in_nodes(self, nodes: Iterable[int]) -> CpuSet:
        """The CPUs of these NUMA nodes."""
        return CpuSet(chain.from_iterable(self.node(each).cpus for each in nodes))

    def nodes_of(self, cpus: Iterable[int]) -> CpuSet:
        """The NUMA nodes that these CPUs are on."""
        return CpuSet(self.cpu(each).numa for each in cpus)

    def sockets_of(self, nodes: Iterable[int]) -> CpuSet:
        """The sockets that these NUMA nodes have CPUs of."""
        return CpuSet(self.cpu(each).socket for each in self.in_nodes(nodes))

    def cores_of(self, cpus: Iterable[int]) -> CpuSet:
        """The cores that these CPUs are threads of."""
        return CpuSet(self.cpu(each).core for each in cpus)

    def whole_cores(self, cpus: CpuSet) -> CpuSet:
        """Those of the CPUs whose siblings are all among them."""
        return CpuSet(each for each in cpus if self.by_core[self.cpu(each).core] <= cpus)

    def grouped(self, key: Callable[[Cpu], int]) -> Mapping[int, CpuSet]:
        """All CPUs by what the key tells of each, in ascending order of keys."""
        found: dict[int, set[int]] = {}
        for cpu in self.cpus:
            found.setdefault(key(cpu), set()).add(cpu.id)
        return {each: CpuSet(found[each]) for each in sorted(found)}

    @cached_property
    def _cpus(self) -> Mapping[int, Cpu]:
        return {cpu.id: cpu for cpu in self.cpus}

    @cached_property
    def _nodes(self) -> Mapping[int, NumaNode]:
        return {node.id: node for node in self.nodes}
