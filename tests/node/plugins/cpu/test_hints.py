"""Where a container's own CPUs could be, and which of these places are good."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest

from dovetail.node.common.cpus import CpuSet
from dovetail.node.plugins.common.requests import Impossible
from dovetail.node.plugins.common.role_file import parse
from dovetail.node.plugins.cpu.hints import hints
from dovetail.node.plugins.cpu.sizes import remembered
from dovetail.node.plugins.cpu.state import Cpus, CpuState
from dovetail.node.topology import Machine, NumaNode, synthetic
from tests.node.plugins.rig import ask, spec_machine

ROLES = """
[roles.own]
cpu = { exclusive = true }

[roles.single]
cpu = { exclusive = true, numa = "single" }

[roles.sockets]
cpu = { exclusive = true, options = ["align-by-socket"] }

[roles.apart]
cpu = { exclusive = true }
anti_affinity = ["own"]
"""

FOUR = synthetic(sockets=2, numa_per_socket=2, cores=4, threads=1)
"""Nodes of 4 CPUs, two to a socket."""


class Node:
    def __init__(self, machine: Machine) -> None:
        self.cpus = Cpus(machine, parse(ROLES, machine))
        self.state = self.cpus.settled(remembered(self.cpus, CpuState()))

    def hold(self, pod: str, role: str, amount: int, **more: object) -> None:
        wanted = ask(pod, self.cpus.book.roles[role], amount, **more)  # type: ignore[arg-type]
        self.state = self.cpus.allocate(self.state, wanted)

    def hints(
        self, role: str, amount: int | Fraction, pod: str = "new", **more: object
    ) -> dict[str, bool] | None:
        wanted = ask(pod, self.cpus.book.roles[role], amount, **more)  # type: ignore[arg-type]
        found = hints(self.cpus, self.state, wanted)
        return None if found is None else {str(each.nodes): each.preferred for each in found}


def test_no_preference_for_who_shares() -> None:
    assert Node(FOUR).hints("own", Fraction(1, 2)) is None


def test_as_few_nodes_as_an_empty_machine_would_need_are_preferred() -> None:
    node = Node(spec_machine())
    assert node.hints("own", 20) == {"0": True, "1": True, "0-1": False}
    assert node.hints("own", 60) == {"0-1": True}


def test_what_is_free_does_not_count_for_preference() -> None:
    node = Node(spec_machine())
    node.hold("a", "own", 30, nodes=CpuSet([0]))
    node.hold("b", "own", 30, nodes=CpuSet([1]))
    assert node.hints("own", 20) == {"0-1": False}


def test_single_means_one_node() -> None:
    assert Node(FOUR).hints("single", 4) == {"0": True, "1": True, "2": True, "3": True}
    with pytest.raises(Impossible, match="wants 5 CPUs of its own on one NUMA node"):
        Node(FOUR).hints("single", 5)


def test_nodes_of_one_socket_are_as_good_if_sockets_count() -> None:
    found = Node(FOUR).hints("sockets", 2)
    assert found
    good = [nodes for nodes, preferred in found.items() if preferred]
    assert good == ["0", "1", "2", "3", "0-1", "2-3"]
    assert [
        nodes for nodes, preferred in (Node(FOUR).hints("own", 2) or {}).items() if preferred
    ] == ["0", "1", "2", "3"]


def test_nodes_that_are_barred_are_in_no_hint() -> None:
    node = Node(FOUR)
    node.hold("a", "own", 1)
    assert node.hints("apart", 2) == {
        "1": True,
        "2": True,
        "3": True,
        "1-2": False,
        "1,3": False,
        "2-3": False,
        "1-3": False,
    }


def test_what_can_be_had_again_is_not_left_behind() -> None:
    node = Node(FOUR)
    node.hold("a", "own", 2, container="init", init=True, nodes=CpuSet([2]))
    assert node.hints("own", 2, "a") == {
        "2": True,
        "0,2": False,
        "1-2": False,
        "2-3": False,
        "0-2": False,
        "0,2-3": False,
        "1-3": False,
        "0-3": False,
    }


def test_who_wants_more_or_less_keeps_what_it_can() -> None:
    node = Node(FOUR)
    node.hold("a", "own", 6, nodes=CpuSet([2, 3]))
    assert [*(node.hints("own", 7, "a") or {})][:2] == ["2-3", "0,2-3"]
    fewer = node.hints("own", 3, "a") or {}
    assert [nodes for nodes, preferred in fewer.items() if preferred] == ["2"]


def test_a_node_without_cpus_is_in_no_hint() -> None:
    lonely = NumaNode(id=2, memory=2**30, distances={0: 20, 1: 20, 2: 10})
    machine = msgspec.structs.replace(spec_machine(), nodes=(*spec_machine().nodes, lonely))
    node = Node(machine)
    assert node.hints("own", 20) == {"0": True, "1": True, "0-1": False}
    node.hold("a", "single", 20, nodes=CpuSet([2]))
    assert str(node.state.held) == "0-19"


def test_who_has_cpus_is_hinted_to_where_they_are() -> None:
    node = Node(FOUR)
    node.hold("a", "own", 2, nodes=CpuSet([3]))
    assert node.hints("own", 2, "a") == {"3": True}
    node.hold("b", "own", 6, nodes=CpuSet([0, 1, 2]))
    assert node.hints("own", 6, "b") == {"0,2": True}


def test_a_preferred_hint_without_room_is_refused() -> None:
    """Others came between the hint and the allocation."""
    node = Node(FOUR)
    node.hold("a", "own", 3, nodes=CpuSet([0]))
    with pytest.raises(
        Impossible, match=r"agreed on is NUMA node 0; 13 are free .* node 0: 1 free"
    ):
        node.hold("b", "own", 2, nodes=CpuSet([0]))
    node.hold("b", "own", 2, nodes=CpuSet([0]), preferred=False)
    node.hold("c", "sockets", 3, nodes=CpuSet([0]))


def test_for_a_whole_pod_its_own_cpus_are_free() -> None:
    node = Node(FOUR)
    node.hold("new", "own", 2, nodes=CpuSet([1]), container="one")
    node.hold("new", "own", 2, nodes=CpuSet([1]), container="two")
    node.hold("a", "own", 4, nodes=CpuSet([0]))
    assert node.hints("own", 4, container="") == {"1": True}, "where it is"
    found = node.hints("own", 6, container="")
    assert found == {"1-2": True, "1,3": True, "0-2": False, "0-1,3": False} | {
        "1-3": False,
        "0-3": False,
    }, "and it stays there when it grows"
    shrunk = node.hints("own", 3, container="") or {}
    assert [nodes for nodes, preferred in shrunk.items() if preferred] == ["1"], "or shrinks"
