"""With scope `pod`, what a pod has is not in its own way, and its role is known as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dovetail.node.admission.configuration import Scope
from dovetail.node.common.pods import Pod
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.topology import Nic, synthetic
from dovetail.node.wire.resource_plugin import ContainerType
from tests.node.admission.shipped import (
    GUARANTEED,
    OWN,
    TWICE_EIGHT,
    ShippedNode,
    configured,
    shipped,
)
from tests.support.node.fakes import container, pod

GI = 2**30
ROLE: dict[str, Any] = {"annotations": {"kubernetes.io/pod-role": "own"}}


def two_containers(uid: str, cpus: int, gi: int = 0, **more: Any) -> Pod:
    """`cpus` and `gi` of the first; the second has 2 and 1."""
    memory = {"memory": gi * GI} if gi else {}
    second = {"memory": GI} if gi else {}
    return pod(
        uid,
        container(cpu=cpus, **memory),
        container("second", 1, cpu=2, type=ContainerType.SIDECAR, **second),
        **(more or ROLE),
    )


def a_node(directory: Path, plugins: Any, policy: str = "single-numa-node") -> ShippedNode:
    return ShippedNode(directory, plugins, configured(policy, scope=Scope.POD))


async def test_after_a_lost_checkpoint_pods_of_a_full_node_are_admitted(tmp_path: Path) -> None:
    plugins = shipped(TWICE_EIGHT, OWN, ("cpu", "memory"))
    pods = [two_containers("a", 6, 60), two_containers("b", 6, 60)]
    before = a_node(tmp_path / "one", plugins)
    for each in pods:
        await before.admit(each)
    assert not (TWICE_EIGHT.online - plugins["cpu"].state.held), "nothing is left"  # type: ignore[attr-defined]
    after = a_node(tmp_path / "two", plugins)
    for each in pods:
        await after.admit(each)
        assert after.held(each.uid) == before.held(each.uid)
        assert after.held(each.uid, "memory") == before.held(each.uid, "memory")


@pytest.mark.parametrize("policy", ["single-numa-node", "restricted", "best-effort"])
async def test_a_pod_grows_where_it_is(tmp_path: Path, policy: str) -> None:
    plugins = shipped(TWICE_EIGHT, OWN, ("cpu", "memory"))
    node = a_node(tmp_path, plugins, policy)
    await node.admit(two_containers("first", 6, 60))
    await node.admit(two_containers("a", 4, 40))
    await node.end("first")
    await node.admit(two_containers("a", 6, 40))
    assert node.held("a") == {"main": "8-11,14-15", "second": "12-13"}
    assert node.held("a", "memory") == {"main": "1", "second": "1"}


async def test_a_pod_that_has_all_the_memory_of_a_node_grows_by_a_cpu(tmp_path: Path) -> None:
    plugins = shipped(TWICE_EIGHT, OWN, ("cpu", "memory"))
    node = a_node(tmp_path, plugins)
    await node.admit(two_containers("a", 4, 63))
    await node.admit(two_containers("b", 4, 63))
    again = a_node(tmp_path / "again", plugins)
    await again.admit(two_containers("b", 5, 63))
    assert again.held("b") == {"main": "8-11,14", "second": "12-13"}


async def test_bandwidth_that_a_pod_has_is_not_in_its_way(tmp_path: Path) -> None:
    nics = (Nic(name="eth0", numa=0, speed=1000), Nic(name="eth1", numa=1, speed=1000))
    machine = synthetic(sockets=2, cores=8, threads=1, nics=nics)
    roles = "[roles.own]\nnic = { bandwidth = true }\n"
    plugins = shipped(machine, roles, ("nic",))
    pods = [pod(each, container(NIC=900), **ROLE) for each in "ab"]
    for directory in ("one", "two"):
        node = ShippedNode(
            tmp_path / directory,
            plugins,
            configured("single-numa-node", machine, scope=Scope.POD),
        )
        for each in pods:
            await node.admit(each)
    holdings = plugins["NIC"].state.holdings
    assert [each.nic for each in holdings] == ["eth0", "eth1"]


async def test_roles_by_qos_class_are_held_to_the_policy(tmp_path: Path) -> None:
    """Six CPUs where each node has three left."""
    plugins = shipped(TWICE_EIGHT, GUARANTEED)
    node = a_node(tmp_path, plugins)
    for each in "ab":
        await node.admit(pod(each, container(cpu=5), qos_class="Guaranteed"))
    with pytest.raises(AdmissionRejected) as caught:
        await node.admit(pod("c", container(cpu=6), qos_class="Guaranteed"))
    assert caught.value.reason == "topology_affinity"
    await node.admit(pod("d", container(cpu=6), qos_class="Burstable"))
    assert node.holders() == {"a", "b", "d"}


async def test_an_agent_that_tells_no_qos_class_is_asked_to_go_by_container(
    tmp_path: Path,
) -> None:
    """The whole pod could be of either role: what it is told for the wrong one would bind it."""
    plugins = shipped(TWICE_EIGHT, GUARANTEED)
    node = a_node(tmp_path, plugins)
    for each in "ab":
        await node.admit(pod(each, container(cpu=5), qos_class="Guaranteed"))
    asked: Any = plugins["cpu"].get_pod_topology_hints

    async def untold(request: Any) -> Any:
        request.native_qos_class = ""
        return await asked(request)

    plugins["cpu"].get_pod_topology_hints = untold  # type: ignore[method-assign]
    with pytest.raises(AdmissionRejected) as caught:
        await node.admit(pod("c", container(cpu=6), qos_class="Guaranteed"))
    assert caught.value.reason == "topology_affinity"
