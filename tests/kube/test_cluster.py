"""The test bed is the real thing: it authorises, admits, schedules and runs as a cluster does."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.kube.conftest import needs_kubernetes
from tests.support.kube import assets
from tests.support.kube.cluster import Cluster

NOT_FOUND = 404
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


class Bed:
    """A cluster with all its parts, and a namespace in it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.namespace = f"test-{uuid.uuid4().hex[:8]}"
        cluster.make_namespace(self.namespace)

    def create(
        self, name: str, *, annotations: Mapping[str, str] | None = None, **spec: Any
    ) -> Any:
        """The pod, as it was created."""
        body = pod(name, **spec)
        body["metadata"]["annotations"] = dict(annotations or {})
        _, said = self.cluster.request("POST", self._path(), body)
        return json.loads(said)

    def pod(self, name: str) -> Any:
        """Nothing if there is none."""
        status, said = self.cluster.request("GET", self._path(name))
        return None if status == NOT_FOUND else json.loads(said)

    def delete(self, name: str) -> None:
        self.cluster.request("DELETE", self._path(name))

    def annotate(self, name: str, **values: str | None) -> None:
        annotations = {f"test/{key}": value for key, value in values.items()}
        patch = {"metadata": {"annotations": annotations}}
        self.cluster.request("PATCH", self._path(name), patch)

    def await_phase(self, name: str, phase: str) -> Any:
        def reached() -> bool:
            found = self.pod(name)
            return found is not None and found["status"]["phase"] == phase

        self.cluster.await_that(reached, f"pod that is {phase}")
        return self.pod(name)["status"]

    def await_state(self, name: str, state: str) -> Any:
        """Of its only container: `running`, `waiting` or `terminated`."""
        found: list[Any] = []

        def reached() -> bool:
            found[:] = [self.pod(name)["status"]]
            statuses = found[0].get("containerStatuses", [])
            return any(state in each["state"] for each in statuses)

        self.cluster.await_that(reached, f"container that is {state}")
        return found[0]

    def _path(self, name: str = "") -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{name}".rstrip("/")


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "any"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }


def stateful_set(name: str, namespace: str, replicas: int) -> dict[str, Any]:
    template = pod(name, terminationGracePeriodSeconds=0)
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "serviceName": name,
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    needs_kubernetes()
    directory = tmp_path_factory.mktemp("whole")
    with Cluster.running(directory, taint_new_nodes=True) as running:
        running.add_nodes(3)
        running.start_controllers()
        running.start_node_lifecycle()
        running.start_scheduler()
        running.start_kwok()
        yield running


@pytest.fixture
def bed(whole: Cluster) -> Iterator[Bed]:
    made = Bed(whole)
    yield made
    whole.drop_namespace(made.namespace)


def test_all_programs_are_of_the_version_asked_for(cluster: Cluster) -> None:
    told = json.loads(cluster.kubectl("version", "-o", "json"))
    assert told["clientVersion"]["gitVersion"] == assets.version()
    assert told["serverVersion"]["gitVersion"] == assets.version()


def test_a_user_without_rights_is_refused(cluster: Cluster) -> None:
    said = cluster.kubectl_as(cluster.user("nobody"), "get", "nodes", check=False)
    assert 'User "nobody" cannot list resource "nodes"' in said


def test_a_namespace_has_its_labels(cluster: Cluster) -> None:
    cluster.make_namespace("labelled", {"team": "blue"})
    _, told = cluster.request("GET", "/api/v1/namespaces/labelled")
    assert json.loads(told)["metadata"]["labels"]["team"] == "blue"


def test_a_scheduled_pod_runs_and_says_so_of_each_container(bed: Bed) -> None:
    setup = {"name": "setup", "image": "once"}
    sidecar = {"name": "sidecar", "image": "beside", "restartPolicy": "Always"}
    bed.create("first", initContainers=[setup, sidecar])
    status = bed.await_phase("first", "Running")
    (main,) = status["containerStatuses"]
    assert (main["name"], main["image"], main["ready"], main["started"]) == (
        *("main", "any"),
        *(True, True),
    )
    assert "running" in main["state"]
    once, beside = status["initContainerStatuses"]
    assert once["state"]["terminated"]["exitCode"] == 0
    assert "running" in beside["state"]
    assert status["hostIP"]
    assert status["podIP"]
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    assert conditions["Ready"] == conditions["PodScheduled"] == "True"


@pytest.mark.parametrize(("phase", "code"), [("Succeeded", 0), ("Failed", 1)])
def test_a_pod_ends_when_it_is_told_to(bed: Bed, phase: str, code: int) -> None:
    bed.create("first")
    bed.await_phase("first", "Running")
    bed.annotate("first", end=phase)
    (main,) = bed.await_phase("first", phase)["containerStatuses"]
    assert main["state"]["terminated"]["exitCode"] == code


def test_a_crashing_pod_is_running_with_a_container_that_waits_until_it_recovers(bed: Bed) -> None:
    bed.create("first", annotations={"test/crash": "true"})
    status = bed.await_state("first", "waiting")
    assert status["phase"] == "Running"
    assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    bed.annotate("first", crash=None)
    assert bed.await_state("first", "running")["containerStatuses"][0]["ready"]


def test_a_running_pod_may_begin_to_crash(bed: Bed) -> None:
    bed.create("first")
    bed.await_state("first", "running")
    bed.annotate("first", crash="true")
    assert bed.await_state("first", "waiting")["phase"] == "Running"


def test_a_pod_whose_containers_are_being_created_is_bound_and_pending(bed: Bed) -> None:
    bed.create("first", annotations={"test/creating": "true"})
    status = bed.await_state("first", "waiting")
    assert status["phase"] == "Pending"
    assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating"
    assert bed.pod("first")["spec"]["nodeName"]
    bed.annotate("first", creating=None)
    bed.await_phase("first", "Running")


def test_an_unseen_pod_is_bound_and_has_no_states(bed: Bed) -> None:
    bed.create("first", annotations={"test/unseen": "true"})
    bed.create("second", nodeName="node-0")
    bed.cluster.await_that(lambda: "nodeName" in bed.pod("first")["spec"], "binding")
    bed.await_phase("second", "Running")
    assert "containerStatuses" not in bed.pod("first")["status"]
    bed.annotate("first", unseen=None)
    bed.await_phase("first", "Running")


def test_a_deleted_pod_stays_for_its_grace(bed: Bed) -> None:
    bed.create("first", terminationGracePeriodSeconds=2)
    bed.await_phase("first", "Running")
    started = time.monotonic()
    bed.delete("first")
    bed.annotate("first", changed="meanwhile")
    assert bed.pod("first")["metadata"]["deletionTimestamp"]
    bed.cluster.await_that(lambda: bed.pod("first") is None, "removal")
    assert time.monotonic() - started >= 2


def test_a_deleted_pod_that_exits_at_once_does_not_stay(bed: Bed) -> None:
    exits = {"test/exits-at-once": "true"}
    bed.create("first", annotations=exits, terminationGracePeriodSeconds=3600)
    bed.await_phase("first", "Running")
    bed.delete("first")
    bed.cluster.await_that(lambda: bed.pod("first") is None, "removal")


def test_a_pod_without_grace_is_gone_when_its_deletion_is_answered(bed: Bed) -> None:
    bed.create("first", terminationGracePeriodSeconds=0)
    bed.await_phase("first", "Running")
    bed.delete("first")
    assert bed.pod("first") is None


def test_pods_of_a_stateful_set_come_again_by_their_names(bed: Bed) -> None:
    """kwok, which deletes by name, has no part in it: it would hit the new ones."""
    bed.cluster.apply(stateful_set("stock", bed.namespace, 2))
    bed.await_phase("stock-0", "Running")
    bed.await_phase("stock-1", "Running")
    for _ in range(5):
        uid = bed.pod("stock-0")["metadata"]["uid"]
        bed.delete("stock-0")
        assert (bed.pod("stock-0") or {"metadata": {"uid": ""}})["metadata"]["uid"] != uid
        bed.await_phase("stock-0", "Running")
    lines = (bed.cluster.directory / "kwok.log").read_text().splitlines()
    mine = [line for line in lines if f"{bed.namespace}/stock-0" in line]
    assert mine
    assert not [line for line in mine if "elete pod" in line]


def test_new_nodes_are_tainted_until_they_are_found_to_be_ready(tmp_path: Path) -> None:
    needs_kubernetes()
    with Cluster.running(tmp_path, taint_new_nodes=True) as cluster:
        cluster.add_nodes(1)
        assert cluster.taints("node-0") == {(NOT_READY, "NoSchedule")}
        cluster.start_node_lifecycle()
        cluster.await_that(lambda: not cluster.taints("node-0"), "ready node")


def test_a_cordoned_node_is_tainted_until_it_is_uncordoned(bed: Bed) -> None:
    cluster = bed.cluster
    cluster.cordon("node-0")
    cluster.await_that(lambda: (UNSCHEDULABLE, "NoSchedule") in cluster.taints("node-0"), "taint")
    cluster.cordon("node-0", undo=True)
    cluster.await_that(lambda: not cluster.taints("node-0"), "node without taints")


def test_a_node_that_is_not_ready_is_tainted_until_it_is(bed: Bed) -> None:
    cluster = bed.cluster
    cluster.set_ready("node-0", "False")
    both = {(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")}
    cluster.await_that(lambda: cluster.taints("node-0") == both, "taints")
    cluster.set_ready("node-0", "True")
    cluster.await_that(lambda: not cluster.taints("node-0"), "node without taints")


def test_nothing_happens_to_pods_of_a_node_whose_kubelet_stopped(bed: Bed) -> None:
    cluster = bed.cluster
    cluster.stop_kubelet("node-0")
    both = {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
    cluster.await_that(lambda: cluster.taints("node-0") == both, "taints")
    bed.create("there", nodeName="node-0", tolerations=[{"operator": "Exists"}])
    bed.create("elsewhere", nodeName="node-1")
    bed.await_phase("elsewhere", "Running")
    assert bed.pod("there")["status"]["phase"] == "Pending"
    cluster.start_kubelet("node-0")
    bed.await_phase("there", "Running")
    cluster.await_that(lambda: not cluster.taints("node-0"), "node without taints")


def test_pods_that_do_not_tolerate_it_leave_a_node_that_is_not_ready(bed: Bed) -> None:
    cluster = bed.cluster
    shortly = {"key": NOT_READY, "effect": "NoExecute", "operator": "Exists"}
    bed.create(
        "first",
        annotations={"test/exits-at-once": "true"},
        nodeName="node-0",
        tolerations=[{**shortly, "tolerationSeconds": 0}],
    )
    bed.await_phase("first", "Running")
    cluster.set_ready("node-0", "False")
    cluster.await_that(lambda: bed.pod("first") is None, "eviction")
    cluster.set_ready("node-0", "True")
    cluster.await_that(lambda: not cluster.taints("node-0"), "node without taints")
