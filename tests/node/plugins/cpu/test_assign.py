"""Which CPUs are taken: the packed and the distributed order, and the options."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.node.common.cpus import CpuSet
from dovetail.node.plugins.common.cpu_policy_options import conflict, unsuited
from dovetail.node.plugins.cpu.assign import CpuPolicyOption, NotEnough, choose
from dovetail.node.plugins.cpu.assign.distributed import take_distributed
from dovetail.node.plugins.cpu.assign.packed import take_packed
from dovetail.node.topology import Cpu, Machine, NumaNode, synthetic
from tests.node.plugins.cpu import literal

ADJACENT = synthetic(sockets=2, cores=20, threads=2)
"""0-39 and 40-79; 0 and 1 share a core."""
APART = synthetic(sockets=2, cores=20, threads=2, adjacent_siblings=False)
"""Cores 0-19 and 20-39; 0 and 40 share one."""
SPLIT_SOCKETS = synthetic(sockets=2, numa_per_socket=2, cores=4, threads=2, uncores=2)
"""Nodes of 8 CPUs, two to a socket; caches of 4."""
HYBRID = Machine(
    cpus=tuple(
        Cpu(
            id=at,
            core=at - at % 2 if at < 4 else at,
            socket=0,
            numa=0,
            kind="core" if at < 4 else "atom",
        )
        for at in range(8)
    ),
    nodes=(NumaNode(id=0, cpus=CpuSet(range(8))),),
)
"""Two cores of two threads, 0-1 and 2-3; four of one, 4 to 7."""


def cpus(text: str) -> CpuSet:
    return CpuSet.parse(text)


class TestPacked:
    @pytest.mark.parametrize(
        ("machine", "free", "wanted", "expected"),
        [
            pytest.param(ADJACENT, "2-39,42-79", 20, "2-21", id="whole cores, lowest first"),
            pytest.param(APART, "2-39,42-79", 20, "2-11,42-51", id="siblings far apart"),
            pytest.param(ADJACENT, "0-79", 40, "0-39", id="a whole node"),
            pytest.param(ADJACENT, "1-79", 40, "40-79", id="the node that is whole"),
            pytest.param(ADJACENT, "0-79", 44, "0-43", id="a node and some cores"),
            pytest.param(ADJACENT, "20-79", 4, "20-23", id="the node with fewer free"),
            pytest.param(ADJACENT, "1-79", 1, "1", id="a core that is split already"),
            pytest.param(ADJACENT, "1,3,4-39", 3, "1,4-5", id="a core, then a lone thread"),
            pytest.param(SPLIT_SOCKETS, "0-31", 16, "0-15", id="a whole socket"),
            pytest.param(SPLIT_SOCKETS, "1-31", 8, "8-15", id="a node of the fuller socket"),
            pytest.param(SPLIT_SOCKETS, "1-31", 24, "8-31", id="a socket, then a node"),
            pytest.param(SPLIT_SOCKETS, "6-31", 4, "6-9", id="the fuller node of a socket first"),
        ],
    )
    def test_takes(self, machine: Machine, free: str, wanted: int, expected: str) -> None:
        assert str(take_packed(machine, cpus(free), wanted)) == expected

    def test_spread_takes_the_lowest_of_a_socket_whatever_their_cores(self) -> None:
        assert str(take_packed(APART, cpus("0-79"), 4, spread=True)) == "0-3"

    @pytest.mark.parametrize(
        ("free", "wanted", "expected"),
        [
            pytest.param("0-31", 4, "0-3", id="a whole cache"),
            pytest.param("2-31", 4, "4-7", id="the whole one before parts of others"),
            pytest.param("2-31", 2, "2-3", id="a part of the fullest"),
            pytest.param("0-1,4-5,8-31", 6, "0-1,8-11", id="a whole one and a part"),
            pytest.param("0-1,4-5", 4, "0-1,4-5", id="no cache has enough"),
            pytest.param("0,2,4-7", 2, "4-5", id="only whole cores are a part"),
            pytest.param("0-31", 3, "0-2", id="an odd number leaves a thread of its last core"),
            pytest.param("2-31", 3, "4-6", id="in the first cache that has the cores"),
            pytest.param("0,2-3,8-31", 3, "0,2-3", id="a core that is split already will do"),
            pytest.param("0-1,4-5,8-31", 7, "8-14", id="a whole one and an odd part"),
        ],
    )
    def test_by_cache(self, free: str, wanted: int, expected: str) -> None:
        assert str(take_packed(SPLIT_SOCKETS, cpus(free), wanted, by_uncore=True)) == expected

    def test_by_cache_an_odd_number_where_siblings_are_far_apart(self) -> None:
        """Cores 0 and 1, with 16 and 17, share the first cache: of all these 17 is left."""
        machine = synthetic(
            sockets=2, numa_per_socket=2, cores=4, threads=2, uncores=2, adjacent_siblings=False
        )
        assert str(take_packed(machine, machine.online, 3, by_uncore=True)) == "0-1,16"

    @given(st.data())
    def test_by_cache_what_fits_into_one_is_in_one(self, data: st.DataObject) -> None:
        """Odd numbers as well as even ones."""
        cores = data.draw(st.sets(st.sampled_from(range(0, 32, 2)), min_size=1))
        free = CpuSet(cpu for core in cores for cpu in (core, core + 1))
        wanted = data.draw(st.integers(1, 3))
        if any(len(each & free) >= wanted for each in SPLIT_SOCKETS.by_uncore.values()):
            taken = take_packed(SPLIT_SOCKETS, free, wanted, by_uncore=True)
            assert len({SPLIT_SOCKETS.cpu(each).l3 for each in taken}) == 1

    def test_nodes_that_hold_sockets_come_before_these(self) -> None:
        machine = Machine(
            cpus=tuple(Cpu(id=at, core=at, socket=at // 2, numa=at // 4) for at in range(8)),
            nodes=(NumaNode(id=0, cpus=cpus("0-3")), NumaNode(id=1, cpus=cpus("4-7"))),
        )
        assert str(take_packed(machine, cpus("1-7"), 4)) == "4-7"
        assert str(take_packed(machine, cpus("1-7"), 2)) == "2-3"

    def test_not_enough(self) -> None:
        with pytest.raises(NotEnough, match=r"3 CPUs are wanted, 2 are free \(4-5\)"):
            take_packed(ADJACENT, cpus("4-5"), 3)

    @given(st.data())
    def test_takes_as_many_of_the_free_and_splits_no_core_in_vain(
        self, data: st.DataObject
    ) -> None:
        machine = data.draw(st.sampled_from([ADJACENT, APART, SPLIT_SOCKETS]))
        free = CpuSet(data.draw(st.sets(st.sampled_from(sorted(machine.online)))))
        wanted = data.draw(st.integers(0, len(free)))
        taken = take_packed(machine, free, wanted)
        assert len(taken) == wanted
        assert taken <= free
        whole = len(machine.whole_cores(free))
        split = taken - machine.whole_cores(taken)
        assert len(split) <= max(wanted - whole, wanted % 2)


class TestDistributed:
    @pytest.mark.parametrize(
        ("machine", "free", "wanted", "group", "expected"),
        [
            pytest.param(ADJACENT, "0-79", 20, 1, "0-19", id="one node is enough"),
            pytest.param(ADJACENT, "0-79", 60, 1, "0-29,40-69", id="halves"),
            pytest.param(ADJACENT, "0-79", 62, 2, "0-31,40-69", id="halves but for a core"),
            pytest.param(ADJACENT, "0-79", 61, 2, "0-60", id="no whole cores: packed"),
            pytest.param(ADJACENT, "0-9,40-79", 42, 1, "0-1,40-79", id="packed if it must be"),
            pytest.param(SPLIT_SOCKETS, "0-31", 12, 1, "0-5,8-13", id="nodes of one socket"),
        ],
    )
    def test_takes(
        self, machine: Machine, free: str, wanted: int, group: int, expected: str
    ) -> None:
        assert str(take_distributed(machine, cpus(free), wanted, group)) == expected

    def test_halves_of_cores_are_no_group(self) -> None:
        """After an even share nodes 0 and 1 have three CPUs left: six, but not three groups."""
        free = cpus("0-4,8-12,16-19,24-27")
        found = take_distributed(SPLIT_SOCKETS, free, 14, 2)
        assert str(found) == "0-3,8-11,16-19,24-25"

    @given(st.data())
    def test_equals_the_literal_rule(self, data: st.DataObject) -> None:
        machine = data.draw(st.sampled_from([SPLIT_SOCKETS, synthetic(cores=3), ADJACENT]))
        free = CpuSet(data.draw(st.sets(st.sampled_from(sorted(machine.online)), min_size=1)))
        wanted = data.draw(st.integers(1, len(free)))
        group = data.draw(st.sampled_from([1, 2]))
        wanted -= wanted % group
        taken = take_distributed(machine, free, wanted, group)
        assert len(taken) == wanted
        assert taken <= free
        if wanted:
            assert taken == literal.distributed(machine, free, wanted, group)

    @pytest.mark.parametrize(
        ("free", "wanted", "expected"),
        [
            pytest.param("0-31", 12, "0-5,8-13", id="two nodes of a socket"),
            pytest.param("0-5,8-31", 10, "16-20,24-28", id="though two sockets were more even"),
            pytest.param("0-2,8-23", 10, "0-2,8-14", id="less than an even share of one of them"),
            pytest.param("0-1,8-9,16-31", 10, "16-20,24-28", id="the socket that has room"),
            pytest.param("0-3,16-19", 8, "0-3,16-19", id="over sockets if it must be"),
        ],
    )
    def test_by_socket(self, free: str, wanted: int, expected: str) -> None:
        found = take_distributed(SPLIT_SOCKETS, cpus(free), wanted, by_socket=True)
        assert str(found) == expected

    @given(st.data())
    def test_by_socket_equals_the_literal_rule(self, data: st.DataObject) -> None:
        free = CpuSet(data.draw(st.sets(st.sampled_from(sorted(SPLIT_SOCKETS.online)), min_size=1)))
        group = data.draw(st.sampled_from([1, 2]))
        wanted = data.draw(st.integers(1, len(free)))
        wanted -= wanted % group
        taken = take_distributed(SPLIT_SOCKETS, free, wanted, group, by_socket=True)
        assert len(taken) == wanted
        assert taken <= free
        if wanted:
            found = literal.distributed(SPLIT_SOCKETS, free, wanted, group, by_socket=True)
            assert taken == found


class TestChoose:
    def test_near_first_then_elsewhere(self) -> None:
        assert str(choose(ADJACENT, cpus("0-3,40-79"), 6, nodes=(0,))) == "0-3,40-41"

    def test_whole_cores_only_leaves_halves_alone(self) -> None:
        found = choose(ADJACENT, cpus("1,3,4-7"), 4, (CpuPolicyOption.FULL_PCPUS_ONLY,))
        assert str(found) == "4-7"
        with pytest.raises(NotEnough):
            choose(ADJACENT, cpus("1,3,4-7"), 6, (CpuPolicyOption.FULL_PCPUS_ONLY,))

    def test_whole_cores_only_leaves_cores_with_an_offline_thread_alone(self) -> None:
        """Core 0 has one thread: with it, core 4 would have to be split."""
        machine = Machine(
            cpus=tuple(Cpu(id=at, core=at - at % 2, socket=0, numa=0) for at in (0, 2, 3, 4, 5)),
            nodes=(NumaNode(id=0, cpus=cpus("0,2-5")),),
        )
        assert str(choose(machine, machine.online, 4, (CpuPolicyOption.FULL_PCPUS_ONLY,))) == "2-5"
        assert str(choose(machine, machine.online, 4)) == "0,2-4"

    @pytest.mark.parametrize(
        ("free", "wanted", "expected"),
        [
            pytest.param("0-7", 4, "0-3", id="cores of two threads first"),
            pytest.param("0-7", 6, "0-5", id="then those of one"),
            pytest.param("0,2-6", 4, "2-5", id="no core is split"),
            pytest.param("0-1,4-6", 4, "0-1,4-5", id="those of one thread make up for others"),
        ],
    )
    def test_whole_cores_only_uses_cores_that_have_one_thread(
        self, free: str, wanted: int, expected: str
    ) -> None:
        found = choose(HYBRID, cpus(free), wanted, (CpuPolicyOption.FULL_PCPUS_ONLY,))
        assert str(found) == expected

    def test_whole_cores_only_across_numa_splits_no_core_either(self) -> None:
        options = (CpuPolicyOption.FULL_PCPUS_ONLY, CpuPolicyOption.DISTRIBUTE_CPUS_ACROSS_NUMA)
        assert str(choose(HYBRID, cpus("2-4"), 2, options)) == "2-3"
        with pytest.raises(NotEnough):
            choose(HYBRID, cpus("1-4"), 4, options)

    def test_align_by_socket_takes_the_rest_of_the_socket_as_near(self) -> None:
        free = cpus("6-31")
        assert str(choose(SPLIT_SOCKETS, free, 4, (), (0,))) == "6-9"
        aligned = choose(
            SPLIT_SOCKETS, cpus("6-15,16-17"), 6, (CpuPolicyOption.ALIGN_BY_SOCKET,), (0,)
        )
        assert str(aligned) == "6-11"
        # Otherwise only node 0 is near, and after it the fullest socket comes first.
        assert str(choose(SPLIT_SOCKETS, cpus("6-15,16-17"), 6, (), (0,))) == "6-9,16-17"

    def test_across_cores_and_across_numa(self) -> None:
        across_cores = (CpuPolicyOption.DISTRIBUTE_CPUS_ACROSS_CORES,)
        assert str(choose(APART, cpus("0-79"), 4, across_cores)) == "0-3"
        across_numa = (CpuPolicyOption.DISTRIBUTE_CPUS_ACROSS_NUMA,)
        assert str(choose(ADJACENT, cpus("0-79"), 60, across_numa)) == "0-29,40-69"


class TestOptions:
    @pytest.mark.parametrize(
        "pair",
        [
            "distribute-cpus-across-cores full-pcpus-only",
            "distribute-cpus-across-cores distribute-cpus-across-numa",
            "distribute-cpus-across-cores prefer-align-cpus-by-uncorecache",
            "prefer-align-cpus-by-uncorecache distribute-cpus-across-numa",
        ],
    )
    def test_those_that_exclude_each_other(self, pair: str) -> None:
        options = [CpuPolicyOption(each) for each in pair.split()]
        assert "exclude each other" in (conflict(options, single_numa=False) or "")
        for one in options:
            assert conflict([one], single_numa=False) is None

    def test_align_by_socket_needs_nodes_within_sockets(self) -> None:
        options = (CpuPolicyOption.ALIGN_BY_SOCKET,)
        assert "means nothing" in (conflict(options, single_numa=True) or "")
        one_node = Machine(
            cpus=tuple(Cpu(id=at, core=at, socket=at, numa=0) for at in range(2)),
            nodes=(NumaNode(id=0, cpus=cpus("0-1")),),
        )
        assert "2 sockets on 1 nodes" in (unsuited(options, one_node) or "")
        assert unsuited(options, ADJACENT) is None
