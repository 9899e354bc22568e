"""What a pod asks for as a whole (`spec.resources`) its containers share, in whatever scope."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dovetail.node.admission.configuration import Outage, Scope
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.pods import Pod
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.sources.implicit_resources import with_implicit_resources
from dovetail.node.topology import Nic, synthetic
from dovetail.node.wire.resource_plugin import (
    ContainerType,
    GetResourcesAllocationRequest,
    GetTopologyAwareResourcesRequest,
)
from tests.node.admission.shipped import (
    GUARANTEED,
    OWN,
    TWICE_EIGHT,
    ShippedNode,
    configured,
    shipped,
)
from tests.support.node.fakes import TWO_NODES, Node, PodPieces, container, pod, sandbox

GI = 2**30
ROLE: dict[str, Any] = {"annotations": {"kubernetes.io/pod-role": "own"}}
SCOPES = pytest.mark.parametrize("scope", list(Scope))


def whole(uid: str, *containers: Any, **wants: Any) -> Pod:
    """Its containers ask for nothing unless they are given; as the daemon's source tells it."""
    amounts = {name: Fraction(str(each)) for name, each in wants.items()}
    own = containers or (container(), container("second", 1, type=ContainerType.SIDECAR))
    made = pod(uid, *own, requests=amounts, limits=amounts, qos_class="Guaranteed", **ROLE)
    return with_implicit_resources(made, (), ("cpu",), {})


def a_node(directory: Path, plugins: Any, scope: Scope, policy: str = "single-numa-node") -> Any:
    return ShippedNode(directory, plugins, configured(policy, scope=scope))


@SCOPES
@pytest.mark.parametrize("policy", ["none", "single-numa-node"])
async def test_cpus_and_memory_of_one_node(tmp_path: Path, scope: Scope, policy: str) -> None:
    plugins = shipped(TWICE_EIGHT, OWN, ("cpu", "memory"))
    node = a_node(tmp_path, plugins, scope, policy)
    await node.admit(whole("first", cpu=6, memory=60 * GI))
    await node.admit(whole("a", cpu=4, memory=20 * GI))
    assert node.held("first") == {"main": "0-5", "second": "0-5"}
    cpus = node.held("a")["main"]
    assert node.held("a") == {"main": cpus, "second": cpus}
    if policy != "none":
        assert cpus == "8-11"
        assert node.held("a", "memory") == {"main": "1", "second": "1"}
    await node.end("a")
    assert node.holders() == node.holders("memory") == {"first"}


async def test_by_qos_class_as_the_trial_had_it(tmp_path: Path) -> None:
    """It ran shared on all CPUs, and the memory plugin was not asked."""
    plugins = shipped(TWICE_EIGHT, GUARANTEED, ("cpu", "memory"))
    node = a_node(tmp_path, plugins, Scope.CONTAINER, "none")
    await node.admit(whole("a", container(), cpu=1, memory=GI))
    assert node.held("a") == {"main": "0"}
    assert node.held("a", "memory") == {"main": "0"}


@SCOPES
async def test_a_part_of_a_cpu_is_shared(tmp_path: Path, scope: Scope) -> None:
    plugins = shipped(TWICE_EIGHT, OWN)
    node = a_node(tmp_path, plugins, scope)
    await node.admit(whole("a", cpu="1.5"))
    assert node.held("a") == {"main": "0-15", "second": "0-15"}


@SCOPES
async def test_containers_with_requests_of_their_own_share_it_too(
    tmp_path: Path, scope: Scope
) -> None:
    plugins = shipped(TWICE_EIGHT, OWN, ("cpu", "memory"))
    node = a_node(tmp_path, plugins, scope)
    containers = (container(cpu=2, memory=GI), container("second", 1, memory=GI))
    await node.admit(whole("a", *containers, cpu=4))
    assert node.held("a") == {"main": "0-3", "second": "0-3"}
    assert node.held("a", "memory") == {"main": "0", "second": "0"}


@SCOPES
async def test_who_has_no_room_is_refused(tmp_path: Path, scope: Scope) -> None:
    plugins = shipped(TWICE_EIGHT, OWN)
    node = a_node(tmp_path, plugins, scope, "none")
    await node.admit(whole("first", cpu=12))
    with pytest.raises(AdmissionRejected, match=r"wants 5 CPUs of its own"):
        await node.admit(whole("a", cpu=5))
    assert node.holders() == {"first"}


async def test_a_nic_for_the_pod(tmp_path: Path) -> None:
    nics = (Nic(name="eth0", numa=0, speed=1000), Nic(name="eth1", numa=1, speed=1000))
    machine = synthetic(sockets=2, cores=8, threads=1, nics=nics)
    plugins = shipped(machine, "[roles.own]\nnic = { bandwidth = true }\n", ("nic",))
    node = ShippedNode(tmp_path, plugins, configured("single-numa-node", machine))
    for uid in "ab":
        await node.admit(whole(uid, NIC=900))
    assert [each.nic for each in plugins["NIC"].state.holdings] == ["eth0", "eth1"]


@SCOPES
async def test_again_is_the_same(tmp_path: Path, scope: Scope) -> None:
    """After a lost checkpoint, of a node that is full."""
    plugins = shipped(TWICE_EIGHT, OWN, ("cpu", "memory"))
    pods = [whole("a", cpu=8, memory=60 * GI), whole("b", cpu=7, memory=60 * GI)]
    for directory in ("one", "two"):
        node = a_node(tmp_path / directory, plugins, scope)
        for each in pods:
            await node.admit(each)
        assert node.held("b") == {"main": "8-14", "second": "8-14"}


async def test_plugins_tell_of_it(tmp_path: Path) -> None:
    plugins = shipped(TWICE_EIGHT, OWN)
    await a_node(tmp_path, plugins, Scope.CONTAINER).admit(whole("a", cpu=2))
    told = await plugins["cpu"].get_resources_allocation(GetResourcesAllocationRequest())
    assert list(told.pod_resources["a"].container_resources) == [""]
    question = GetTopologyAwareResourcesRequest(pod_uid="a", container_name="main")
    answer = await plugins["cpu"].get_topology_aware_resources(question)
    found = answer.container_topology_aware_resources
    assert found
    assert (found.container_name, found.allocated_resources["cpu"].aggregated_quantity) == (
        "main",
        2,
    )


async def test_a_container_that_comes_later_shares_it(tmp_path: Path) -> None:
    debug = container("debug", type=ContainerType.EPHEMERAL)
    own = whole("a", container(), debug, cpu=3)
    cpu = PodPieces()
    node = Node(tmp_path, [cpu], [own])
    assert await node.start(own) == {"main": "0-2", "debug": "0-2"}
    assert len(cpu.asked("AllocateForPod")) == 1


async def test_who_started_without_the_plugin_gets_it_when_it_is_back(tmp_path: Path) -> None:
    own = whole("a", cpu=3)
    cpu = PodPieces()
    configuration = type(TWO_NODES)(
        policy=TWO_NODES.policy,
        nodes=TWO_NODES.nodes,
        distances=TWO_NODES.distances,
        outage=Outage.FAIL_OPEN,
    )
    node = Node(tmp_path, [cpu], [own], configuration)
    cpu.up = False
    assert await node.start(own) == {"main": "", "second": ""}
    cpu.up = True
    given = [
        await node.manager.admit_container(sandbox(own), each, ContainerSettings())
        for each in ("main", "second")
    ]
    assert [each.cpus for each in given] == ["0-2", "0-2"]
    assert len(cpu.asked("AllocateForPod")) == 1
