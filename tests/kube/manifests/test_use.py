"""Who may ask for a class, and how many of it a namespace may have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dovetail.kube import manifests
from tests.support.kube.cluster import Cluster

KEY = "resourceclass.dovetail.dev/"


@pytest.fixture(scope="module")
def policy(cluster: Cluster) -> Iterator[Cluster]:
    given = manifests.text(["use"])
    cluster.kubectl("apply", "--server-side", "-f", "-", given=given)
    yield cluster
    cluster.kubectl("delete", "-f", "-", given=given)


@pytest.fixture
def alice(cluster: Cluster, namespace: str) -> Path:
    """May make pods in the namespace, and nothing else."""
    verbs = ("--verb=create,get,delete", "--resource=pods")
    cluster.kubectl("create", "-n", namespace, "role", "pods", *verbs)
    cluster.kubectl("create", "-n", namespace, "rolebinding", "a", "--role=pods", "--user=alice")
    return cluster.user("alice")


def pod(*classes: str, count: int = 1, account: str = "default") -> dict[str, Any]:
    amounts = {KEY + name: str(count) for name in classes}
    resources = {"requests": amounts, "limits": amounts}
    container = {"name": "main", "image": "any", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "asks-"},
        "spec": {"containers": [container], "serviceAccountName": account},
    }


def created(cluster: Cluster, who: Path, namespace: str, asked: dict[str, Any]) -> str:
    creating = ("create", "-n", namespace, "--dry-run=server", "-f", "-")
    return cluster.kubectl_as(who, *creating, given=asked, check=False)


def allow(cluster: Cluster, namespace: str, name: str, subject: str) -> None:
    rule = {
        "apiGroups": ["dovetail.dev"],
        "resources": ["resourceclasses"],
        "resourceNames": [name],
        "verbs": ["use"],
    }
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"use-{namespace}"},
        "rules": [rule],
    }
    cluster.kubectl("create", "-f", "-", given=role)
    binding = ("create", "clusterrolebinding", f"use-{namespace}")
    cluster.kubectl(*binding, f"--clusterrole=use-{namespace}", subject)


def await_refusal(cluster: Cluster, who: Path, namespace: str, name: str) -> str:
    """A policy takes a moment to come into force."""
    said = ""

    def refused() -> bool:
        nonlocal said
        said = created(cluster, who, namespace, pod(name))
        return "forbidden" in said

    cluster.await_that(refused, "refusal")
    return said


def test_a_class_may_be_asked_for_by_who_may_use_it(
    policy: Cluster, namespace: str, alice: Path
) -> None:
    said = await_refusal(policy, alice, namespace, "fast.nic")
    assert "asks for fast.nic, and neither alice nor the service account default may use" in said
    allow(policy, namespace, "fast.nic", "--user=alice")
    policy.await_that(
        lambda: "created" in created(policy, alice, namespace, pod("fast.nic")), "pod"
    )
    both = created(policy, alice, namespace, pod("fast.nic", "other.nic"))
    assert "forbidden" in both
    assert "other.nic" in both


def test_each_of_eight_classes_is_checked_and_more_are_refused(
    policy: Cluster, namespace: str
) -> None:
    names = [f"class-{n}" for n in range(9)]
    assert "created" in created(policy, policy.kubeconfig, namespace, pod(*names[:8]))
    assert "eight times in all" in created(policy, policy.kubeconfig, namespace, pod(*names))


def test_the_account_of_the_pod_is_as_good_as_its_creator(
    policy: Cluster, namespace: str, alice: Path
) -> None:
    await_refusal(policy, alice, namespace, "big.gpu")
    policy.kubectl("create", "-n", namespace, "serviceaccount", "trainer")
    allow(policy, namespace, "big.gpu", f"--serviceaccount={namespace}:trainer")
    trainer = pod("big.gpu", account="trainer")
    policy.await_that(lambda: "created" in created(policy, alice, namespace, trainer), "pod")
    assert "forbidden" in created(policy, alice, namespace, pod("big.gpu"))


def test_pods_that_ask_for_no_class_are_left_alone(
    policy: Cluster, namespace: str, alice: Path
) -> None:
    await_refusal(policy, alice, namespace, "some.gpu")
    assert "created" in created(policy, alice, namespace, pod())


def test_a_quota_limits_a_class_in_a_namespace(cluster: Cluster, namespace: str) -> None:
    hard = f"--hard=requests.{KEY}fast.nic=2"
    cluster.kubectl("create", "-n", namespace, "quota", "nics", hard)
    looking = ("get", "quota", "nics", "-n", namespace, "-o", "jsonpath={.status.used}")
    cluster.await_that(lambda: "fast.nic" in cluster.kubectl(*looking), "counted quota")
    creating = ("create", "-n", namespace, "-f", "-")
    assert "created" in cluster.kubectl(*creating, given=pod("fast.nic", count=2))
    said = cluster.kubectl(*creating, given=pod("fast.nic"), check=False)
    assert f"exceeded quota: nics, requested: requests.{KEY}fast.nic=1" in said
