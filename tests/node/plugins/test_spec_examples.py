"""The examples of the specification, over sockets: exactly its sets, quantities and hints."""

from __future__ import annotations

import pytest

from dovetail.node.plugins.cpu.plugin import CpuPlugin
from dovetail.node.plugins.memory.plugin import MemoryPlugin
from dovetail.node.topology import Nic
from dovetail.node.wire.resource_plugin import (
    GET_RESOURCES_ALLOCATION,
    GetResourcesAllocationRequest,
    ResourceAllocationInfo,
)
from tests.node.plugins.rig import GB, directory, plugin, request, serving, spec_machine, with_hint

POD1, POD2, POD3 = (
    "054a696f-d176-488d-b228-d6046faaf67c",
    "fe8d9c25-6fb4-4983-908f-08e39ebeafe7",
    "26731da7-b283-488b-b232-cff611c914e1",
)

EXAMPLE_1 = """
[pools.online]
size = 76

[pools.offline]
size = 4

[roles.online-micro_service]
cpu = { pool = "online" }

[roles.ETL]
cpu = { pool = "offline" }
"""

RESERVED = """
[reserved]
cpus = "0-1,40-41"
memory = { 0 = "500Mi", 1 = "500Mi" }
"""

EXAMPLE_2 = f"""{RESERVED}
[roles.storage-service]
cpu = {{ exclusive = true, numa = "single" }}
memory = {{ bind = true, numa = "single" }}
anti_affinity = ["reranker"]

[roles.reranker]
cpu = {{ exclusive = true, numa = "single" }}
memory = {{ bind = true, numa = "single" }}
"""

EXAMPLE_3 = f"""{RESERVED}
[nics.eth0]
ipv6 = "fdbd:dc05:3:154::20"

[nics.eth1]
ipv6 = "fdbd:dc05:3:155::20"
netns = "/var/run/netns/ns1"

[roles.numa-enhancement]
cpu = {{ exclusive = true, numa = "single" }}
memory = {{ bind = true, numa = "single" }}
nic = {{}}
"""


def pool_of(info: ResourceAllocationInfo) -> tuple[str, float]:
    assert info.oci_property_name == "CpusetCpus"
    assert info.is_scalar_resource
    assert not info.is_node_resource
    assert info.resource_hints is None, "a pool has no NUMA preference"
    return info.allocation_result, info.allocated_quantity


def hints_of(info: ResourceAllocationInfo) -> list[tuple[tuple[int, ...], bool]]:
    assert info.resource_hints
    return [(each.nodes, each.preferred) for each in info.resource_hints.hints]


async def test_example_1_pools_and_their_adjustment() -> None:
    with directory() as made:
        cpu = plugin("cpu", spec_machine(), EXAMPLE_1, made)
        assert isinstance(cpu, CpuPlugin)
        async with serving(cpu, made / "cpu.sock") as caller:
            first = await caller.admit(request(POD1, "cpu", 4, "online-micro_service"))
            assert pool_of(first) == ("0-37,40-77", 76)
            second = await caller.admit(request(POD2, "cpu", 2, "ETL"))
            assert pool_of(second) == ("38-39,78-79", 4)
            third = await caller.admit(request(POD3, "cpu", 4, "online-micro_service"))
            assert pool_of(third) == ("0-37,40-77", 76)

            cpu.want({"online": 28, "offline": 52})

            answer = await caller.call(GET_RESOURCES_ALLOCATION, GetResourcesAllocationRequest())
            adjusted = {
                uid: pool_of(pod.container_resources["container0"].resource_allocation["cpu"])
                for uid, pod in answer.pod_resources.items()
            }
            assert adjusted == {
                POD1: ("0-13,40-53", 28),
                POD2: ("14-39,54-79", 52),
                POD3: ("0-13,40-53", 28),
            }


async def test_example_2_exclusive_numa_nodes_and_anti_affinity() -> None:
    with directory() as made:
        machine = spec_machine()
        cpu = plugin("cpu", machine, EXAMPLE_2, made)
        memory = plugin("memory", machine, EXAMPLE_2, made)
        async with (
            serving(cpu, made / "cpu.sock") as cpus,
            serving(memory, made / "memory.sock") as mems,
        ):
            wanted = request("pod1", "cpu", 20, "storage-service")
            assert await cpus.hints(wanted) == [((0,), True), ((1,), True)]
            given = await cpus.allocate(with_hint(wanted, (0,)))
            assert given.oci_property_name == "CpusetCpus"
            assert (given.allocation_result, given.allocated_quantity) == ("2-21", 20)
            assert hints_of(given) == [((0,), True)]

            wanted = request("pod1", "memory", 40 * GB, "storage-service")
            assert await mems.hints(wanted) == [((0,), True), ((1,), True)]
            given = await mems.allocate(with_hint(wanted, (0,)))
            assert given.oci_property_name == "CpusetMems"
            assert (given.allocation_result, given.allocated_quantity) == ("0", 1)
            assert given.topology_assignments == {0: 40 * GB}
            assert hints_of(given) == [((0,), True)]

            # There would be room on node 0, but the roles keep apart.
            wanted = request("pod2", "cpu", 10, "reranker")
            assert await cpus.hints(wanted) == [((1,), True)]
            given = await cpus.allocate(with_hint(wanted, (1,)))
            assert (given.allocation_result, given.allocated_quantity) == ("42-51", 10)
            assert hints_of(given) == [((1,), True)]

            wanted = request("pod2", "memory", 20 * GB, "reranker")
            assert await mems.hints(wanted) == [((1,), True)]
            given = await mems.allocate(with_hint(wanted, (1,)))
            assert (given.allocation_result, given.allocated_quantity) == ("1", 1)
            assert hints_of(given) == [((1,), True)]


@pytest.fixture
def two_nics() -> tuple[Nic, Nic]:
    return Nic(name="eth0", numa=0, speed=25_000), Nic(name="eth1", numa=1, speed=25_000)


async def test_example_3_shared_numa_affine_nics(two_nics: tuple[Nic, Nic]) -> None:
    with directory() as made:
        machine = spec_machine(two_nics)
        cpu = plugin("cpu", machine, EXAMPLE_3, made)
        memory = plugin("memory", machine, EXAMPLE_3, made)
        assert isinstance(memory, MemoryPlugin)
        nic = plugin("nic", machine, EXAMPLE_3, made)
        async with (
            serving(cpu, made / "cpu.sock") as cpus,
            serving(memory, made / "memory.sock") as mems,
            serving(nic, made / "NIC.sock") as nics,
        ):
            # "All related resources in NUMA node0 have been allocated".
            role = "numa-enhancement"
            await cpus.allocate(with_hint(request("pod0", "cpu", 38, role), (0,)))
            whole = memory.memory.allocatable["memory"][0]
            await mems.allocate(with_hint(request("pod0", "memory", whole, role), (0,)))

            for uid, expected in (("pod1", "42-51"), ("pod2", "52-61")):
                wanted = request(uid, "cpu", 10, role)
                assert await cpus.hints(wanted) == [((1,), True)]
                given = await cpus.allocate(with_hint(wanted, (1,)))
                assert given.allocation_result == expected

                wanted = request(uid, "memory", 20 * GB, role)
                assert await mems.hints(wanted) == [((1,), True)]
                given = await mems.allocate(with_hint(wanted, (1,)))
                assert given.allocation_result == "1"

                wanted = request(uid, "NIC", {}, role)
                assert ((1,), True) in (await nics.hints(wanted) or [])
                given = await nics.allocate(with_hint(wanted, (1,)))
                assert given.oci_property_name == ""
                assert not given.is_node_resource
                assert not given.is_scalar_resource
                assert hints_of(given) == [((1,), True)]
                assert given.envs == {"AFFINITY_NIC_ADDR_IPV6": "fdbd:dc05:3:155::20"}
                assert given.annotations == {"kubernetes.io/host-netns-path": "/var/run/netns/ns1"}
