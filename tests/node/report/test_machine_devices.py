"""The devices of a machine, as the node agent publishes them."""

from __future__ import annotations

from dovetail.core.selectors.selector import Expression, Operator, compile_selector
from dovetail.node.report.machine_devices import devices_of
from dovetail.node.topology import Machine, Nic
from dovetail.node.topology.machine import Hugepages, NumaNode

GIB = 2**30

MACHINE = Machine(
    cpus=(),
    nodes=(
        NumaNode(id=0, hugepages={GIB: Hugepages(16, 16), 2 * 2**20: Hugepages(0, 0)}),
        NumaNode(id=1, hugepages={GIB: Hugepages(8, 2)}),
    ),
    nics=(
        Nic(name="eth0", numa=0, speed=100_000, mac="02:00:00:00:00:01"),
        Nic(name="eth1", numa=1),
    ),
)


def test_nics_have_speed_and_place() -> None:
    eth0, eth1, *_ = devices_of("n1", MACHINE)
    assert (eth0.name, eth0.kind, eth0.units, eth0.healthy) == ("eth0", "nic", 1, True)
    assert eth0.properties == {"speed": "100000Mbps", "numa": "0", "mac": "02:00:00:00:00:01"}
    assert eth1.properties == {"numa": "1"}


def test_a_nic_without_a_link_is_not_healthy() -> None:
    assert [device.healthy for device in devices_of("n1", MACHINE)[:2]] == [True, False]


def test_hugepages_are_a_pool_for_each_size_and_numa_node() -> None:
    pools = devices_of("n1", MACHINE)[2:]
    assert [(pool.name, pool.units) for pool in pools] == [
        ("hugepages-1Gi-numa0", 16),
        ("hugepages-1Gi-numa1", 8),
    ]
    assert pools[0].properties == {"size": "1Gi", "numa": "0"}


def test_the_classes_of_the_specification_select_them() -> None:
    fast = Expression("speed", Operator.GT_EQ, ("40GBPS",))
    large = Expression("size", Operator.GT_EQ, ("1G",))
    devices = devices_of("n1", MACHINE)

    def names(*expressions: Expression) -> list[str]:
        meets = compile_selector((expressions,))
        return [device.name for device in devices if meets(device.attributes)]

    assert names(Expression("Kind", Operator.IN, ("nic",)), fast) == ["eth0"]
    assert names(Expression("Kind", Operator.IN, ("huge-pages",)), large) == [
        "hugepages-1Gi-numa0",
        "hugepages-1Gi-numa1",
    ]
