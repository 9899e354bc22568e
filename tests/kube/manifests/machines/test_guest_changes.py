"""A guest stays what it was made as; everything else about it is free."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from dovetail.machines.names import CREATOR, MACHINE_GROUP, MACHINE_TYPE, POD_ROLE, UNIT_GATE
from dovetail.machines.names import OPERATOR as OPERATOR_NOTE
from tests.kube.manifests.machines.guests import OPERATOR, admission, made, pod_object
from tests.support.kube.cluster import Cluster

SPACE = "opted-in"
MASTERS = "--as-group=system:masters"
FIXED = "group, type and role of a guest stay as they are, and no pod becomes a guest later"
LIFTED = f"{UNIT_GATE} is lifted by the operator"
NO_GATES = '{"spec": {"schedulingGates": null}}'


@pytest.fixture(scope="module")
def policies(cluster: Cluster) -> Iterator[Cluster]:
    with admission(cluster) as found:
        yield found


@pytest.fixture
def guest(policies: Cluster) -> Iterator[str]:
    found = made(policies, SPACE, pod_object("plain"), dry=False)
    yield found["metadata"]["name"]
    policies.kubectl("delete", "pod", found["metadata"]["name"], "-n", SPACE, "--force")


def change(cluster: Cluster, name: str, *what: str) -> str:
    """`kubectl WHAT... pod NAME`: what it says."""
    verb, *arguments = what
    return cluster.kubectl(verb, "pod", name, "-n", SPACE, *arguments, check=False)


def merge(cluster: Cluster, name: str, patch: str, *more: str) -> str:
    return change(cluster, name, "patch", "--type=merge", "-p", patch, *more)


@pytest.mark.parametrize(
    "wanted",
    [
        f"{MACHINE_GROUP}=other",
        f"{MACHINE_TYPE}=compute-xlarge",
        f"{MACHINE_TYPE}-",
        f"{POD_ROLE}-",
        f"{POD_ROLE}=reservation",
    ],
)
def test_letter_k_a_live_guest_is_not_relabelled(
    policies: Cluster, guest: str, wanted: str
) -> None:
    said = change(policies, guest, "label", "--overwrite", wanted)
    assert "stay as they are" in said


def test_letter_k_nor_by_its_status(policies: Cluster, guest: str) -> None:
    """Whoever may write the status of a pod writes its labels along."""
    moved = json.dumps({"metadata": {"labels": {MACHINE_TYPE: "compute-xlarge"}}})
    assert FIXED in merge(policies, guest, moved, "--subresource=status")
    told = json.dumps({"status": {"message": "any"}})
    assert "patched" in merge(policies, guest, told, "--subresource=status")


def test_letter_k_no_pod_becomes_a_guest_later(policies: Cluster) -> None:
    pod = pod_object("plain", meta={"name": "ordinary"})
    labels = pod["metadata"].pop("labels")
    made(policies, SPACE, pod, dry=False)
    try:
        wanted = [f"{key}={value}" for key, value in labels.items()]
        assert FIXED in change(policies, "ordinary", "label", *wanted)
        assert "labeled" in change(policies, "ordinary", "label", *wanted[:2])
        assert FIXED in change(policies, "ordinary", "label", wanted[2])
    finally:
        policies.kubectl("delete", "pod", "ordinary", "-n", SPACE, "--force")


def test_defect_3_labels_annotations_and_finalizers_are_free(policies: Cluster, guest: str) -> None:
    assert "labeled" in change(policies, guest, "label", "team=a")
    assert "annotated" in change(policies, guest, "annotate", "note=b")
    for finalizers in ('["example.com/held"]', "[]"):
        said = merge(policies, guest, f'{{"metadata": {{"finalizers": {finalizers}}}}}')
        assert "patched" in said


def test_defect_3_pods_of_a_job_are_tracked_to_their_end(policies: Cluster) -> None:
    """The job controller takes its finalizer from pods that ended: an update of a guest."""
    pod = pod_object("plain", restartPolicy="Never")
    template = {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"]}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "four", "namespace": SPACE},
        "spec": {"template": template},
    }
    policies.kubectl("create", "-f", "-", given=job)
    listing = ("get", "pods", "-n", SPACE, "-l", "job-name=four", "-o", "json")

    def pods() -> list[str]:
        items = json.loads(policies.kubectl(*listing))["items"]
        return [each["metadata"]["name"] for each in items if UNIT_GATE in str(each["spec"])]

    policies.await_that(lambda: bool(pods()), "guest")
    (first,) = pods()
    policies.kubectl("delete", "pod", first, "-n", SPACE, "--wait=false")
    policies.await_that(lambda: first not in pods(), "end of the guest")
    policies.kubectl("delete", "job", "four", "-n", SPACE)
    policies.await_that(lambda: not pods(), "end of all guests")


def test_only_the_operator_lifts_the_gate(policies: Cluster, guest: str) -> None:
    alice = ("--as=alice", MASTERS)
    policies.await_that(lambda: LIFTED in merge(policies, guest, NO_GATES), "refusal")
    assert LIFTED in merge(policies, guest, NO_GATES, *alice)
    assert "patched" in merge(policies, guest, NO_GATES, f"--as={OPERATOR}", MASTERS)
    assert "labeled" in change(policies, guest, "label", "team=b")


def test_the_operator_is_who_its_account_says(policies: Cluster, guest: str) -> None:
    """Where it runs as somebody else, it notes that there."""
    annotating = ("annotate", "serviceaccount", "dovetail-operator", "-n", "dovetail")
    policies.await_that(lambda: LIFTED in merge(policies, guest, NO_GATES), "refusal")
    policies.kubectl(*annotating, f"{OPERATOR_NOTE}=admin")
    try:
        policies.await_that(lambda: "patched" in merge(policies, guest, NO_GATES), "the operator")
    finally:
        policies.kubectl(*annotating, f"{OPERATOR_NOTE}-")


def test_the_gate_of_others_is_theirs(policies: Cluster) -> None:
    own = {"name": "example.com/quota"}
    found = made(policies, SPACE, pod_object("plain", schedulingGates=[own]), dry=False)
    name = found["metadata"]["name"]
    left = json.dumps({"spec": {"schedulingGates": [{"name": UNIT_GATE}]}})
    try:
        assert "patched" in merge(policies, name, left)
    finally:
        policies.kubectl("delete", "pod", name, "-n", SPACE, "--force")


def test_the_creator_is_written_once(policies: Cluster, guest: str) -> None:
    assert "stays as it is" in change(policies, guest, "annotate", "--overwrite", f"{CREATOR}=bob")
    assert "stays as it is" in change(policies, guest, "annotate", f"{CREATOR}-")


def test_a_guest_is_not_resized(policies: Cluster, guest: str) -> None:
    larger = {"name": "main", "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "3"}}}
    patch = json.dumps({"spec": {"containers": [larger]}})
    said = change(policies, guest, "patch", "--subresource=resize", "-p", patch)
    assert "a guest has the size of its unit" in said
