"""Which devices a pod has is written by those who may allocate them, and by nobody else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dovetail.devices.allocation_document import ALLOCATION
from dovetail.kube import manifests
from tests.support.kube.cluster import Cluster

REFUSED = "is written when devices are allocated"
FORGED = {"metadata": {"annotations": {ALLOCATION: "mine"}}}


@pytest.fixture(scope="module")
def guarded(cluster: Cluster) -> Iterator[Cluster]:
    given = manifests.text(["guard"])
    cluster.kubectl("apply", "--server-side", "-f", "-", given=given)
    yield cluster
    cluster.kubectl("delete", "-f", "-", given=given)


@pytest.fixture
def mallory(cluster: Cluster, namespace: str) -> Path:
    """May do anything to pods of the namespace and what belongs to them, and nothing else."""
    parts = ("status", "resize", "ephemeralcontainers", "binding", "eviction")
    of_pods = ["pods", *(f"pods/{each}" for each in parts), "bindings"]
    return user_of(cluster, namespace, "mallory", {"resources": of_pods})


@pytest.fixture
def allocator(cluster: Cluster, namespace: str) -> Iterator[Path]:
    """May besides do what the scheduler's manifest lets it do to classes."""
    parts = yaml.safe_load_all(manifests.text(["scheduler"]))
    (role,) = [each for each in parts if each["kind"] == "ClusterRole"]
    own = [each for each in role["rules"] if each["apiGroups"] == ["dovetail.dev"]]
    name = f"allocator-{namespace}"
    role |= {"metadata": {"name": name}, "rules": own}
    cluster.kubectl("create", "-f", "-", given=role)
    cluster.kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", f"--user={name}")
    yield user_of(cluster, namespace, name, {"resources": ["pods", "pods/binding"]})
    cluster.kubectl("delete", "clusterrole,clusterrolebinding", name)


def user_of(cluster: Cluster, namespace: str, name: str, rule: dict[str, Any]) -> Path:
    verbs = ["get", "list", "create", "update", "patch", "delete"]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": name},
        "rules": [{"apiGroups": [""], "verbs": verbs, **rule}],
    }
    cluster.kubectl("create", "-n", namespace, "-f", "-", given=role)
    bound = ("rolebinding", name, f"--role={name}", f"--user={name}")
    cluster.kubectl("create", "-n", namespace, *bound)
    return cluster.user(name)


def pod(name: str, **annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "any"}], "schedulerName": "nobody"},
    }


def binding(name: str, written: str | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "annotations": {ALLOCATION: written} if written else {}},
        "target": {"kind": "Node", "name": "anywhere"},
    }


def await_guard(cluster: Cluster, who: Path, namespace: str) -> None:
    """A policy takes a moment to come into force."""
    creating = ("create", "-n", namespace, "--dry-run=server", "-f", "-")
    forged = pod("forged", **{ALLOCATION: "mine"})
    cluster.await_that(
        lambda: REFUSED in cluster.kubectl_as(who, *creating, given=forged, check=False),
        "refusal",
        60.0,
    )


def written(cluster: Cluster, namespace: str, name: str) -> str | None:
    said = json.loads(cluster.kubectl("get", "-n", namespace, "pod", name, "-o", "json"))
    found: str | None = said["metadata"].get("annotations", {}).get(ALLOCATION)
    return found


def test_who_may_allocate_writes_by_a_binding(
    guarded: Cluster, namespace: str, mallory: Path, allocator: Path
) -> None:
    await_guard(guarded, mallory, namespace)
    guarded.kubectl("create", "-n", namespace, "-f", "-", given=pod("real"))
    path = f"/api/v1/namespaces/{namespace}/pods/real/binding"
    create = ("create", "--raw", path, "-f", "-")
    guarded.kubectl_as(allocator, *create, given=binding("real", "given"))
    assert written(guarded, namespace, "real") == "given"
    annotate = ("annotate", "-n", namespace, "pod", "real", "--overwrite")
    assert REFUSED in guarded.kubectl_as(mallory, *annotate, f"{ALLOCATION}=more", check=False)
    assert REFUSED in guarded.kubectl_as(mallory, *annotate, f"{ALLOCATION}-", check=False)
    assert "annotated" in guarded.kubectl_as(mallory, *annotate, "other=fine")
    assert written(guarded, namespace, "real") == "given"


@pytest.mark.parametrize("way", ["pods/{}/binding", "bindings"])
def test_bindings_of_others_bring_no_devices(
    guarded: Cluster, namespace: str, mallory: Path, way: str
) -> None:
    await_guard(guarded, mallory, namespace)
    guarded.kubectl("create", "-n", namespace, "-f", "-", given=pod("mine"))
    path = f"/api/v1/namespaces/{namespace}/{way.format('mine')}"
    create = ("create", "--raw", path, "-f", "-")
    said = guarded.kubectl_as(mallory, *create, given=binding("mine", "forged"), check=False)
    assert REFUSED in said
    assert "mallory may not do that" in said
    # Without devices they bind as ever.
    guarded.kubectl_as(mallory, *create, given=binding("mine"))
    assert written(guarded, namespace, "mine") is None


@pytest.mark.parametrize("part", ["", "status", "ephemeralcontainers", "resize"])
@pytest.mark.parametrize("form", ["merge", "strategic", "json"])
def test_no_part_of_a_pod_is_a_way_round(
    guarded: Cluster, namespace: str, mallory: Path, part: str, form: str
) -> None:
    await_guard(guarded, mallory, namespace)
    guarded.kubectl("create", "-n", namespace, "-f", "-", given=pod("mine", other="x"))
    key = ALLOCATION.replace("/", "~1")
    patch: object = FORGED
    if form == "json":
        patch = [{"op": "add", "path": f"/metadata/annotations/{key}", "value": "mine"}]
    sub = ("--subresource", part) if part in ("status", "resize") else ()
    if part == "ephemeralcontainers":
        # kubectl has no word for it: the object goes back as a whole.
        path = f"/api/v1/namespaces/{namespace}/pods/mine"
        now = json.loads(guarded.kubectl_as(mallory, "get", "--raw", path))
        now["metadata"]["annotations"] |= FORGED["metadata"]["annotations"]
        guarded.kubectl_as(
            mallory, "replace", "--raw", f"{path}/{part}", "-f", "-", given=now, check=False
        )
    else:
        patching = ("patch", "-n", namespace, "pod", "mine", *sub)
        how = ("--type", form, "-p", json.dumps(patch))
        said = guarded.kubectl_as(mallory, *patching, *how, check=False)
        if part != "resize":
            assert REFUSED in said
    assert written(guarded, namespace, "mine") is None


def test_nor_is_a_pod_that_is_made_or_put_with_it(
    guarded: Cluster, namespace: str, mallory: Path
) -> None:
    await_guard(guarded, mallory, namespace)
    forged = pod("born", **{ALLOCATION: "mine"})
    placed = {**forged, "spec": {**forged["spec"], "nodeName": "anywhere"}}
    create = ("create", "-n", namespace, "-f", "-")
    assert REFUSED in guarded.kubectl_as(mallory, *create, given=forged, check=False)
    assert REFUSED in guarded.kubectl_as(mallory, *create, given=placed, check=False)
    guarded.kubectl_as(mallory, *create, given=pod("born"))
    reading = ("get", "-n", namespace, "pod", "born", "-o", "json")
    now = json.loads(guarded.kubectl_as(mallory, *reading))
    now["metadata"]["annotations"] = FORGED["metadata"]["annotations"]
    replace = ("replace", "-n", namespace, "-f", "-")
    assert REFUSED in guarded.kubectl_as(mallory, *replace, given=now, check=False)
    applying = ("apply", "--server-side", "-n", namespace, "-f", "-")
    assert REFUSED in guarded.kubectl_as(mallory, *applying, given=forged, check=False)


def test_pods_are_evicted_and_told_of_as_ever(
    guarded: Cluster, namespace: str, mallory: Path
) -> None:
    await_guard(guarded, mallory, namespace)
    guarded.kubectl("create", "-n", namespace, "-f", "-", given=pod("mine"))
    told = json.dumps({"status": {"message": "well"}})
    patching = ("patch", "-n", namespace, "pod", "mine", "--subresource", "status")
    guarded.kubectl_as(mallory, *patching, "--type", "merge", "-p", told)
    path = f"/api/v1/namespaces/{namespace}/pods/mine/eviction"
    meta = {"name": "mine", "namespace": namespace}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
    guarded.kubectl_as(mallory, "create", "--raw", path, "-f", "-", given=eviction)
    assert "mine" not in guarded.kubectl("get", "-n", namespace, "pods", "-o", "name")
