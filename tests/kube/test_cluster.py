"""The test bed is the real thing: it authorises, admits, schedules and runs as a cluster does."""

from __future__ import annotations

import json

from tests.support.kube import assets
from tests.support.kube.cluster import Cluster


def pod(name: str) -> dict[str, object]:
    container = {"name": "main", "image": "any"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }


def test_all_programs_are_of_the_version_asked_for(cluster: Cluster) -> None:
    told = json.loads(cluster.kubectl("version", "-o", "json"))
    assert told["clientVersion"]["gitVersion"] == assets.version()
    assert told["serverVersion"]["gitVersion"] == assets.version()


def test_a_user_without_rights_is_refused(cluster: Cluster) -> None:
    said = cluster.kubectl_as(cluster.user("nobody"), "get", "nodes", check=False)
    assert 'User "nobody" cannot list resource "nodes"' in said


def test_a_pod_is_scheduled_and_runs_on_a_node_without_a_kubelet(own_cluster: Cluster) -> None:
    own_cluster.make_namespace("here")
    own_cluster.add_nodes(2)
    own_cluster.start_scheduler()
    own_cluster.start_kwok()
    own_cluster.kubectl("create", "-n", "here", "-f", "-", given=pod("first"))

    def phase() -> str:
        _, told = own_cluster.request("GET", "/api/v1/namespaces/here/pods/first")
        found: str = json.loads(told)["status"]["phase"]
        return found

    own_cluster.await_that(lambda: phase() == "Running", "running pod")
    own_cluster.kubectl("annotate", "-n", "here", "pod", "first", "test/end=Succeeded")
    own_cluster.await_that(lambda: phase() == "Succeeded", "ended pod")
    own_cluster.kubectl("delete", "-n", "here", "pod", "first", "--timeout=20s")
