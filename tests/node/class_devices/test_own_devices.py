"""NICs and huge pages that classes gave, through the plugins that ship."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dovetail.core.device import PluginOrigin
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.node.admission.configuration import AdmissionConfiguration
from dovetail.node.agent.manager import Manager
from dovetail.node.class_devices.source import ClassDevices
from dovetail.node.class_devices.trust import Trusting
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.pods import Pod
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.hints.policy import TopologyPolicy
from dovetail.node.state.checkpoint import Checkpoint
from dovetail.node.state.store import StateStore
from dovetail.node.topology import Hugepages, Nic, synthetic
from dovetail.node.wire.resource_plugin import ContainerType
from tests.node.admission.shipped import DirectPlugins, shipped
from tests.support.node.class_devices import NODE, given
from tests.support.node.fakes import FakeSource, container, sandbox

MIB = 2**20
MACHINE = synthetic(
    sockets=2,
    cores=4,
    threads=1,
    memory=2**30,
    hugepages={2 * MIB: Hugepages(total=64, free=64)},
    nics=(
        Nic(name="eth0", numa=0, speed=10_000, addresses=("10.0.0.1",)),
        Nic(name="eth1", numa=1, speed=10_000, addresses=("10.0.0.2", "fd00::2"), netns="/n/1"),
        Nic(name="eth2", numa=1, speed=10_000, addresses=("10.0.0.3",)),
    ),
)
ROLES = """
[roles.own]
cpu = { exclusive = true }
memory = { bind = true }

[roles.named]
nic = { ipv4_env = "ADDRESS", name_env = "NIC" }
"""
NICS, PAGES = "resourceclass.dovetail.dev/nic", "resourceclass.dovetail.dev/pages"


class OwnNode:
    def __init__(self, directory: Path, policy: TopologyPolicy = TopologyPolicy.RESTRICTED) -> None:
        self.plugins = shipped(MACHINE, ROLES, ("cpu", "memory", "nic"))
        self.store, self.source = StateStore(Checkpoint(directory)), FakeSource()
        configuration = AdmissionConfiguration(
            policy=policy, nodes=MACHINE.node_ids, distances=MACHINE.distances
        )
        self.manager = Manager(
            configuration,
            DirectPlugins(self.plugins),
            self.store,
            ClassDevices(self.source, Trusting(), NODE),
            device_wait=0.0,
        )

    async def start(self, own: Pod) -> ContainerSettings:
        self.source.pods[own.uid] = own
        await self.manager.admit_pod(sandbox(own))
        return await self.manager.admit_container(sandbox(own), "main", ContainerSettings())

    async def refusal(self, own: Pod) -> AdmissionRejected:
        with pytest.raises(AdmissionRejected) as refused:
            await self.start(own)
        return refused.value


def with_nics(uid: str, *names: str, role: str = "", **wants: Any) -> Pod:
    return given(
        uid,
        container("main", cpu=1, **{NICS: len(names)}, **wants),
        held={},
        holdings=[DeviceHolding(each, 1, "nic", "main") for each in names],
        origins={each: PluginOrigin("nic", each) for each in names},
        annotations={"kubernetes.io/pod-role": role},
        qos_class="Guaranteed",
    )


def with_pages(uid: str, pages: Mapping[int, int], role: str = "", **wants: Any) -> Pod:
    devices = {f"hugepages-2Mi-numa{node}": node for node in pages}
    return given(
        uid,
        container("main", **{PAGES: sum(pages.values())}, **wants),
        held={},
        holdings=[
            DeviceHolding(name, pages[node], "pages", "main") for name, node in devices.items()
        ],
        origins={
            name: PluginOrigin("hugepages-2Mi", f"numa{node}") for name, node in devices.items()
        },
        annotations={"kubernetes.io/pod-role": role},
        qos_class="Guaranteed",
    )


async def test_a_nic_is_told_to_its_container_whatever_the_role(tmp_path: Path) -> None:
    node = OwnNode(tmp_path)
    plain = await node.start(with_nics("a", "eth1"))
    assert plain.envs == {
        "AFFINITY_NIC_ADDR_IPV4": "10.0.0.2",
        "AFFINITY_NIC_ADDR_IPV6": "fd00::2",
        "AFFINITY_NIC_NAME": "eth1",
    }
    assert plain.annotations == {"kubernetes.io/host-netns-path": "/n/1"}
    named = await node.start(with_nics("b", "eth0", role="named"))
    assert named.envs == {"ADDRESS": "10.0.0.1", "NIC": "eth0"}


async def test_cpus_are_on_the_node_of_the_nic(tmp_path: Path) -> None:
    node = OwnNode(tmp_path)
    assert (await node.start(with_nics("a", "eth2", role="own"))).cpus == "4"
    assert (await node.start(with_nics("b", "eth0", role="own"))).cpus == "0"


async def test_a_nic_of_one_class_is_one_pods(tmp_path: Path) -> None:
    node = OwnNode(tmp_path)
    await node.start(with_nics("a", "eth1"))
    refused = await node.refusal(with_nics("b", "eth1"))
    assert refused.reason == "device_taken"
    assert "device eth1 of NIC is held by pod default/pod-a" in str(refused)
    node.source.pods.pop("a")
    await node.manager.collector.release("a")
    await node.start(with_nics("b", "eth1"))


async def test_several_nics_are_told_together(tmp_path: Path) -> None:
    found = await OwnNode(tmp_path).start(with_nics("a", "eth2", "eth1"))
    assert found.envs["AFFINITY_NIC_NAME"] == "eth1,eth2"
    assert found.envs["AFFINITY_NIC_ADDR_IPV4"] == "10.0.0.2,10.0.0.3"


async def test_a_nic_that_is_not_there_is_refused(tmp_path: Path) -> None:
    node = OwnNode(tmp_path)
    refused = await node.refusal(with_nics("a", "eth9"))
    assert refused.reason == "plugin_refused"
    assert "was given the NIC eth9 by a resource class; there is eth0, eth1, eth2" in str(refused)
    assert not node.store.state.pods
    assert not node.plugins["NIC"].state.holdings


@pytest.mark.parametrize("role", ["", "own"])
async def test_huge_pages_bind_the_container_to_their_node(tmp_path: Path, role: str) -> None:
    node = OwnNode(tmp_path)
    found = await node.start(with_pages("a", {1: 3}, role, cpu=1, memory=64 * MIB))
    assert found.mems == "1"
    assert found.hugepages == {"2MB": 6 * MIB}
    assert found.cpus == ("4" if role else "0-7")
    (holding,) = node.plugins["memory"].state.holdings
    assert holding.given["hugepages-2Mi"] == {1: 6 * MIB}


async def test_pages_of_both_nodes_are_counted_on_each(tmp_path: Path) -> None:
    node = OwnNode(tmp_path)
    found = await node.start(with_pages("a", {0: 1, 1: 60}))
    assert (found.mems, found.hugepages) == ("0-1", {"2MB": 61 * 2 * MIB})
    (holding,) = node.plugins["memory"].state.holdings
    assert holding.given["hugepages-2Mi"] == {0: 2 * MIB, 1: 120 * MIB}
    (tmp_path / "other").mkdir()
    alone = OwnNode(tmp_path / "other", TopologyPolicy.SINGLE_NUMA_NODE)
    assert (await alone.refusal(with_pages("a", {0: 1, 1: 60}))).reason == "topology_affinity"


async def test_pages_that_are_not_left_are_refused_with_the_numbers(tmp_path: Path) -> None:
    node = OwnNode(tmp_path)
    await node.start(with_pages("a", {1: 60}))
    await node.start(with_pages("b", {1: 4}))
    refused = await node.refusal(with_pages("c", {1: 1}))
    assert refused.reason == "plugin_refused"
    assert "was given hugepages-2Mi of numa1 by a resource class" in str(refused)
    assert "node 1: 0 of hugepages-2Mi free" in str(refused)
    await node.start(with_pages("d", {0: 64}))


async def test_what_the_pod_asks_the_kubelet_for_are_the_same_pages(tmp_path: Path) -> None:
    node = OwnNode(tmp_path)
    own = with_pages("a", {1: 2}, "own", cpu=1, memory=8 * MIB, **{"hugepages-2Mi": 4 * MIB})
    assert (await node.start(own)).mems == "1"
    (holding,) = node.plugins["memory"].state.holdings
    assert holding.given == {"hugepages-2Mi": {1: 4 * MIB}, "memory": {1: 8 * MIB}}


async def test_an_init_container_uses_the_pages_of_the_one_after_it(tmp_path: Path) -> None:
    node = OwnNode(tmp_path)
    own = with_pages("a", {1: 64})
    init = container("init", type=ContainerType.INIT, **{PAGES: 64})
    both = Pod(
        uid="a",
        namespace="default",
        name="pod-a",
        annotations=own.annotations,
        containers=(init, *own.containers),
    )
    assert (await node.start(both)).mems == "1"
    settings = await node.manager.admit_container(sandbox(both), "init", ContainerSettings())
    assert settings.mems == "1"
