"""Declared features: pods that need one go where it is declared, and others anywhere."""

from __future__ import annotations

from msgspec.structs import replace

from dovetail.podfit.objects import Node, Pod
from tests.podfit.building import Fleet, Json, node, pod

RESTART_ALL = "RestartAllContainersOnContainerExits"
HOST_USERS = "UserNamespacesHostNetworkSupport"


def declaring(name: str, *features: str) -> Node:
    made = node(name)
    return replace(made, status=replace(made.status, declared_features=features))


def restarting(action: str = "RestartAllContainers", *, is_init: bool = False) -> Pod:
    rule = {"action": action, "exitCodes": {"operator": "In", "values": [42]}}
    container: Json = {"name": "c", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    return pod("p", initContainers=[container]) if is_init else pod("p", containers=[container])


def test_a_pod_that_restarts_all_containers_needs_a_kubelet_that_can() -> None:
    fleet = Fleet([node("old"), declaring("new", "Other", RESTART_ALL)])
    assert fleet.fitting(restarting()) == "new"
    assert fleet.fitting(restarting(is_init=True)) == "new"
    assert fleet.fitting(restarting("Restart")) == "old new"
    assert fleet.why(restarting(), "old") == (
        f"the node does not declare feature {RESTART_ALL}, which the pod needs"
    )
    told = str(Fleet([node("old")]).verdict(restarting()))
    assert "1 node(s) didn't match Pod's required features" in told


def test_a_pod_of_the_hosts_network_with_users_of_its_own_needs_both_together() -> None:
    fleet = Fleet([node("old"), declaring("new", HOST_USERS)])
    assert fleet.fitting(pod("p", hostNetwork=True, hostUsers=False)) == "new"
    assert fleet.fitting(pod("p", hostNetwork=True)) == "old new"
    assert fleet.fitting(pod("p", hostUsers=False)) == "old new"


def test_a_feature_that_is_declared_later_counts_from_then_on() -> None:
    fleet = Fleet([node("n")])
    assert fleet.fitting(restarting()) == ""
    assert fleet.table.set_node(declaring("n", RESTART_ALL))
    assert fleet.fitting(restarting()) == "n"
    fleet.table.drop_node("n")
    fleet.table.set_node(node("n"))
    assert fleet.fitting(restarting()) == ""
