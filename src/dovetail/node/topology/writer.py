"""Writes a machine as the kernel would show it, for programs that take a root directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv6Address, ip_address
from pathlib import Path

from dovetail.node.common.cpus import CpuSet
from dovetail.node.topology.machine import Cpu, Machine, Nic, NumaNode

Files = Iterator[tuple[str, object]]
"""What is in them, by path below the root."""

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"


def write(machine: Machine, root: Path) -> Path:
    """Below `root`, as sys and proc; returns the former. IPv4 addresses have no file."""
    for parts in (_cpus(machine), _nodes(machine), _nics(machine), _proc(machine)):
        for path, content in parts:
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{content}\n", encoding="utf-8")
    return root / "sys"


def bitmap(cpus: CpuSet, width: int) -> str:
    """For so many CPUs: hexadecimal words of 32 bits, the highest first."""
    words = [cpus.mask >> at & 0xFFFFFFFF for at in range(0, width, 32)]
    return ",".join(f"{word:08x}" for word in reversed(words))


def _cpus(machine: Machine) -> Files:
    present = machine.online | machine.offline
    yield f"{CPU}/online", machine.online
    yield f"{CPU}/present", present
    yield f"{CPU}/possible", present
    yield f"{CPU}/isolated", machine.isolated
    for at in sorted(machine.offline):
        yield f"{CPU}/cpu{at}/online", 0
    width = max(present) + 1
    l2, l3 = (_sharing(machine, level) for level in ("l2", "l3"))
    for cpu in machine.cpus:
        yield f"{CPU}/cpu{cpu.id}/online", 1
        yield from _topology(machine, cpu, width)
        core = machine.by_core[cpu.core]
        shared = [(1, "Data", core), (1, "Instruction", core)]
        shared += [(2, "Unified", l2[cpu.l2])] if cpu.l2 is not None else []
        shared += [(3, "Unified", l3[cpu.l3])] if cpu.l3 is not None else []
        for index, (level, kind, cpus) in enumerate(shared):
            yield from _cache(f"{CPU}/cpu{cpu.id}/cache/index{index}", level, kind, cpus, width)
    kinds = {cpu.kind for cpu in machine.cpus if cpu.kind}
    for kind in sorted(kinds):
        yield (
            f"sys/devices/cpu_{kind}/cpus",
            CpuSet(cpu.id for cpu in machine.cpus if cpu.kind == kind),
        )


def _sharing(machine: Machine, level: str) -> Mapping[int, CpuSet]:
    found: dict[int, set[int]] = {}
    for cpu in machine.cpus:
        found.setdefault(getattr(cpu, level), set()).add(cpu.id)
    return {lowest: CpuSet(cpus) for lowest, cpus in found.items()}


def _topology(machine: Machine, cpu: Cpu, width: int) -> Files:
    directory = f"{CPU}/cpu{cpu.id}/topology"
    yield f"{directory}/physical_package_id", cpu.socket
    yield f"{directory}/die_id", 0
    yield f"{directory}/core_id", cpu.core
    sets = {"core": machine.by_core[cpu.core], "package": machine.by_socket[cpu.socket]}
    old = {"core": "thread_siblings", "package": "core_siblings"}
    for what, cpus in sets.items():
        for name in (f"{what}_cpus", old[what]):
            yield f"{directory}/{name}", bitmap(cpus, width)
            yield f"{directory}/{name}_list", cpus
    if cpu.capacity is not None:
        yield f"{CPU}/cpu{cpu.id}/cpu_capacity", cpu.capacity


def _cache(directory: str, level: int, kind: str, cpus: CpuSet, width: int) -> Files:
    sizes = {1: 32, 2: 1024, 3: 32768}
    yield f"{directory}/level", level
    yield f"{directory}/type", kind
    yield f"{directory}/size", f"{sizes[level]}K"
    yield f"{directory}/coherency_line_size", 64
    yield f"{directory}/shared_cpu_map", bitmap(cpus, width)
    yield f"{directory}/shared_cpu_list", cpus


def _nodes(machine: Machine) -> Files:
    width = max(machine.online | machine.offline) + 1
    yield f"{NODE}/online", machine.node_ids
    yield f"{NODE}/possible", machine.node_ids
    yield f"{NODE}/has_cpu", CpuSet(node.id for node in machine.nodes if node.cpus)
    yield f"{NODE}/has_memory", CpuSet(node.id for node in machine.nodes if node.memory)
    for node in machine.nodes:
        yield from _node(node, width)


def _node(node: NumaNode, width: int) -> Files:
    directory = f"{NODE}/node{node.id}"
    yield f"{directory}/cpulist", node.cpus
    yield f"{directory}/cpumap", bitmap(node.cpus, width)
    yield f"{directory}/distance", " ".join(map(str, node.distances.values()))
    yield f"{directory}/meminfo", f"Node {node.id} MemTotal: {node.memory >> 10} kB"
    for size, pages in node.hugepages.items():
        below = f"{directory}/hugepages/hugepages-{size >> 10}kB"
        yield f"{below}/nr_hugepages", pages.total
        yield f"{below}/free_hugepages", pages.free


def _nics(machine: Machine) -> Files:
    for nic in machine.nics:
        directory = f"sys/class/net/{nic.name}"
        yield f"{directory}/device/numa_node", -1 if nic.numa is None else nic.numa
        yield f"{directory}/speed", -1 if nic.speed is None else nic.speed
        yield f"{directory}/address", nic.mac


def _proc(machine: Machine) -> Files:
    yield "proc/meminfo", f"MemTotal: {machine.memory >> 10} kB"
    # A model, for lscpu ignores the topology of CPUs without.
    lines = [f"processor\t: {cpu.id}\nmodel name\t: synthetic\n" for cpu in machine.cpus]
    yield "proc/cpuinfo", "\n".join(lines)
    lines = [line for at, nic in enumerate(machine.nics, 2) for line in _v6(at, nic)]
    yield "proc/net/if_inet6", "\n".join(lines)


def _v6(index: int, nic: Nic) -> Iterator[str]:
    for address in map(ip_address, nic.addresses):
        if isinstance(address, IPv6Address):
            scope = 0x20 if address.is_link_local else 0
            yield f"{address.packed.hex()} {index:02x} 40 {scope:02x} 80 {nic.name:>8}"
