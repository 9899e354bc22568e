"""Which devices a pod has is written by its binding, and by nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dovetail.kube import manifests
from dovetail.kube.classes.pod_annotation import ALLOCATION
from tests.support.kube.cluster import Cluster

REFUSED = "is written when a pod is bound"


@pytest.fixture(scope="module")
def guarded(cluster: Cluster) -> Iterator[Cluster]:
    given = manifests.text(["guard"])
    cluster.kubectl("apply", "--server-side", "-f", "-", given=given)
    yield cluster
    cluster.kubectl("delete", "-f", "-", given=given)


def pod(name: str, **annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "any"}], "schedulerName": "nobody"},
    }


def binding(name: str, written: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "annotations": {ALLOCATION: written}},
        "target": {"kind": "Node", "name": "anywhere"},
    }


def test_only_a_binding_writes_it_and_once(guarded: Cluster, namespace: str) -> None:
    create = ("create", "-n", namespace, "-f", "-")
    forged = pod("forged", **{ALLOCATION: "mine"})
    guarded.await_that(
        lambda: REFUSED in guarded.kubectl(*create, "--dry-run=server", given=forged, check=False),
        "refusal",
    )
    guarded.kubectl(*create, given=pod("real"))
    path = f"/api/v1/namespaces/{namespace}/pods/real/binding"
    guarded.kubectl("create", "--raw", path, "-f", "-", given=binding("real", "given"))
    annotate = ("annotate", "-n", namespace, "pod", "real", "--overwrite")
    assert REFUSED in guarded.kubectl(*annotate, f"{ALLOCATION}=more", check=False)
    assert REFUSED in guarded.kubectl(*annotate, f"{ALLOCATION}-", check=False)
    assert "annotated" in guarded.kubectl(*annotate, "other=fine")
