"""Who is bound to which NUMA nodes: groups, huge pages, and what is left."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.node.common.cpus import CpuSet
from dovetail.node.plugins.common.requests import Impossible, PluginRequest
from dovetail.node.plugins.common.role_file import parse
from dovetail.node.plugins.common.roles import ELSE
from dovetail.node.plugins.common.store import decode_state, encode_state
from dovetail.node.plugins.memory.state import Memory, MemoryState
from dovetail.node.topology import Hugepages, Machine, synthetic

GI = 2**30

ROLES = """
[reserved]
memory = { 0 = "1Gi" }

[roles.bound]
memory = { bind = true }

[roles.single]
memory = { bind = true, numa = "single" }

[roles.alone]
memory = { bind = true }
numa_exclusive = true
"""

FOUR = synthetic(
    sockets=2,
    numa_per_socket=2,
    cores=1,
    memory=10 * GI,
    hugepages={2 * 2**20: Hugepages(total=1024, free=1024)},
)
"""Of 10 Gi on each node, 2 Gi are huge pages; of node 0, 1 Gi is reserved."""


class Node:
    def __init__(self, machine: Machine = FOUR) -> None:
        self.memory = Memory(machine, parse(ROLES, machine))
        self.state = MemoryState()

    def ask(
        self,
        pod: str,
        role: str,
        gi: int,
        *,
        pages: int = 0,
        container: str = "main",
        init: bool = False,
        nodes: str | None = None,
        preferred: bool = True,
    ) -> PluginRequest:
        amounts = {"memory": gi * GI, "hugepages-2Mi": pages * GI}
        return PluginRequest(
            pod=pod,
            namespace="default",
            name=f"name-of-{pod}",
            container=container,
            init=init,
            role=self.memory.book.roles.get(role, ELSE),
            amounts={name: Fraction(amount) for name, amount in amounts.items() if amount},
            nodes=None if nodes is None else CpuSet.parse(nodes),
            preferred=preferred,
        )

    def hints(self, *args: object, **more: object) -> dict[str, bool] | None:
        found = self.memory.hints(self.state, self.ask(*args, **more))  # type: ignore[arg-type]
        return None if found is None else {str(each.nodes): each.preferred for each in found}

    def allocate(self, *args: object, **more: object) -> tuple[str, dict[int, int]]:
        """The nodes, and the Gi on each."""
        wanted = self.ask(*args, **more)  # type: ignore[arg-type]
        self.state = self.memory.allocate(self.state, wanted)
        holding = self.state.of(wanted.pod, wanted.container)
        assert holding
        given = holding.given.get("memory", {})
        return str(holding.nodes), {node: amount // GI for node, amount in given.items()}


def test_reserved_memory_and_huge_pages_are_not_there_to_be_given() -> None:
    found = Node().memory.allocatable
    assert found["memory"] == {0: 7 * GI, 1: 8 * GI, 2: 8 * GI, 3: 8 * GI}
    assert found["hugepages-2Mi"] == dict.fromkeys(range(4), 2 * GI)


def test_who_is_not_to_be_bound_has_no_preference() -> None:
    node = Node()
    assert node.hints("a", "", 4) is None
    assert node.allocate("a", "", 4) == ("", {})


def test_as_few_nodes_as_it_takes_are_preferred() -> None:
    found = Node().hints("a", "bound", 8)
    assert found
    assert [nodes for nodes, preferred in found.items() if preferred] == ["1", "2", "3"]
    assert found["0-1"] is False


def test_who_is_resized_stays_where_it_is_if_it_can() -> None:
    node = Node()
    node.allocate("other", "bound", 7)
    assert node.allocate("a", "bound", 2) == ("1", {1: 2})
    node.state = node.state.without("other")
    assert node.allocate("a", "bound", 4) == ("1", {1: 4}), "node 0 has room, too"
    assert node.allocate("a", "bound", 1) == ("1", {1: 1})
    assert node.allocate("a", "bound", 3, nodes="2") == ("2", {2: 3}), "what is agreed on counts"
    assert node.allocate("a", "bound", 12) == ("0-1", {0: 7, 1: 5}), "it can't"


def test_memory_and_huge_pages_are_had_on_the_same_nodes() -> None:
    node = Node()
    node.allocate("a", "bound", 1, pages=2, nodes="1")
    assert "1" not in (node.hints("b", "single", 1, pages=1) or {})
    assert "1" in (node.hints("b", "single", 1) or {})


def test_a_node_belongs_to_one_group() -> None:
    node = Node()
    assert node.allocate("a", "bound", 10, nodes="1-2") == ("1-2", {1: 8, 2: 2})
    assert list(node.hints("b", "bound", 1) or {}) == ["0", "3", "0,3", "1-2"]
    assert node.allocate("b", "bound", 4, nodes="1-2") == ("1-2", {2: 4})
    assert node.allocate("c", "bound", 1, nodes="3") == ("3", {3: 1})
    assert list(node.hints("d", "bound", 1) or {}) == ["0", "3", "1-2"]


def test_a_hint_that_is_too_small_is_extended_to_a_group_with_it() -> None:
    node = Node()
    assert node.allocate("a", "bound", 10, nodes="2") == ("0,2", {0: 7, 2: 3})
    assert node.allocate("b", "bound", 1, nodes="2", preferred=False) == ("0,2", {2: 1})


def test_other_nodes_do_where_these_are_only_a_wish() -> None:
    """The policy best-effort turns nobody away."""
    node = Node()
    node.allocate("a", "bound", 16, nodes="2-3")
    with pytest.raises(Impossible, match=r"node 2: 0 of memory free, in a group with nodes 2-3"):
        node.allocate("b", "bound", 1, nodes="2")
    assert node.allocate("b", "bound", 1, nodes="2", preferred=False) == ("0", {0: 1})


def test_single_is_one_node_or_none() -> None:
    with pytest.raises(Impossible) as caught:
        Node().allocate("a", "single", 9)
    assert str(caught.value) == (
        "default/name-of-a wants 9Gi of memory (role single); node 0: 7Gi of memory free; "
        "node 1: 8Gi of memory free; node 2: 8Gi of memory free; node 3: 8Gi of memory free"
    )


def test_nodes_for_itself() -> None:
    node = Node()
    node.allocate("a", "alone", 1, nodes="0")
    node.allocate("b", "bound", 1, nodes="1")
    assert list(node.hints("c", "alone", 1) or {}) == ["2", "3", "2-3"]
    assert "0" not in (node.hints("c", "bound", 1) or {})


def test_what_init_containers_had_is_had_again() -> None:
    node = Node()
    node.allocate("a", "bound", 8, container="init", init=True, nodes="1")
    assert node.allocate("a", "bound", 6, nodes="1") == ("1", {1: 6})
    # Others see the larger of both.
    assert "1" not in (node.hints("b", "single", 1) or {})
    node.state = node.state.without("a")
    assert "1" in (node.hints("b", "single", 8) or {})


def test_unknown_huge_pages_are_told() -> None:
    node = Node(synthetic(memory=10 * GI))
    with pytest.raises(Impossible, match="this machine has no hugepages-2Mi; it has memory"):
        node.allocate("a", "bound", 1, pages=1)


@given(st.data())
def test_whatever_happens_nothing_is_given_twice(data: st.DataObject) -> None:
    node = Node()
    for _ in range(data.draw(st.integers(1, 10))):
        pod = data.draw(st.sampled_from("abcde"))
        if data.draw(st.integers(0, 3)) == 0:
            node.state = node.state.without(pod)
            continue
        before = node.state
        try:
            node.allocate(
                pod,
                data.draw(st.sampled_from(["bound", "single", "alone", ""])),
                data.draw(st.integers(1, 20)),
                pages=data.draw(st.integers(0, 3)),
                nodes=data.draw(st.sampled_from([None, "0", "1-2", "0-3"])),
            )
        except Impossible:
            assert node.state is before
        groups: dict[int, CpuSet] = {}
        for each in node.state.holdings:
            for name, amount in each.wanted.items():
                assert sum(each.given[name].values()) == amount
                assert each.given[name].keys() <= each.nodes
            for at in each.nodes:
                assert groups.setdefault(at, each.nodes) == each.nodes, "one group for each node"
        for name, by_node in node.memory.allocatable.items():
            left = node.memory.free(node.state.holdings)[name]
            assert all(left[at] >= 0 for at in by_node)
        assert decode_state(encode_state(node.state), MemoryState) == node.state


def test_a_preferred_hint_without_room_is_refused_rather_than_widened() -> None:
    """Others came between the hint and the allocation: their group would be the only place."""
    node = Node()
    node.allocate("a", "bound", 10, nodes="1-2")
    with pytest.raises(Impossible, match="wants 4Gi of memory"):
        node.allocate("b", "bound", 4, nodes="1")
    assert node.allocate("b", "bound", 4, nodes="1", preferred=False) == ("1-2", {2: 4})


def test_a_preferred_hint_is_widened_to_what_is_preferred() -> None:
    """By an agent that asked others only: two nodes are as few as so much takes."""
    assert Node().allocate("a", "bound", 10, nodes="1") == ("0-1", {0: 7, 1: 3})


def test_of_a_whole_pods_nodes_a_container_gets_just_these() -> None:
    """The pod needs both, though the container would find room on one."""
    node = Node()
    assert node.allocate("a", "bound", 5, nodes="1-2") == ("1-2", {1: 5})


def test_who_grows_stays_where_it_is_if_there_is_room() -> None:
    node = Node()
    node.allocate("a", "bound", 2, nodes="2")
    assert node.hints("a", "bound", 3) == {"2": True}
    node.allocate("b", "bound", 5, nodes="2")
    assert "2" not in (node.hints("a", "bound", 4) or {})
