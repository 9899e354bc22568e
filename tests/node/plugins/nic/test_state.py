"""Which NIC a container uses."""

from __future__ import annotations

import pytest

from dovetail.node.common.cpus import CpuSet
from dovetail.node.plugins.common.requests import Impossible
from dovetail.node.plugins.common.role_file import parse
from dovetail.node.plugins.common.roles import ELSE
from dovetail.node.plugins.nic.state import NicHolding, Nics, NicState, interfaces
from dovetail.node.topology import Nic, synthetic
from tests.node.plugins.rig import ask

MACHINE = synthetic(
    cores=2,
    nics=(
        Nic(name="eth0", numa=0, speed=10_000, addresses=("fe80::1", "fd00::1", "10.0.0.1")),
        Nic(name="eth1", numa=1, speed=10_000, addresses=("fd00::2",)),
        Nic(name="eth2", numa=1, speed=25_000),
    ),
)
ROLES = """
[roles.near]
nic = { name_env = "NIC" }

[roles.fast]
nic = { bandwidth = true }
"""


class Node:
    def __init__(self, roles: str = ROLES) -> None:
        self.nics = Nics(MACHINE, parse(roles, MACHINE), "NIC")
        self.state = NicState()

    def allocate(
        self,
        pod: str,
        role: str,
        amount: int = 0,
        nodes: str | None = None,
        *,
        preferred: bool = True,
    ) -> NicHolding:
        near = None if nodes is None else CpuSet.parse(nodes)
        chosen = self.nics.book.roles.get(role, ELSE)
        wanted = ask(pod, chosen, amount, resource="NIC", nodes=near, preferred=preferred)
        self.state = self.nics.allocate(self.state, wanted)
        holding = self.state.of(pod, "main")
        assert holding
        return holding

    def hints(self, role: str, amount: int = 0, pod: str = "new") -> dict[str, bool] | None:
        chosen = self.nics.book.roles.get(role, ELSE)
        found = self.nics.hints(self.state, ask(pod, chosen, amount, resource="NIC"))
        return None if found is None else {str(each.nodes): each.preferred for each in found}


def test_a_role_without_nic_gets_none() -> None:
    node = Node()
    assert node.hints("") is None
    holding = node.allocate("a", "")
    assert holding.nic == ""
    assert node.nics.envs(holding) == {}


def test_the_least_used_near_one_by_name() -> None:
    node = Node()
    assert node.hints("near") == {"0": True, "1": True, "0-1": False}
    chosen = [node.allocate(pod, "near", nodes="1").nic for pod in "abcd"]
    assert chosen == ["eth1", "eth2", "eth1", "eth2"]
    assert node.allocate("a", "near", nodes="0").nic == "eth1", "asked again, it is the same"
    node.state = node.state.without("a").without("c")
    assert node.allocate("e", "near", nodes="1").nic == "eth1"


def test_envs_are_of_addresses_that_others_can_reach() -> None:
    node = Node()
    holding = node.allocate("a", "near", nodes="0")
    assert node.nics.envs(holding) == {
        "AFFINITY_NIC_ADDR_IPV6": "fd00::1",
        "AFFINITY_NIC_ADDR_IPV4": "10.0.0.1",
        "NIC": "eth0",
    }
    assert node.nics.annotations(holding) == {}


def test_no_bandwidth_is_given_away_twice() -> None:
    node = Node()
    assert node.allocate("a", "fast", 20_000).nic == "eth2"
    assert node.hints("fast", 10_000) == {"0": True, "1": True, "0-1": False}
    assert node.allocate("b", "fast", 10_000, "1").nic == "eth1"
    assert node.hints("fast", 10_000) == {"0": True, "0-1": False}
    with pytest.raises(Impossible) as caught:
        node.allocate("c", "fast", 10_000, "1")
    assert str(caught.value) == (
        "default/name-of-c wants 10000 Mb/s of a NIC near to NUMA node 1 (role fast); eth0 is near "
        "to node 0, 10000 Mb/s free; eth1 is near to node 1, 0 Mb/s free; eth2 is near to node 1, "
        "5000 Mb/s free"
    )


def test_one_that_is_far_does_where_near_is_only_a_wish() -> None:
    """The policy best-effort turns nobody away."""
    node = Node("[roles.near]\nnic = {}\n[nics.eth0]\nignore = true\n")
    assert node.allocate("a", "near", nodes="0-1", preferred=False).nic == "eth1"
    assert node.allocate("b", "near", nodes="0", preferred=False).nic == "eth2"
    with pytest.raises(Impossible, match="wants a NIC near to NUMA node 0"):
        node.allocate("c", "near", nodes="0")


def test_a_nic_on_a_node_that_is_not_there_is_near_to_all() -> None:
    machine = synthetic(nics=(Nic(name="eth0", numa=7),))
    assert interfaces(machine, parse("", machine))["eth0"].numa is None


def test_the_file_knows_better_than_sysfs() -> None:
    book = parse(
        """
        [nics.eth0]
        ignore = true
        [nics.eth1]
        numa = 0
        ipv4 = "10.0.0.9"
        [nics.hidden]
        netns = "/var/run/netns/a"
        """,
        MACHINE,
    )
    found = interfaces(MACHINE, book)
    assert list(found) == ["eth1", "eth2", "hidden"]
    assert (found["eth1"].numa, found["eth1"].ipv4, found["eth1"].ipv6) == (
        0,
        "10.0.0.9",
        "fd00::2",
    )
    assert found["hidden"].netns == "/var/run/netns/a"


def test_a_nic_that_is_near_to_all_leaves_the_choice_of_nodes() -> None:
    assert Node(ROLES + "[nics.hidden]\n").hints("near") is None
