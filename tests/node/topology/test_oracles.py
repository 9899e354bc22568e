"""lscpu and hwloc see the same machines as we do: made up ones, and the one this runs on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from dovetail.node.common.cpus import CpuSet
from dovetail.node.topology import Hugepages, Machine, NumaNode, read, synthetic, write
from tests.node.topology.machines import Loose, settled
from tests.support import debian

Parts = set[CpuSet]
"""How CPUs are divided."""


def with_gaps() -> Machine:
    """CPUs and a node are missing in between; of two cores a thread is offline."""
    ids = [0, 1, 2, 8, 9, 40, 41, 42]
    cpus = settled(
        Loose(at, number // 4, 3 * (number // 4), number // 2, number // 2, 0, "", None)
        for number, at in enumerate(ids)
    )
    nodes = [
        NumaNode(
            id=node,
            cpus=CpuSet(cpu.id for cpu in cpus if cpu.numa == node),
            memory=(node + 1) << 30,
            distances={0: 10, 3: 15} if node == 0 else {0: 15, 3: 10},
        )
        for node in (0, 3)
    ]
    return Machine(cpus=cpus, nodes=tuple(nodes), offline=CpuSet({3, 43}))


def with_memory_only() -> Machine:
    machine = synthetic(1, 1, 4, 2)
    near, far = {0: 10, 1: 17}, {0: 17, 1: 10}
    (node,) = machine.nodes
    added = NumaNode(id=1, memory=128 << 30, distances=far)
    return msgspec.structs.replace(
        machine, nodes=(msgspec.structs.replace(node, distances=near), added)
    )


MACHINES: Mapping[str, Machine] = {
    "of the specification": synthetic(),
    "siblings far apart": synthetic(adjacent_siblings=False),
    "two nodes and four caches in a socket": synthetic(2, 2, 4, 2, uncores=2),
    "without SMT": synthetic(4, 1, 3, 1, hugepages={2 << 20: Hugepages(64, 64)}),
    "with gaps": with_gaps(),
    "with a node of memory only": with_memory_only(),
}

anyone = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)


def output(*command: str) -> str:
    # Otherwise hwloc would ask the processor it runs on.
    environment = os.environ | {"LC_ALL": "C", "HWLOC_THISSYSTEM": "0"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def lscpu(*arguments: str) -> Mapping[str, Parts]:
    """By what they share, as it is called there."""
    debian.needs("util-linux")
    lines = output("lscpu", *arguments, "-p=CPU,CORE,SOCKET,NODE,CACHE").splitlines()
    *_, head = (line for line in lines if line.startswith("#"))
    rows = [line.split(",") for line in lines if not line.startswith("#")]
    columns = head.removeprefix("# ").split(",")
    found: dict[str, dict[str, set[int]]] = {}
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            found.setdefault(column, {}).setdefault(value, set()).add(int(row[0]))
    return {column: set(map(CpuSet, parts.values())) for column, parts in found.items()}


def hwloc(*arguments: str) -> ElementTree.Element:
    debian.needs("hwloc-nox")
    return ElementTree.fromstring(output("lstopo-no-graphics", *arguments, "--of", "xml", "-"))


def objects(tree: ElementTree.Element, kind: str) -> Parts:
    return {cpuset(each) for each in tree.iter("object") if each.get("type") == kind}


def cpuset(element: ElementTree.Element) -> CpuSet:
    words = [int(word or "0", 16) for word in element.attrib["cpuset"].split(",")]
    return CpuSet.of_mask(sum(word << 32 * at for at, word in enumerate(reversed(words))))


def parts(found: Mapping[int, CpuSet]) -> Parts:
    return {each for each in found.values() if each}


def agrees_with_lscpu(machine: Machine, told: Mapping[str, Parts]) -> None:
    assert told["Core"] == parts(machine.by_core)
    assert told["Socket"] == parts(machine.by_socket)
    assert told["Node"] == parts(machine.by_numa)
    assert told["L2"] == parts(machine.grouped(lambda cpu: cpu.l2 or 0))
    assert told["L3"] == parts(machine.by_uncore)


def agrees_with_hwloc(machine: Machine, told: ElementTree.Element) -> None:
    assert objects(told, "PU") == {CpuSet({each}) for each in machine.online}
    assert objects(told, "Core") == parts(machine.by_core)
    assert objects(told, "Package") == parts(machine.by_socket)
    assert objects(told, "L2Cache") == parts(machine.grouped(lambda cpu: cpu.l2 or 0))
    assert objects(told, "L3Cache") == parts(machine.by_uncore)


@anyone
def test_lscpu(machine: Machine, tmp_path: Path) -> None:
    agrees_with_lscpu(read(write(machine, tmp_path)), lscpu("--sysroot", str(tmp_path)))


@anyone
def test_hwloc(machine: Machine, tmp_path: Path) -> None:
    ours = read(write(machine, tmp_path))
    told = hwloc("-i", str(tmp_path))
    agrees_with_hwloc(ours, told)
    theirs = {
        int(each.attrib["os_index"]): (cpuset(each), int(each.get("local_memory", 0)))
        for each in told.iter("object")
        if each.get("type") == "NUMANode"
    }
    # A node without CPUs of its own is told as near to some.
    memory = {
        at: (cpus if ours.node(at).cpus else CpuSet(), size) for at, (cpus, size) in theirs.items()
    }
    assert memory == {node.id: (node.cpus, node.memory) for node in ours.nodes}


@pytest.mark.parametrize("name", ["two nodes and four caches in a socket", "with gaps"])
def test_distances_of_hwloc(name: str, tmp_path: Path) -> None:
    ours = read(write(MACHINES[name], tmp_path))
    (matrix,) = (
        each
        for each in hwloc("-i", str(tmp_path)).iter("distances2")
        if each.get("type") == "NUMANode"
    )
    values = " ".join(each.text or "" for each in matrix.iter("u64values")).split()
    assert [*map(int, values)] == [
        ours.distances[a][b] for a in sorted(ours.node_ids) for b in sorted(ours.node_ids)
    ]


def test_lscpu_on_this_machine() -> None:
    agrees_with_lscpu(read(), lscpu())


def test_hwloc_on_this_machine() -> None:
    # Without the memory, which a virtual machine may be given in steps.
    agrees_with_hwloc(read(), hwloc("--disallowed", "-i", "/"))
