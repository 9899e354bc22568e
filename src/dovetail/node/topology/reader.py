"""Reads a machine from a sysfs: the running one's, or a copy of another's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dovetail.node.common.cpus import CpuSet
from dovetail.node.topology import network, numa
from dovetail.node.topology.machine import Cpu, Machine, NumaNode
from dovetail.node.topology.sysfs import BadSysfs, children, cpu_list, cpu_set, number, numbered

SYSFS = Path("/sys")


def read(
    root: Path = SYSFS,
    *,
    proc: Path | None = None,
    memory: Mapping[int, int] | None = None,
    addresses: Mapping[str, Sequence[str]] | None = None,
) -> Machine:
    """The machine of the sysfs at `root`; raises BadSysfs.

    `proc` is what belongs to it, beside it by default. `memory` in bytes by NUMA node is believed
    rather than the kernel, `addresses` by NIC likewise.
    """
    proc = root.parent / "proc" if proc is None else proc
    system = root / "devices/system/cpu"
    online = _online(root, system)
    nodes = numa.read(root, proc, online, memory or {})
    present = cpu_list(system / "present") or CpuSet(at for at, _ in numbered(system, "cpu"))
    return Machine(
        cpus=_cpus(root, online, nodes),
        nodes=nodes,
        nics=network.read(root, proc, addresses),
        offline=present - online,
        isolated=cpu_list(system / "isolated") or CpuSet(),
    )


def _online(root: Path, system: Path) -> CpuSet:
    if not system.is_dir():
        inside = root / "sys/devices/system/cpu"
        hint = f"; it contains one, {root / 'sys'}" if inside.is_dir() else ""
        raise BadSysfs(f"{root} is no sysfs: it has no devices/system/cpu{hint}")
    online = cpu_list(system / "online")
    if online is None:
        online = CpuSet(
            at for at, each in numbered(system, "cpu") if number(each / "online") in {None, 1}
        )
    if not online:
        raise BadSysfs(f"{system} has no CPU that is online")
    return online


def _cpus(root: Path, online: CpuSet, nodes: Iterable[NumaNode]) -> tuple[Cpu, ...]:
    node_of = {cpu: node.id for node in nodes for cpu in node.cpus}
    kinds = _kinds(root)
    return tuple(
        _cpu(root / f"devices/system/cpu/cpu{at}", at, node_of[at], kinds.get(at, ""), online)
        for at in sorted(online)
    )


def _cpu(directory: Path, at: int, node: int, kind: str, online: CpuSet) -> Cpu:
    topology = directory / "topology"
    siblings = cpu_set(
        *((topology / f"{name}_list", topology / name) for name in ("core_cpus", "thread_siblings"))
    )
    caches = _caches(directory / "cache", at, online)
    return Cpu(
        id=at,
        core=_lowest(siblings, at, online),
        # Virtual machines and some boards know of no sockets, and say -1.
        socket=max(number(topology / "physical_package_id") or 0, 0),
        numa=node,
        l2=caches.get(2),
        l3=caches.get(3),
        kind=kind,
        capacity=number(directory / "cpu_capacity"),
    )


def _caches(directory: Path, at: int, online: CpuSet) -> Mapping[int, int]:
    """By level, the lowest CPU that shares it."""
    found = {}
    for _, index in numbered(directory, "index"):
        level = number(index / "level")
        shared = cpu_set((index / "shared_cpu_list", index / "shared_cpu_map"))
        if level is not None:
            found[level] = _lowest(shared, at, online)
    return found


def _lowest(shared: CpuSet | None, at: int, online: CpuSet) -> int:
    return min((shared or CpuSet()) & online | {at})


def _kinds(root: Path) -> Mapping[int, str]:
    """Of hybrid machines: x86 has a device for each type of core, with the CPUs of that type."""
    found: dict[int, str] = {}
    for directory in children(root / "devices"):
        cpus = cpu_list(directory / "cpus") if directory.name.startswith("cpu_") else None
        found |= {cpu: directory.name.removeprefix("cpu_") for cpu in cpus or ()}
    return found
