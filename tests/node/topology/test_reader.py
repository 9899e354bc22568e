"""Machines are read as they were written, and as kernels differ."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from dovetail.node.common.cpus import CpuSet
from dovetail.node.topology import (
    BadSysfs,
    Hugepages,
    Machine,
    Nic,
    NotThere,
    read,
    synthetic,
    write,
)
from tests.node.topology.machines import machines

SMALL = synthetic(2, 1, 2, 2, hugepages={2 << 20: Hugepages(8, 3)})
CPU = "devices/system/cpu"
NODE = "devices/system/node"


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    return write(SMALL, tmp_path)


@settings(max_examples=60, deadline=None)
@given(machines())
def test_as_it_was_written(machine: Machine) -> None:
    with tempfile.TemporaryDirectory() as root:
        assert read(write(machine, Path(root))) == machine


def test_kernels_that_have_only_maps(sysfs: Path) -> None:
    lists = [*sysfs.rglob("*_list"), *sysfs.rglob("cpulist")]
    assert lists
    for file in lists:
        file.unlink()
    assert read(sysfs) == SMALL


def test_kernels_that_have_only_the_older_names(sysfs: Path) -> None:
    for file in [*sysfs.rglob("core_cpus*"), *sysfs.rglob("package_cpus*")]:
        file.unlink()
    assert read(sysfs) == SMALL


def test_kernels_without_summaries_and_lists_with_cpus_that_are_offline(sysfs: Path) -> None:
    for name in ("online", "present", "possible", "isolated"):
        (sysfs / CPU / name).unlink()
    (sysfs / CPU / "cpu2/online").write_text("0\n")
    machine = read(sysfs)
    assert machine.online == CpuSet.parse("0-1,3-7")
    assert machine.offline == CpuSet({2})
    assert machine.by_core[3] == CpuSet({3})
    assert machine.by_numa[0] == CpuSet.parse("0-1,3")


def test_maps_of_more_than_a_word(tmp_path: Path) -> None:
    machine = synthetic(adjacent_siblings=False)
    sysfs = write(machine, tmp_path)
    file = sysfs / NODE / "node1/cpumap"
    assert file.read_text() == "0000ffff,f00000ff,fff00000\n"
    file.with_name("cpulist").unlink()
    assert read(sysfs) == machine


def test_a_kernel_without_numa(sysfs: Path) -> None:
    shutil.rmtree(sysfs / NODE)
    pages = sysfs / "kernel/mm/hugepages/hugepages-2048kB"
    pages.mkdir(parents=True)
    (pages / "nr_hugepages").write_text("16\n")
    (pages / "free_hugepages").write_text("6\n")
    (node,) = read(sysfs).nodes
    assert node.id == 0
    assert node.cpus == SMALL.online
    assert node.memory == SMALL.memory
    assert node.hugepages == {2 << 20: Hugepages(16, 6)}
    assert node.distances == {0: 10}


def test_a_kernel_without_distances(sysfs: Path) -> None:
    for file in sysfs.rglob("distance"):
        file.unlink()
    assert read(sysfs).distances == {0: {0: 10, 1: 20}, 1: {0: 20, 1: 10}}


def test_nodes_that_are_offline(sysfs: Path) -> None:
    (sysfs / NODE / "node7").mkdir()
    assert read(sysfs) == SMALL


def test_a_machine_that_knows_of_no_sockets_and_caches(sysfs: Path) -> None:
    for file in sysfs.rglob("physical_package_id"):
        file.write_text("-1\n")
    for directory in [*sysfs.rglob("cache")]:
        shutil.rmtree(directory)
    machine = read(sysfs)
    assert machine.by_socket == {0: machine.online}
    assert {cpu.l3 for cpu in machine.cpus} == {None}
    assert [*machine.by_uncore.values()] == [*machine.by_numa.values()]


def test_memory_that_is_known_better(sysfs: Path) -> None:
    machine = read(sysfs, memory={1: 5 << 30})
    assert [node.memory for node in machine.nodes] == [SMALL.nodes[0].memory, 5 << 30]
    with pytest.raises(NotThere, match="memory is given for NUMA node 2, but there are only 0-1"):
        read(sysfs, memory={2: 1})


def test_nics(tmp_path: Path) -> None:
    nics = (
        Nic(name="eth0", numa=0, speed=25000, mac="02:00:00:00:00:01", addresses=("fd00::1",)),
        Nic(name="eth1"),
    )
    sysfs = write(synthetic(1, 1, 1, 1, nics=nics), tmp_path)
    (sysfs / "class/net/lo").mkdir()
    assert read(sysfs).nics == nics
    given = read(sysfs, addresses={"eth1": ["192.0.2.1"]}).nics
    assert [nic.addresses for nic in given] == [(), ("192.0.2.1",)]


def test_the_machine_this_runs_on() -> None:
    machine = read()
    assert machine.online
    assert machine.in_nodes(machine.node_ids) == machine.online
    assert machine.threads_per_core in {1, 2, 4, 8}


@pytest.mark.parametrize(
    ("path", "content", "complaint"),
    [
        (f"{CPU}/online", "0-x", r"cpu/online has '0-x', which is not a list of CPUs"),
        (f"{CPU}/online", "", "has no CPU that is online"),
        (f"{CPU}/cpu1/topology/physical_package_id", "a", "has 'a', which is not an integer"),
        (f"{NODE}/node0/distance", "10", "which is not a distance for each of the NUMA nodes 0-1"),
        (f"{NODE}/node1/cpulist", "3-7", "CPU 3 is on NUMA nodes 0 and 1"),
        (f"{NODE}/node1/cpulist", "4-6", "CPU 7 is online, but on no NUMA node"),
        ("../proc/net/if_inet6", "fd00 02 40 00 80 eth0", "which is no address of a NIC"),
    ],
)
def test_what_cannot_be(sysfs: Path, path: str, content: str, complaint: str) -> None:
    (sysfs / path).write_text(content)
    with pytest.raises(BadSysfs, match=complaint):
        read(sysfs)


def test_no_sysfs(sysfs: Path, tmp_path: Path) -> None:
    with pytest.raises(BadSysfs, match=r"is no sysfs: it has no devices/system/cpu$"):
        read(tmp_path / "elsewhere")
    with pytest.raises(BadSysfs, match=f"it contains one, {sysfs}"):
        read(tmp_path)
