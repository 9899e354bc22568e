"""The file or the machine changes while containers run: they keep what they have, or it is told."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints.hint import Hint
from dovetail.node.plugins.common.requests import Impossible
from dovetail.node.plugins.common.role_file import BadRoles, parse
from dovetail.node.plugins.common.store import PluginStore, StateNotSaved
from dovetail.node.plugins.cpu import hints
from dovetail.node.plugins.cpu.plugin import CpuPlugin
from dovetail.node.plugins.cpu.sizes import remembered
from dovetail.node.plugins.cpu.state import Cpus, CpuState
from dovetail.node.plugins.memory.plugin import MemoryPlugin
from dovetail.node.plugins.nic.plugin import NicPlugin
from dovetail.node.topology import Machine, Nic, synthetic
from tests.node.plugins.rig import ask

NICS = (Nic(name="eth0", numa=0), Nic(name="eth1", numa=1))
MACHINE = synthetic(sockets=2, cores=4, threads=2, memory=2**30, nics=NICS)
"""0-7 and 8-15."""

ROLES = """
[roles.own]
cpu = { exclusive = true }
memory = { bind = true }
nic = {}
"""
POOLS = ROLES + '[pools.a]\nsize = 12\n[pools.b]\nsize = 4\n[roles.web]\ncpu = { pool = "a" }\n'


def without(machine: Machine, offline: str) -> Machine:
    """The same, with CPUs offline."""
    gone = CpuSet.parse(offline)
    return msgspec.structs.replace(
        machine,
        cpus=tuple(
            msgspec.structs.replace(cpu, core=min(machine.by_core[cpu.core] - gone))
            for cpu in machine.cpus
            if cpu.id not in gone
        ),
        nodes=tuple(msgspec.structs.replace(node, cpus=node.cpus - gone) for node in machine.nodes),
        offline=gone,
    )


def cpu_plugin(tmp_path: Path, roles: str = ROLES, machine: Machine = MACHINE) -> CpuPlugin:
    return CpuPlugin(machine, parse(roles, machine), PluginStore(tmp_path / "cpu.json"))


def allocate(plugin: CpuPlugin, pod: str, role: str, amount: int) -> str:
    wanted = ask(pod, plugin.book.roles[role], amount)
    plugin.keep(plugin.state_with(wanted))
    return has(plugin, pod)


def has(plugin: CpuPlugin, pod: str) -> str:
    holding = plugin.state.of(pod, "main")
    assert holding
    return plugin.info(holding).allocation_result


class TestCpusThatGo:
    def test_nobody_else_gets_what_a_container_has(self, tmp_path: Path) -> None:
        before = cpu_plugin(tmp_path)
        assert [allocate(before, pod, "own", 4) for pod in "ab"] == ["0-3", "4-7"]
        after = cpu_plugin(tmp_path, machine=without(MACHINE, "7"))
        assert [has(after, pod) for pod in "ab"] == ["0-3", "4-6"]
        assert allocate(after, "c", "own", 4) == "8-11"

    def test_it_is_told_precisely(self, tmp_path: Path) -> None:
        allocate(cpu_plugin(tmp_path), "a", "own", 4)
        with capture_logs() as logs:
            cpu_plugin(tmp_path, machine=without(MACHINE, "2-3"))
        assert [each["reason"] for each in logs if each["event"] == "trouble"] == [
            "default/name-of-a, container main, has CPUs 0-3, of which 2-3 are not online"
        ]

    def test_they_are_its_own_again_when_they_come_back(self, tmp_path: Path) -> None:
        allocate(cpu_plugin(tmp_path), "a", "own", 4)
        cpu_plugin(tmp_path, machine=without(MACHINE, "2-3"))
        assert has(cpu_plugin(tmp_path), "a") == "0-3"

    def test_who_is_admitted_again_gets_others_instead(self, tmp_path: Path) -> None:
        allocate(cpu_plugin(tmp_path), "a", "own", 4)
        after = cpu_plugin(tmp_path, machine=without(MACHINE, "2-3"))
        wanted = ask("a", after.book.roles["own"], 4)
        assert after.hints(wanted) == (Hint(0b01, preferred=True), Hint(0b11, preferred=False))
        assert allocate(after, "a", "own", 4) == "0-1,4-5"

    def test_who_lost_all_shares_the_pool(self, tmp_path: Path) -> None:
        allocate(cpu_plugin(tmp_path), "a", "own", 2)
        after = cpu_plugin(tmp_path, machine=without(MACHINE, "0-1"))
        assert has(after, "a") == "2-15"


class TestPoolsThatGo:
    RENAMED = POOLS.replace("pools.a", "pools.c").replace('"a"', '"c"')

    def test_containers_run_where_nobody_is_alone(self, tmp_path: Path) -> None:
        """There is no CPU in the pool shared, which they would use otherwise."""
        before = cpu_plugin(tmp_path, POOLS.replace("size = 4", "size = 2"))
        allocate(before, "web", "web", 1)
        assert allocate(before, "own", "own", 2) == "14-15"
        with capture_logs() as logs:
            after = cpu_plugin(tmp_path, self.RENAMED)
        assert has(after, "web") == "0-13"
        assert [each["reason"] for each in logs if each["event"] == "trouble"] == [
            "default/name-of-web, container main, shares pool a, which is gone: it runs on 0-13"
        ]

    def test_nor_are_those_left_out_whom_nothing_was_left_for(self, tmp_path: Path) -> None:
        """They share what no pool has; then pools have everything."""
        before = cpu_plugin(tmp_path, ROLES + "[roles.any]\n")
        allocate(before, "any", "any", 1)
        listed = '[pools.a]\ncpus = "0-7"\n[pools.b]\ncpus = "8-15"\n'
        with capture_logs() as logs:
            after = cpu_plugin(tmp_path, listed)
        assert has(after, "any") == "0-15"
        assert logs[-1]["reason"].startswith("pools stay as they are: no CPU would be left for")
        assert "in which no CPU is left: it runs on 0-15" in logs[-2]["reason"]

    def test_others_are_admitted_nevertheless(self, tmp_path: Path) -> None:
        allocate(cpu_plugin(tmp_path, POOLS), "web", "web", 1)
        after = cpu_plugin(tmp_path, self.RENAMED)
        assert allocate(after, "new", "web", 1) == str(after.state.pools["c"])

    def test_trouble_is_told_once(self, tmp_path: Path) -> None:
        allocate(cpu_plugin(tmp_path, POOLS), "web", "web", 1)
        plugin = cpu_plugin(tmp_path, self.RENAMED)
        with capture_logs() as logs:
            plugin.step()
            plugin.step()
        assert logs == []


def test_cpus_that_are_reserved_now_are_shared_when_their_owner_ends(tmp_path: Path) -> None:
    before = cpu_plugin(tmp_path)
    allocate(before, "a", "own", 2)
    after = cpu_plugin(tmp_path, ROLES + '[reserved]\ncpus = "0-3"\n[roles.other]\n')
    assert allocate(after, "shares", "other", 1) == "2-15"
    after.keep(after.state.without("a"))
    assert has(after, "shares") == "0-15"


def test_a_file_whose_outcome_cannot_be_kept_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StateNotSaved("no space")

    plugin = cpu_plugin(tmp_path)
    before = plugin.book, plugin.cpus, plugin.state
    monkeypatch.setattr(PluginStore, "save", full)
    with pytest.raises(StateNotSaved):
        plugin.adopt(parse(POOLS, MACHINE))
    assert (plugin.book, plugin.cpus, plugin.state) == before


def test_a_numa_node_that_goes_leaves_the_others_bound(tmp_path: Path) -> None:
    def plugin(machine: Machine) -> MemoryPlugin:
        return MemoryPlugin(machine, parse(ROLES, machine), PluginStore(tmp_path / "memory.json"))

    before = plugin(MACHINE)
    own = before.book.roles["own"]
    for pod, amount in (("both", 2**30 + 1), ("more", 1)):
        before.keep(before.state_with(ask(pod, own, amount, resource="memory")))
    shrunk = msgspec.structs.replace(
        MACHINE,
        nodes=(MACHINE.nodes[0], msgspec.structs.replace(MACHINE.nodes[1], memory=0)),
    )
    with capture_logs() as logs:
        after = plugin(shrunk)
    assert [after.info(each).allocation_result for each in after.state.holdings] == ["0", "0"]
    assert logs[0]["reason"] == (
        "default/name-of-both, container main, is bound to NUMA nodes 0-1, of which 1 are not there"
    )
    with pytest.raises(Impossible, match="node 0: 0 of memory free"):
        after.state_with(ask("new", own, 1, resource="memory"))
    assert plugin(MACHINE).state == before.state


def test_a_nic_that_goes_is_replaced_when_the_container_is_admitted_again(tmp_path: Path) -> None:
    def plugin(machine: Machine) -> NicPlugin:
        return NicPlugin(machine, parse(ROLES, machine), PluginStore(tmp_path / "NIC.json"))

    before = plugin(MACHINE)
    wanted = ask("a", before.book.roles["own"], 0, resource="NIC")
    before.keep(before.state_with(wanted))
    after = plugin(msgspec.structs.replace(MACHINE, nics=NICS[1:]))
    after.keep(after.state_with(wanted))
    assert [each.nic for each in (*before.state.holdings, *after.state.holdings)] == [
        "eth0",
        "eth1",
    ]


class TestIsolatedCpus:
    MACHINE = synthetic(sockets=2, cores=4, threads=2, isolated=CpuSet.parse("4-7"))
    LISTED = ROLES + '[pools.quiet]\ncpus = "4-7"\n[roles.quiet]\n'
    LISTED += 'cpu = { pool = "quiet", exclusive = true }\n'

    def test_they_are_in_no_pool(self, tmp_path: Path) -> None:
        plugin = cpu_plugin(tmp_path, ROLES + "[pools.a]\nsize = 8\n", self.MACHINE)
        assert {name: str(cpus) for name, cpus in plugin.state.pools.items()} == {
            "a": "0-3,8-11",
            "shared": "12-15",
        }
        with pytest.raises(Impossible, match="4 are free in pool shared"):
            allocate(plugin, "a", "own", 5)

    def test_so_pools_cannot_count_on_them(self) -> None:
        with pytest.raises(BadRoles, match="add up to 13 CPUs; 12 are left for them"):
            parse("[pools.a]\nsize = 13\n", self.MACHINE)

    def test_but_for_one_that_lists_them(self, tmp_path: Path) -> None:
        plugin = cpu_plugin(tmp_path, self.LISTED, self.MACHINE)
        assert str(plugin.state.pools["shared"]) == "0-3,8-15"
        assert allocate(plugin, "a", "quiet", 2) == "4-5"


ROLE_FILES = [ROLES, POOLS, TestPoolsThatGo.RENAMED, ROLES + '[reserved]\ncpus = "0-1"\n']


@given(st.data())
def test_whatever_changes_nobody_has_what_is_another_s_and_all_have_something(
    data: st.DataObject,
) -> None:
    state = CpuState()
    for _ in range(data.draw(st.integers(1, 6))):
        offline = data.draw(st.sampled_from(["", "", "3", "0-1", "6-7,14"]))
        machine = without(MACHINE, offline)
        roles = data.draw(st.sampled_from(ROLE_FILES if not offline else [ROLES]))
        cpus = Cpus(machine, parse(roles, machine))
        held = {each.key: each.cpus for each in state.holdings}
        state = cpus.settled(remembered(cpus, state))
        assert {each.key: each.cpus for each in state.holdings} == held
        for pod in data.draw(st.lists(st.sampled_from("abcd"), max_size=4)):
            role = data.draw(st.sampled_from([*cpus.book.roles.values()]))
            wanted = ask(pod, role, data.draw(st.integers(1, 6)))
            try:
                hints.hints(cpus, state, wanted)
                state = cpus.allocate(state, wanted)
            except Impossible:
                continue
        owned = [cpu for each in state.holdings for cpu in each.cpus]
        assert len(owned) == len(set(owned))
        for each in state.holdings:
            assert cpus.set_of(state, each)
            assert cpus.set_of(state, each) <= machine.online
            # If all CPUs but some that went offline are somebody's own, there is no other way.
            if not cpus.own(each) and cpus.common - state.held:
                assert not cpus.set_of(state, each) & state.held
