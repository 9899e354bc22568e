"""Deployments on two real API servers: objects arrive, pods run where they are charged, all goes.

The same with the server killed at several points, and with one of the clusters away.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from dovetail.core.quantity import parse
from tests.kube.deploy.fleet import NAMES, RealFleet, add_nodes, running_fleet, until
from tests.support.intents import hardware
from tests.support.intents.scenario import C1, C3, Scenario
from tests.support.kube.cluster import Cluster

NUMBERS = count(1)


def another() -> Scenario:
    """The base case under a name of its own."""
    return Scenario(dig=f"real-{next(NUMBERS)}")


@pytest.fixture(scope="module")
def named_clusters(clusters: tuple[Cluster, Cluster]) -> dict[str, Cluster]:
    found = dict(zip(NAMES, clusters, strict=True))
    add_nodes(found)
    return found


@pytest.fixture(scope="module")
def fleet(
    named_clusters: dict[str, Cluster], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealFleet]:
    with running_fleet(named_clusters, tmp_path_factory.mktemp("server")) as running:
        yield running


def all_run(fleet: RealFleet, group: str) -> bool:
    pods = fleet.pods(group)
    return len(pods) == 4 and all(each["phase"] == "Running" and each["charged"] for each in pods)


def test_objects_arrive_pods_run_where_they_are_charged_and_all_goes(fleet: RealFleet) -> None:
    group = fleet.make(another())
    deployment = fleet.instantiate(group)
    until(lambda: fleet.state(group) == "Instantiated", "deployment")
    until(lambda: all_run(fleet, group), "pods")
    core = fleet.objects("c1", "statefulset", "core-fwall")
    (container,) = core["spec"]["template"]["spec"]["containers"]
    assert parse(container["resources"]["requests"]["cpu"]) == 4
    assert container["resources"]["limits"][hardware.GPU] == "1"
    # What the chart says and no intent owns is there, too.
    assert core["spec"]["podManagementPolicy"] == "Parallel"
    nodes = {
        each["name"].rstrip("0123456789").rstrip("-"): each["node"] for each in fleet.pods(group)
    }
    assert nodes["core-fwall"] == "n1"
    charges = fleet.charges(group)
    assert charges["c1", "n1"][hardware.GPU] == 1
    assert charges["c3", "n3"][hardware.QAT] == 1
    running = {(each["node"]) for each in fleet.pods(group)}
    assert running == {node for _, node in charges}
    until(lambda: fleet.status(group)["readyStatus"] == "Ready", "readiness")
    fleet.end(group, deployment)


def test_charges_follow_a_pod_that_runs_elsewhere(fleet: RealFleet) -> None:
    """ai-model was planned on a node; when it has to go to another, the charge goes with it."""
    group = fleet.make(another())
    deployment = fleet.instantiate(group)
    until(lambda: all_run(fleet, group), "pods")

    def node() -> str:
        nodes = {each["name"]: str(each["node"]) for each in fleet.pods(group)}
        return nodes.get("ai-model-0", "")

    def cpu_on(cluster: str, node: str) -> int:
        return int(fleet.charges(group).get((cluster, node), {}).get("cpu", 0))

    before = node()
    cluster = fleet.clusters["c3"]
    cluster.cordon(before)
    try:
        cluster.kubectl("delete", "pod", "ai-model-0", "--grace-period=0", "--force")
        until(lambda: node() not in ("", before), "pod on another node")
        until(lambda: all_run(fleet, group), "pods")
        until(lambda: cpu_on("c3", node()) >= 2000, "charge where it runs")
        until(lambda: cpu_on("c3", before) == 0, "node that is free again")
    finally:
        cluster.cordon(before, undo=True)
    fleet.end(group, deployment)


def test_an_update_changes_what_runs_and_keeps_the_clusters(fleet: RealFleet) -> None:
    wanted = another()
    group = fleet.make(wanted)
    deployment = fleet.instantiate(group)
    until(lambda: all_run(fleet, group), "pods")
    path = f"{group}/hpa-intents/analytics-hpa-intent/hpa-resource-consumers/ai-model"
    body = {
        "metadata": {"name": "ai-model-cpu-requirement"},
        "spec": {"allocatable": True, "resource": {"name": "cpu", "requests": "1500m"}},
    }
    where = f"{path}/resource-requirements/ai-model-cpu-requirement"
    assert fleet.caller.call("PUT", where, json.dumps(body).encode())[0] == 200
    status, said = fleet.act(group, "update")
    assert status == 202, said
    assert {app: [each["cluster"] for each in of] for app, of in said["apps"].items()} == {
        "fwall": [C1],
        "analytics": [C3],
    }
    until(lambda: fleet.state(group) == "Instantiated", "update")

    def has_changed() -> bool:
        return any(each.get("cpu") == 1500 for each in fleet.charges(group).values())

    until(lambda: all_run(fleet, group) and has_changed(), "pods as they are now")
    fleet.end(group, deployment)


KillPoint = Callable[[RealFleet, str, str], None]


def at_once(fleet: RealFleet, group: str, deployment: str) -> None:
    """As soon as the instantiate was answered."""


def at_first_object(fleet: RealFleet, group: str, deployment: str) -> None:
    until(lambda: bool(fleet.left(deployment)), "object")


def at_first_pod(fleet: RealFleet, group: str, deployment: str) -> None:
    until(lambda: any("Pod" in each for each in fleet.left(deployment)), "pod")


@pytest.mark.parametrize("point", [at_once, at_first_object, at_first_pod])
def test_killed_while_it_is_instantiated(fleet: RealFleet, point: KillPoint) -> None:
    """Who comes after it goes on: nothing is there twice, and all goes in the end."""
    group = fleet.make(another())
    deployment = fleet.instantiate(group)
    point(fleet, group, deployment)
    fleet.server.restart()
    until(lambda: fleet.state(group) == "Instantiated", "deployment")
    until(lambda: all_run(fleet, group), "pods")
    fleet.end(group, deployment)


def test_killed_while_it_is_terminated(fleet: RealFleet) -> None:
    group = fleet.make(another())
    deployment = fleet.instantiate(group)
    until(lambda: all_run(fleet, group), "pods")
    assert fleet.act(group, "terminate")[0] == 202
    fleet.server.restart()
    until(lambda: fleet.state(group) == "Terminated", "end")
    assert fleet.left(deployment) == []
    assert fleet.charges(group) == {}


def test_terminated_while_it_was_away(fleet: RealFleet) -> None:
    """Killed after the instantiate was answered, and told to end as soon as it is back."""
    group = fleet.make(another())
    deployment = fleet.instantiate(group)
    fleet.server.restart()
    fleet.end(group, deployment)


@pytest.fixture
def hasty(named_clusters: dict[str, Cluster], tmp_path: Path) -> Iterator[RealFleet]:
    """A server that gives up soon."""
    with running_fleet(named_clusters, tmp_path, "--intents-apply-seconds", "15") as running:
        yield running


def test_one_cluster_goes_away(hasty: RealFleet) -> None:
    """Nothing is half-kept: what arrived on the other one is removed, and its charges are given
    back. A cluster that is known to be away is left out, and named."""
    group = hasty.make(another())
    until(lambda: hasty.is_seen(group), "feasible plan")
    cluster = hasty.clusters["c3"]
    cluster.apiserver.kill()
    try:
        assert hasty.act(group, "approve")[0] == 202
        status, said = hasty.act(group, "instantiate")
        assert status == 202, said
        until(lambda: hasty.state(group) == "InstantiateFailed", "failure")
        reason = hasty.status(group)["reason"]
        assert C3 in reason
        until(lambda: hasty.charges(group) == {}, "release")
        listed = hasty.clusters["c1"].kubectl(
            "get", "statefulsets,deployments,pods", "-A", "-o", "name"
        )
        assert listed.strip() == ""
        until(lambda: hasty.not_ready(group) == [C3], "plan that knows of it")
        status, said = hasty.act(group, "instantiate")
        assert status == 422
        assert [each["cluster"] for each in said["fleet"]["notReady"]] == [C3]
    finally:
        cluster.apiserver.start()
        cluster.await_ready()
    until(lambda: hasty.is_seen(group), "feasible plan")
    status, said = hasty.act(group, "instantiate")
    assert status == 202, said
    until(lambda: all_run(hasty, group), "pods")
    hasty.end(group, said["deployment"])


def test_terminate_waits_for_a_cluster_that_is_away(hasty: RealFleet) -> None:
    group = hasty.make(another())
    deployment = hasty.instantiate(group)
    until(lambda: all_run(hasty, group), "pods")
    cluster = hasty.clusters["c3"]
    cluster.apiserver.kill()
    try:
        assert hasty.act(group, "terminate")[0] == 202
        until(lambda: {at for at, _ in hasty.charges(group)} == {"c3"}, "release")
        assert hasty.state(group) == "Terminating"
    finally:
        cluster.apiserver.start()
        cluster.await_ready()
    until(lambda: hasty.state(group) == "Terminated", "end")
    assert hasty.left(deployment) == []
