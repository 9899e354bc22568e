"""The scheduler as its manifest has it: with the rights given there, and no others."""

from __future__ import annotations

import json

import pytest
import yaml

from dovetail.cli.run.scheduler import SCHEDULER
from dovetail.kube import manifests
from tests.kube.scheduler import real
from tests.kube.scheduler.dra.real_claims import allocated, claim_object, claims, slice_object
from tests.support.kube.cluster import Cluster

NAME = "dovetail-scheduler"


def test_the_deployment_sets_what_can_be_set() -> None:
    parts = yaml.safe_load_all(manifests.text(["scheduler"]))
    (deployment,) = [each for each in parts if each["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    command, *arguments = container["args"]
    assert command == "scheduler"
    flags = {each for each in arguments if each.startswith("--")}
    assert flags <= {each.flag for each in SCHEDULER.settings.values()}
    assert {each["name"] for each in container["env"]} <= {
        each.variable for each in SCHEDULER.settings.values()
    }
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]


@pytest.fixture
def installed(own_cluster: Cluster) -> Cluster:
    """The manifest, less what would need an image, and a user who may do what its account may."""
    cluster = own_cluster
    real.install(cluster)
    parts = list(yaml.safe_load_all(manifests.text(["scheduler"])))
    cluster.apply(*(each for each in parts if each["kind"] != "Deployment"))
    applying = ("apply", "--server-side", "--dry-run=server", "-f", "-")
    cluster.kubectl(*applying, given=manifests.text(["scheduler"]))
    user = f"--user={NAME}"
    cluster.kubectl("create", "clusterrolebinding", "test", f"--clusterrole={NAME}", user)
    cluster.kubectl("create", "rolebinding", "test", "-n", "dovetail", f"--role={NAME}", user)
    return cluster


def test_it_leads_places_pods_and_tells_with_the_rights_of_its_account(
    installed: Cluster, database: str
) -> None:
    cluster = installed
    cluster.apply(real.class_object("gpu"))
    cluster.add_nodes(2, annotations=real.devices("g0"))
    cluster.make_namespace("work")
    its_own = ("--kubeconfig", str(cluster.user(NAME)), "--lease-namespace", "dovetail")
    with real.scheduler(cluster, database, "scheduler", *its_own) as process:
        cluster.await_that(lambda: real.is_ready(process), "scheduler")
        real.create(cluster, [real.pod_object(f"p{n}", "work", {"gpu": 1}) for n in range(3)])
        cluster.await_that(lambda: real.bound(cluster, "work") == 2, "pods with nodes")
        cluster.await_that(
            lambda: {"Scheduled", "FailedScheduling"} <= reasons(cluster), "events about them"
        )
        numbers = ("get", "rescls", "gpu", "-o", "jsonpath={.status.requested}")
        cluster.await_that(lambda: cluster.kubectl(*numbers) == "2", "numbers of the class")
        assert "PodScheduled=False" in conditions(cluster)
        cluster.kubectl("annotate", "nodes", "--all", "--overwrite", "dovetail.dev/devices=[]")
        lost = "dovetail.dev/DevicesAvailable=False"
        cluster.await_that(lambda: lost in conditions(cluster), "condition of pods that lost them")
    assert "forbidden" not in real.log_of(cluster.directory, "scheduler").lower()
    lease = ("get", "lease", NAME, "-n", "dovetail", "-o", "jsonpath={.spec.holderIdentity}")
    assert cluster.kubectl(*lease) == "", "the lease is given back"


def test_devices_of_drivers_come_with_the_rights_of_its_account(
    installed: Cluster, database: str
) -> None:
    cluster = installed
    cluster.apply(real.class_object("gpu"))
    cluster.add_nodes(1)
    cluster.apply(slice_object("node-0", "g0"))
    cluster.make_namespace("work")
    # Of a scheduler that died: without its pod, and nobody but ours takes its finalizer away here.
    left = claim_object("no-more-none", "any")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "no-more", "uid": "none"}
    left["metadata"] |= {
        "labels": {"dovetail.dev/resource-claim": "true"},
        "ownerReferences": [{**owner, "controller": True}],
        "finalizers": ["resource.kubernetes.io/delete-protection"],
    }
    cluster.apply(left)
    its_own = ("--kubeconfig", str(cluster.user(NAME)), "--lease-namespace", "dovetail")
    with real.scheduler(cluster, database, "scheduler", *its_own) as process:
        cluster.await_that(lambda: real.is_ready(process), "scheduler")
        cluster.await_that(lambda: not claims(cluster), "end of what was left over")
        real.create(cluster, [real.pod_object("p", "work", {"gpu": 1})])
        cluster.await_that(lambda: real.bound(cluster, "work") == 1, "a pod with a node")
        assert list(allocated(cluster).values()) == [["g0"]]
    assert "forbidden" not in real.log_of(cluster.directory, "scheduler").lower()


def reasons(cluster: Cluster) -> set[str]:
    listed = cluster.kubectl("get", "events", "-n", "work", "-o", "jsonpath={.items[*].reason}")
    return set(listed.split())


def conditions(cluster: Cluster) -> set[str]:
    listed = json.loads(cluster.kubectl("get", "pods", "-n", "work", "-o", "json"))["items"]
    return {
        f"{each['type']}={each['status']}"
        for pod in listed
        for each in pod["status"].get("conditions", [])
    }
