"""Reads NUMA nodes. A kernel without NUMA tells of none: then all is on node 0."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from dovetail.node.common.cpus import CpuSet
from dovetail.node.topology.machine import Hugepages, NotThere, NumaNode
from dovetail.node.topology.sysfs import BadSysfs, children, cpu_list, cpu_set, number, numbered
from dovetail.node.topology.sysfs import text as content

HERE, ELSEWHERE = 10, 20
"""Distances as the kernel has them where the firmware tells nothing."""

TOTAL = re.compile(r"MemTotal:\s*(\d+) kB", re.ASCII)
PAGES = re.compile(r"hugepages-(\d+)kB", re.ASCII)


def read(root: Path, proc: Path, online: CpuSet, memory: Mapping[int, int]) -> tuple[NumaNode, ...]:
    system = root / "devices/system/node"
    there = cpu_list(system / "online")
    found = [(at, each) for at, each in numbered(system, "node") if there is None or at in there]
    ids = [at for at, _ in found] or [0]
    unknown = CpuSet(memory) - CpuSet(ids)
    if unknown:
        raise NotThere(f"memory is given for NUMA node {unknown}, but there are only {CpuSet(ids)}")
    if not found:
        return (_only(root, proc, online, memory),)
    nodes = tuple(
        NumaNode(
            id=at,
            cpus=(cpu_set((each / "cpulist", each / "cpumap")) or CpuSet()) & online,
            memory=memory.get(at, _memory(each / "meminfo")),
            hugepages=_hugepages(each / "hugepages"),
            distances=_distances(each / "distance", at, ids),
        )
        for at, each in found
    )
    _check(nodes, online, system)
    return nodes


def _only(root: Path, proc: Path, online: CpuSet, memory: Mapping[int, int]) -> NumaNode:
    return NumaNode(
        id=0,
        cpus=online,
        memory=memory.get(0, _memory(proc / "meminfo")),
        hugepages=_hugepages(root / "kernel/mm/hugepages"),
        distances={0: HERE},
    )


def _memory(file: Path) -> int:
    found = TOTAL.search(content(file) or "")
    return int(found[1]) << 10 if found else 0


def _hugepages(directory: Path) -> Mapping[int, Hugepages]:
    found = ((PAGES.fullmatch(each.name), each) for each in children(directory))
    pages = {
        int(match[1]) << 10: Hugepages(
            number(each / "nr_hugepages") or 0, number(each / "free_hugepages") or 0
        )
        for match, each in found
        if match
    }
    return dict(sorted(pages.items()))


def _distances(file: Path, at: int, ids: Sequence[int]) -> Mapping[int, int]:
    words = (content(file) or "").split()
    if not words:
        return {each: HERE if each == at else ELSEWHERE for each in ids}
    if len(words) != len(ids) or not all(word.isdecimal() for word in words):
        raise BadSysfs(
            f"{file} has {' '.join(words)[:80]!r}, which is not a distance for each of the "
            f"NUMA nodes {CpuSet(ids)}"
        )
    return dict(zip(ids, map(int, words), strict=True))


def _check(nodes: Sequence[NumaNode], online: CpuSet, system: Path) -> None:
    """Every CPU has to be on one node."""
    seen: dict[int, int] = {}
    for node in nodes:
        for cpu in sorted(node.cpus):
            if cpu in seen:
                raise BadSysfs(f"{system}: CPU {cpu} is on NUMA nodes {seen[cpu]} and {node.id}")
            seen[cpu] = node.id
    if lost := online - seen.keys():
        raise BadSysfs(f"{system}: CPU {lost} is online, but on no NUMA node")
