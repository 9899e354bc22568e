"""`dovetail agent topology`."""

from __future__ import annotations

from pathlib import Path

import msgspec
import orjson
import pytest
import yaml
from click.testing import CliRunner, Result

from dovetail.cli.agent.topology import command
from dovetail.node.common.cpus import CpuSet
from dovetail.node.topology import Hugepages, Machine, Nic, NumaNode, read, synthetic, write

NICS = (
    Nic(name="eth0", numa=0, speed=25000, mac="02:00:00:00:00:01", addresses=("fd00::20",)),
    Nic(name="eth1", numa=1),
    Nic(name="usb0"),
)
MACHINE = synthetic(2, 1, 20, 2, 226 << 30, nics=NICS, hugepages={2 << 20: Hugepages(512, 500)})


def run(machine: Machine, root: Path, *arguments: str) -> str:
    done = asked("--sysfs", str(write(machine, root)), *arguments)
    assert done.exit_code == 0, done.output
    return done.output


def asked(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def test_drawn(tmp_path: Path) -> None:
    assert (
        run(MACHINE, tmp_path)
        == """\
machine            80 CPUs  40 cores  2 NUMA nodes  452 GiB
├─ socket 0        CPUs 0-39
│  └─ NUMA node 0  CPUs 0-39  226 GiB  500/512 pages of 2 MiB free  distances 0:10 1:21
│     ├─ L3 cache  CPUs 0-39  cores 0-1 | 2-3 | 4-5 | 17 more
│     └─ eth0      25,000 Mb/s  02:00:00:00:00:01  fd00::20
├─ socket 1        CPUs 40-79
│  └─ NUMA node 1  CPUs 40-79  226 GiB  500/512 pages of 2 MiB free  distances 0:21 1:10
│     ├─ L3 cache  CPUs 40-79  cores 40-41 | 42-43 | 44-45 | 17 more
│     └─ eth1      speed unknown
└─ usb0            speed unknown
"""
    )


def test_a_node_across_sockets_and_one_without_cpus(tmp_path: Path) -> None:
    """As where the firmware interleaves memory, and with memory on a card."""
    cpus = tuple(
        msgspec.structs.replace(each, numa=0, l3=None) for each in synthetic(2, 1, 1, 1).cpus
    )
    machine = Machine(
        cpus=cpus,
        nodes=(
            NumaNode(id=0, cpus=CpuSet({0, 1}), distances={0: 10, 1: 17}),
            NumaNode(id=1, memory=512 << 20, distances={0: 17, 1: 10}),
        ),
        offline=CpuSet({2}),
        isolated=CpuSet({1}),
    )
    assert (
        run(machine, tmp_path)
        == """\
machine            2 CPUs  2 cores  2 NUMA nodes  512 MiB  offline 2  isolated 1
├─ socket 0        CPUs 0
│  └─ NUMA node 0  CPUs 0  no memory  distances 0:10 1:17
│     └─ cores     CPUs 0  cores 0
├─ socket 1        CPUs 1
│  └─ NUMA node 0  CPUs 1
│     └─ cores     CPUs 1  cores 1
└─ NUMA node 1     512 MiB  distances 0:17 1:10
"""
    )


def test_for_programs(tmp_path: Path) -> None:
    document = orjson.loads(run(MACHINE, tmp_path, "-o", "json"))
    assert document["online"] == "0-79"
    assert document["nodes"][1]["cpus"] == "40-79"
    assert document["nodes"][1]["distances"] == {"0": 21, "1": 10}
    assert document["cpus"][41] == {
        "id": 41,
        "core": 40,
        "socket": 1,
        "numa": 1,
        "l2": 40,
        "l3": 40,
        "kind": "",
        "capacity": None,
    }
    assert yaml.safe_load(run(MACHINE, tmp_path, "-o", "yaml")) == document


def test_this_machine() -> None:
    done = asked("-o", "json")
    assert done.exit_code == 0
    assert orjson.loads(done.output)["online"] == str(read().online)


@pytest.mark.parametrize(
    ("root", "code", "words"), [("", 6, "it contains one"), ("missing", 2, "does not exist")]
)
def test_no_sysfs(tmp_path: Path, root: str, code: int, words: str) -> None:
    write(synthetic(1, 1, 1, 1), tmp_path)
    done = asked("--sysfs", str(tmp_path / root))
    assert (done.exit_code, words in done.output) == (code, True)
