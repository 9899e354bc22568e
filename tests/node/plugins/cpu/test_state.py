"""Who has which CPUs: what is promised holds whatever happens, and over restarts."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.node.common.cpus import CpuSet
from dovetail.node.plugins.common.requests import Impossible
from dovetail.node.plugins.common.role_file import parse
from dovetail.node.plugins.common.roles import ELSE, SHARED
from dovetail.node.plugins.common.store import decode_state, encode_state
from dovetail.node.plugins.cpu.sizes import remembered
from dovetail.node.plugins.cpu.state import CpuHolding, Cpus, CpuState
from dovetail.node.topology import Machine, synthetic
from tests.node.plugins.rig import ask

SMALL = synthetic(sockets=2, cores=4, threads=2)
"""0-7 and 8-15."""

ROLES = """
[reserved]
cpus = "0-1,8-9"

[pools.online]
size = 4
min = 2

[roles.own]
cpu = { exclusive = true }

[roles.cores]
cpu = { exclusive = true, options = ["full-pcpus-only"] }

[roles.one-node]
cpu = { exclusive = true, numa = "single" }

[roles.from-pool]
cpu = { exclusive = true, pool = "online" }

[roles.alone]
cpu = { exclusive = true }
numa_exclusive = true

[roles.web]
cpu = { pool = "online" }

[roles.strict]
cpu = { options = ["strict-cpu-reservation"] }
"""


def started(roles: str = ROLES, machine: Machine = SMALL) -> tuple[Cpus, CpuState]:
    cpus = Cpus(machine, parse(roles, machine))
    return cpus, cpus.settled(remembered(cpus, CpuState()))


def given_to(cpus: Cpus, state: CpuState, pod: str, container: str = "main") -> str:
    holding = state.of(pod, container)
    assert holding
    return str(cpus.set_of(state, holding))


class Node:
    """A state that goes on."""

    def __init__(self, roles: str = ROLES, machine: Machine = SMALL) -> None:
        self.cpus, self.state = started(roles, machine)

    def allocate(self, pod: str, role: str, amount: int | Fraction, **more: object) -> str:
        chosen = self.cpus.book.roles.get(role, ELSE)
        wanted = ask(pod, chosen, amount, **more)  # type: ignore[arg-type]
        self.state = self.cpus.allocate(self.state, wanted)
        return given_to(self.cpus, self.state, pod, wanted.container)

    def now(self, pod: str, container: str = "main") -> str:
        return given_to(self.cpus, self.state, pod, container)


class TestSharing:
    def test_a_pod_of_no_role_shares_what_no_pool_has_and_the_reserved(self) -> None:
        node = Node()
        assert str(node.state.pools["online"]) == "2-3,10-11"
        assert node.allocate("a", "", 2) == "0-1,4-9,12-15"

    def test_reserved_cpus_are_kept_from_roles_that_say_so(self) -> None:
        assert Node().allocate("a", "strict", 2) == "4-7,12-15"

    def test_exclusive_cpus_leave_the_pool_and_come_back(self) -> None:
        """A set operation whose result is dropped would leave them in (a defect elsewhere)."""
        node = Node()
        node.allocate("shares", "web", 1)
        assert node.allocate("owns", "from-pool", 2) == "2-3"
        assert node.now("shares") == "10-11"
        node.state = node.state.without("owns")
        assert node.now("shares") == "2-3,10-11"

    def test_fractions_of_a_cpu_share_the_pool_of_the_role(self) -> None:
        assert Node().allocate("a", "from-pool", Fraction(3, 2)) == "2-3,10-11"

    def test_a_pool_keeps_its_least(self) -> None:
        node = Node()
        assert node.allocate("a", "from-pool", 2)
        with pytest.raises(Impossible, match="pool online would be left 1 CPUs; min is 2"):
            node.allocate("b", "from-pool", 1)

    def test_who_shares_is_left_something_to_run_on(self) -> None:
        node = Node("[roles.own]\ncpu = { exclusive = true }\n")
        node.allocate("shares", "", 1)
        node.allocate("owns", "own", 15)
        with pytest.raises(Impossible, match="no CPU would be left for default/name-of-shares"):
            node.allocate("more", "own", 1)


class TestOwning:
    def test_asked_again_it_is_the_same(self) -> None:
        node = Node()
        first = node.allocate("a", "own", 3)
        state = node.state
        assert node.allocate("a", "own", 3) == first
        assert node.state is state

    def test_more_or_fewer_keep_what_they_can(self) -> None:
        node = Node()
        node.allocate("a", "own", 2)
        node.allocate("b", "own", 2)
        assert node.now("a") == "4-5"
        assert node.allocate("a", "own", 4) == "4-5,12-13"
        assert node.allocate("a", "own", 2) == "4-5"

    def test_whole_cores_only(self) -> None:
        node = Node()
        node.allocate("a", "own", 1)
        assert node.now("a") == "4"
        assert node.allocate("b", "cores", 2) == "6-7"
        with pytest.raises(Impossible, match="3 CPUs are no multiple of 2 threads"):
            node.allocate("c", "cores", 3)

    def test_one_node_or_none(self) -> None:
        node = Node()
        node.allocate("a", "own", 2, nodes=CpuSet([0]))
        assert node.allocate("b", "one-node", 3) == "12-14"
        with pytest.raises(Impossible) as caught:
            node.allocate("c", "one-node", 3)
        assert str(caught.value) == (
            "default/name-of-c wants 3 CPUs of its own on one NUMA node (role one-node); "
            "3 are free in pool shared: node 0: 2 free; node 1: 1 free"
        )

    def test_one_node_is_that_of_the_hint(self) -> None:
        assert Node().allocate("a", "one-node", 2, nodes=CpuSet([1])) == "12-13"

    def test_nodes_for_itself(self) -> None:
        node = Node()
        assert node.allocate("a", "alone", 2) == "4-5"
        assert node.allocate("a", "alone", 2, container="second") == "6-7"
        assert node.allocate("b", "own", 2) == "12-13"
        with pytest.raises(Impossible, match="node 1: default/name-of-b is there, and role alone"):
            node.allocate("c", "alone", 1)
        with pytest.raises(Impossible, match=r"node 0: default/name-of-a has it for itself"):
            node.allocate("c", "own", 3)

    def test_what_init_containers_had_is_had_again(self) -> None:
        node = Node()
        assert node.allocate("a", "own", 4, container="first", init=True) == "4-7"
        assert node.allocate("a", "own", 2, container="second", init=True) == "4-5"
        assert node.allocate("a", "own", 2, container="main") == "4-5"
        assert node.allocate("a", "own", 2, container="other") == "6-7"
        assert node.allocate("b", "own", 2) == "12-13"

    def test_sidecars_that_stay_keep_theirs(self) -> None:
        node = Node()
        assert node.allocate("a", "own", 2, container="sidecar") == "4-5"
        assert node.allocate("a", "own", 2, container="main") == "6-7"


NAMES = ["own", "cores", "one-node", "from-pool", "alone", "web", "strict", ""]


def assert_sound(cpus: Cpus, state: CpuState) -> None:
    everything = [cpu for each in state.pools.values() for cpu in each]
    assert sorted(everything) == sorted(cpus.allocatable), "every CPU is in one pool"
    owners: dict[int, CpuHolding] = {}
    for each in state.holdings:
        assert not each.cpus & cpus.reserved
        for cpu in each.cpus:
            other = owners.setdefault(cpu, each)
            assert other is each or (other.pod == each.pod and (other.init or each.init))
            if other.init:
                owners[cpu] = each
        shared = cpus.set_of(state, each)
        assert shared
        if not each.cpus:
            assert not shared & state.held


@given(st.data())
def test_whatever_happens_nobody_has_what_is_another_s(data: st.DataObject) -> None:
    node = Node()
    cpus = node.cpus
    for _ in range(data.draw(st.integers(1, 12))):
        pod = data.draw(st.sampled_from("abcde"))
        match data.draw(st.sampled_from(["allocate", "allocate", "allocate", "remove", "resize"])):
            case "allocate":
                with suppress(Impossible):
                    node.allocate(
                        pod,
                        data.draw(st.sampled_from(NAMES)),
                        Fraction(data.draw(st.integers(1, 16)), data.draw(st.sampled_from([1, 2]))),
                        container=data.draw(st.sampled_from(["x", "y"])),
                        init=data.draw(st.booleans()),
                        nodes=data.draw(st.sampled_from([None, CpuSet([0]), CpuSet([0, 1])])),
                    )
            case "remove":
                node.state = node.state.without(pod)
                assert not [each for each in node.state.holdings if each.pod == pod]
            case "resize":
                size = data.draw(st.integers(2, 12))
                after = cpus.settled(node.state, {"online": size})
                try:
                    cpus.nobody_without(after, node.state)
                except Impossible:
                    continue
                assert len(after.pools["online"]) == size
                node.state = after
        assert_sound(cpus, node.state)
        assert decode_state(encode_state(node.state), CpuState) == node.state, (
            "a restart changes nothing"
        )


def test_pools_without_a_table_any_more_are_shared() -> None:
    node = Node()
    node.allocate("a", "web", 1)
    cpus = Cpus(SMALL, parse('[reserved]\ncpus = "0-1,8-9"\n', SMALL))
    state = cpus.settled(remembered(cpus, node.state))
    assert list(state.pools) == [SHARED]
    assert given_to(cpus, state, "a") == "0-15"
