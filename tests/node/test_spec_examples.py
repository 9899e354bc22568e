"""The specification's three examples with all parts at work: daemon and plugins as processes.

The kubelet asks the daemon's proxy; what is checked is what the runtime was told in the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from dovetail.node.topology import Hugepages, Machine, Nic
from tests.node.agent.rig import Rig, a_kubelet, a_node
from tests.node.plugins.rig import spec_machine
from tests.node.plugins.test_spec_examples import EXAMPLE_1, EXAMPLE_2, EXAMPLE_3
from tests.support.loops import eventually

POD1, POD2, POD3 = (
    "054a696f-d176-488d-b228-d6046faaf67c",
    "fe8d9c25-6fb4-4983-908f-08e39ebeafe7",
    "26731da7-b283-488b-b232-cff611c914e1",
)
SINGLE = "--topology-manager-policy=single-numa-node"
ALIGNED = [{"nodes": [0], "preferred": True}], [{"nodes": [1], "preferred": True}]


async def start(rig: Rig, roles: str, *kinds: str, flags: tuple[str, ...] = ()) -> None:
    """Plugins and daemon, all there."""
    file = rig.directory / "roles.toml"
    file.write_text(roles)
    for kind in kinds:
        await rig.plugin(kind, file)
    await rig.start(*flags)
    await rig.up(*(kind.replace("nic", "NIC") for kind in kinds))


async def admit(
    rig: Rig, uid: str, name: str, requests: Mapping[str, Any], role: str, **spec: Any
) -> None:
    annotations = rig.manifest(uid, name, requests, role, **spec)
    async with a_kubelet(rig) as kubelet:
        await kubelet.start(uid, name, annotations)


async def allocations(rig: Rig) -> dict[str, dict[str, Any]]:
    """By uid and resource, as the checkpoint has them."""
    return {
        pod["uid"]: pod["containers"][0]["allocations"] for pod in (await rig.ask("state"))["pods"]
    }


async def test_example_1_running_a_qos_system_using_qrm() -> None:
    async with a_node(spec_machine()) as rig:
        await start(rig, EXAMPLE_1, "cpu")
        await admit(rig, POD1, "pod1", {"cpu": 4}, "online-micro_service")
        await admit(rig, POD2, "pod2", {"cpu": 2}, "ETL")
        await admit(rig, POD3, "pod3", {"cpu": 4}, "online-micro_service")
        pinned = {name: rig.runtime.made(name).pinned for name in ("pod1", "pod2", "pod3")}
        assert pinned == {
            "pod1": ("0-37,40-77", ""),
            "pod2": ("38-39,78-79", ""),
            "pod3": ("0-37,40-77", ""),
        }
        given = await allocations(rig)
        assert {uid: each["cpu"]["allocated_quantity"] for uid, each in given.items()} == {
            POD1: 76,
            POD2: 4,
            POD3: 76,
        }
        for each in given.values():
            assert each["cpu"]["oci_property_name"] == "CpusetCpus"
            assert each["cpu"]["is_scalar_resource"]
            assert not each["cpu"]["is_node_resource"]
            assert not each["cpu"]["resource_hints"], "a pool has no NUMA preference"
        await adjusted(rig)


async def adjusted(rig: Rig) -> None:
    """The pools are resized, and containers follow by themselves."""
    resizing = rig.run(
        "pools",
        "online=28",
        "offline=52",
        f"--roles={rig.directory / 'roles.toml'}",
        f"--state-dir={rig.directory / 'state-cpu'}",
        f"--sysfs={rig.directory / 'sys'}",
    )
    assert await resizing.until_ended() == 0, resizing.output
    expected = {"pod1": "0-13,40-53", "pod2": "14-39,54-79", "pod3": "0-13,40-53"}
    await eventually(
        lambda: {name: rig.runtime.made(name).pinned[0] for name in expected} == expected
    )
    after = {
        uid: (each["cpu"]["allocation_result"], each["cpu"]["allocated_quantity"])
        for uid, each in (await allocations(rig)).items()
    }
    assert after == {
        POD1: ("0-13,40-53", 28),
        POD2: ("14-39,54-79", 52),
        POD3: ("0-13,40-53", 28),
    }
    assert [rig.runtime.made(name).updates for name in expected] == [1, 1, 1]


async def test_example_2_numa_affinity_with_extended_policy() -> None:
    async with a_node(spec_machine()) as rig:
        await start(rig, EXAMPLE_2, "cpu", "memory", flags=(SINGLE,))
        await admit(rig, "pod1-uid", "pod1", {"cpu": 20, "memory": "40G"}, "storage-service")
        assert rig.runtime.made("pod1").pinned == ("2-21", "0")
        await admit(rig, "pod2-uid", "pod2", {"cpu": 10, "memory": "20G"}, "reranker")
        assert rig.runtime.made("pod2").pinned == ("42-51", "1")
        given = await allocations(rig)
        for uid, cpus, mems, hints in (
            ("pod1-uid", ("2-21", 20), ("0", 1), ALIGNED[0]),
            ("pod2-uid", ("42-51", 10), ("1", 1), ALIGNED[1]),
        ):
            cpu, memory = given[uid]["cpu"], given[uid]["memory"]
            assert (cpu["allocation_result"], cpu["allocated_quantity"]) == cpus
            assert (memory["allocation_result"], memory["allocated_quantity"]) == mems
            assert memory["oci_property_name"] == "CpusetMems"
            assert cpu["resource_hints"]["hints"] == memory["resource_hints"]["hints"] == hints


async def test_who_asks_for_no_cpus_is_kept_off_those_of_others() -> None:
    async with a_node(spec_machine()) as rig:
        await start(rig, EXAMPLE_2, "cpu", "memory", flags=(SINGLE,))
        await admit(rig, "pod1-uid", "pod1", {"cpu": 20, "memory": "40G"}, "storage-service")
        for name, wanted, role in (
            ("idle", {}, ""),
            ("modest", {"cpu": "100m"}, ""),
            ("odd", {"cpu": "1500m"}, ""),
        ):
            await admit(rig, f"{name}-uid", name, wanted, role)
            assert rig.runtime.made(name).pinned[0] == "0-1,22-79"


async def test_huge_pages_are_on_the_nodes_of_the_memory() -> None:
    machine = spec_machine()
    first, second = machine.nodes
    pages = {2 * 2**20: Hugepages(total=100, free=100)}
    nodes = (first, msgspec.structs.replace(second, hugepages=pages))
    async with a_node(msgspec.structs.replace(machine, nodes=nodes)) as rig:
        await start(rig, EXAMPLE_2, "cpu", "memory", flags=(SINGLE,))
        wanted = {"cpu": 4, "memory": "1G", "hugepages-2Mi": "150Mi"}
        await admit(rig, "uid1", "pod1", wanted, "storage-service")
        assert rig.runtime.made("pod1").pinned == ("42-45", "1")
        code, said = await refused(rig, wanted, "storage-service")
        assert code == 0
        assert "hugepages-2Mi" in said


def two_nics() -> Machine:
    return spec_machine(
        (Nic(name="eth0", numa=0, speed=25_000), Nic(name="eth1", numa=1, speed=25_000))
    )


async def test_example_3_shared_numa_affinitive_nics() -> None:
    async with a_node(two_nics()) as rig:
        file = rig.directory / "agent.toml"
        file.write_text('[roles.numa-enhancement]\nneeds = ["NIC"]\n')
        flags = (SINGLE, f"--config={file}")
        await start(rig, EXAMPLE_3, "cpu", "memory", "nic", flags=flags)
        role = "numa-enhancement"
        # "All related resources in NUMA node0 have been allocated".
        await admit(rig, "uid0", "pod0", {"cpu": 38, "memory": "237182648320"}, role)
        assert rig.runtime.made("pod0").pinned == ("2-39", "0")
        for number, cpus in ((1, "42-51"), (2, "52-61")):
            wanted = {"cpu": 10, "memory": "20G"}
            await admit(rig, f"uid{number}", f"pod{number}", wanted, role, hostNetwork=True)
            made = rig.runtime.made(f"pod{number}")
            assert made.pinned == (cpus, "1")
            assert made.envs == {"AFFINITY_NIC_ADDR_IPV6": "fdbd:dc05:3:155::20"}
            assert made.config.annotations == {
                "kubernetes.io/host-netns-path": "/var/run/netns/ns1"
            }
        nic = (await allocations(rig))["uid1"]["NIC"]
        assert (nic["oci_property_name"], nic["is_scalar_resource"]) == ("", False)
        assert nic["resource_hints"]["hints"] == ALIGNED[1]
        # What cannot be aligned any more is refused, with the reason.
        code, said = await refused(rig, {"cpu": 30, "memory": "20G"}, role)
        assert code == 0
        assert "rejected, plugin_refused" in said
        assert "30 CPUs of its own on one NUMA node" in said
        assert "node 1: 18 free" in said


async def refused(rig: Rig, wanted: Mapping[str, Any], role: str) -> tuple[int, str]:
    annotations = rig.manifest("uid9", "pod9", wanted, role)
    async with a_kubelet(rig) as kubelet:
        failed = await asyncio.gather(
            kubelet.run("uid9", "pod9", annotations), return_exceptions=True
        )
    assert isinstance(failed[0], Exception)
    return await rig.say("explain", "pod9")
