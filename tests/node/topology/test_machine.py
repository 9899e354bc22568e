"""What a machine tells of itself."""

from __future__ import annotations

import msgspec
import pytest

from dovetail.node.common.cpus import CpuSet
from dovetail.node.topology import Cpu, Machine, NotThere, NumaNode, synthetic

SPEC = synthetic()


def cpus(text: str) -> CpuSet:
    return CpuSet.parse(text)


def test_the_machine_of_the_specification() -> None:
    """80 CPUs, 0-39 in NUMA node 0 and 40-79 in NUMA node 1."""
    assert SPEC.by_numa == {0: cpus("0-39"), 1: cpus("40-79")}
    assert SPEC.by_socket == SPEC.by_numa
    assert SPEC.by_core[2] == cpus("2-3")
    assert len(SPEC.by_core) == 40
    assert SPEC.threads_per_core == 2
    assert SPEC.distances == {0: {0: 10, 1: 21}, 1: {0: 21, 1: 10}}


def test_siblings_as_most_machines_number_them() -> None:
    machine = synthetic(adjacent_siblings=False)
    assert machine.by_core[0] == cpus("0,40")
    assert machine.by_numa == {0: cpus("0-19,40-59"), 1: cpus("20-39,60-79")}


def test_several_nodes_and_caches_in_a_socket() -> None:
    machine = synthetic(2, 2, 4, 2, uncores=2)
    assert machine.by_socket == {0: cpus("0-15"), 1: cpus("16-31")}
    assert machine.by_uncore[0] == cpus("0-3")
    assert machine.by_uncore[4] == cpus("4-7")
    assert machine.distances[0] == {0: 10, 1: 12, 2: 21, 3: 21}
    assert machine.sockets_of([1, 2]) == cpus("0-1")


def test_sets_of_cpus() -> None:
    assert SPEC.online == cpus("0-79")
    assert SPEC.in_nodes([1]) == cpus("40-79")
    assert SPEC.nodes_of(cpus("3,41")) == cpus("0-1")
    assert SPEC.cores_of(cpus("0-4")) == cpus("0,2,4")
    assert SPEC.whole_cores(cpus("1-4")) == cpus("2-3")
    assert isinstance(SPEC.in_nodes([]), CpuSet)


def test_without_l3_a_cache_is_taken_for_each_node_of_a_socket() -> None:
    bare = tuple(msgspec.structs.replace(each, l3=None) for each in synthetic(1, 2, 2, 1).cpus)
    machine = msgspec.structs.replace(synthetic(1, 2, 2, 1), cpus=bare)
    assert machine.by_uncore == {0: cpus("0-1"), 2: cpus("2-3")}


def test_a_core_may_lack_threads() -> None:
    lone = Cpu(id=4, core=4, socket=0, numa=0)
    pair = [Cpu(id=at, core=1, socket=0, numa=0) for at in (1, 2)]
    machine = Machine(cpus=(*pair, lone), nodes=(NumaNode(id=0, cpus=cpus("1-2,4")),))
    assert machine.threads_per_core == 2
    assert machine.by_core == {1: cpus("1-2"), 4: cpus("4")}


def test_what_is_not_there() -> None:
    with pytest.raises(NotThere, match="no CPU 80 online; online are 0-79"):
        SPEC.cpu(80)
    with pytest.raises(NotThere, match="no NUMA node 2; there are 0-1"):
        SPEC.in_nodes([2])
