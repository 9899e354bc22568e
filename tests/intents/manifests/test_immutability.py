"""Which changes of an object take a replacement."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dovetail.intents.manifests.immutability import immutable_changes
from tests.intents.manifests.charts import container, workload

Json = dict[str, Any]


def changed(before: Json, path: str, value: Any) -> Json:
    after = copy.deepcopy(before)
    *parents, last = path.split(".")
    parent = after
    for key in parents:
        parent = parent[int(key)] if isinstance(parent, list) else parent.setdefault(key, {})
    parent[int(last) if isinstance(parent, list) else last] = value
    return after


def changes(before: Json, path: str, value: Any) -> list[str]:
    return [each.path for each in immutable_changes(before, changed(before, path, value))]


CPU = {"limits": {"cpu": "2"}}
RESOURCES = "spec.template.spec.containers.0.resources"


WORKLOAD_CHANGES: list[tuple[str, str, Any, list[str]]] = [
    ("Deployment", RESOURCES, CPU, []),
    ("Deployment", "spec.replicas", 7, []),
    ("Deployment", "spec.selector", {"matchLabels": {"a": "b"}}, ["spec.selector"]),
    ("DaemonSet", RESOURCES, CPU, []),
    ("DaemonSet", "spec.selector", {}, ["spec.selector"]),
    ("ReplicaSet", "spec.selector", {}, ["spec.selector"]),
    ("StatefulSet", RESOURCES, CPU, []),
    ("StatefulSet", "spec.replicas", 7, []),
    ("StatefulSet", "spec.serviceName", "other", ["spec.serviceName"]),
    ("StatefulSet", "spec.podManagementPolicy", "Parallel", ["spec.podManagementPolicy"]),
    ("StatefulSet", "spec.volumeClaimTemplates", [{}], ["spec.volumeClaimTemplates"]),
    ("Job", RESOURCES, CPU, ["spec.template"]),
    ("Job", "spec.template.spec.nodeSelector", {"a": "b"}, ["spec.template"]),
    ("Job", "spec.parallelism", 7, []),
    ("Job", "spec.completions", 7, ["spec.completions"]),
    ("Job", "spec.suspend", True, []),
    ("CronJob", "spec.jobTemplate.spec.template.spec.nodeSelector", {"a": "b"}, []),
    ("ReplicationController", RESOURCES, CPU, []),
    ("Pod", "spec.containers.0.image", "other", []),
    ("Pod", "spec.containers.0.resources", CPU, ["spec.containers"]),
    ("Pod", "spec.nodeSelector", {"a": "b"}, ["spec.nodeSelector"]),
    ("Pod", "metadata.labels.a", "b", []),
]
"""A test in tests/kube has the API server say so, too."""


@pytest.mark.parametrize(("kind", "path", "value", "expected"), WORKLOAD_CHANGES)
def test_of_workloads(kind: str, path: str, value: Any, expected: list[str]) -> None:
    assert changes(workload(kind), path, value) == expected


@pytest.mark.parametrize(
    ("before", "path", "value", "expected"),
    [
        ({"kind": "ResourceClaimTemplate", "spec": {"spec": 1}}, "spec.spec", 2, ["spec.spec"]),
        ({"kind": "PersistentVolumeClaim", "spec": {}}, "spec.resources", {"a": 1}, []),
        (
            {"kind": "PersistentVolumeClaim", "spec": {}},
            "spec.storageClassName",
            "a",
            ["spec.storageClassName"],
        ),
        ({"kind": "RoleBinding", "roleRef": {"name": "a"}}, "roleRef.name", "b", ["roleRef"]),
        ({"kind": "Secret", "type": "a"}, "type", "b", ["type"]),
        ({"kind": "ConfigMap", "data": {"a": "b"}}, "data.a", "c", []),
        ({"kind": "ConfigMap", "immutable": True, "data": {"a": "b"}}, "data.a", "c", ["data"]),
        ({"kind": "Service", "spec": {"ports": []}}, "spec.ports", [{"port": 1}], []),
        ({"kind": "Acme", "spec": {"a": 1}}, "spec.a", 2, []),
    ],
)
def test_of_other_objects(before: Json, path: str, value: Any, expected: list[str]) -> None:
    assert changes(before, path, value) == expected


def test_nothing_changed_where_only_the_writing_did() -> None:
    before = workload("Job", "web", container(limits={"cpu": "1", "memory": "1024Mi"}))
    after = workload(
        "Job", "web", container(limits={"memory": "1Gi", "cpu": 1.0}), nodeSelector=None, volumes=[]
    )
    assert not immutable_changes(before, after)


def test_text_that_looks_like_a_quantity_is_text() -> None:
    main = {**container(), "env": [{"name": "VERSION", "value": "1.0"}]}
    before = workload("Job", "web", main)
    changed = "spec.template.spec.containers.0.env.0.value"
    assert changes(before, changed, "1") == ["spec.template"]


def test_it_says_why() -> None:
    job = workload("Job")
    (change,) = immutable_changes(job, {**job, "spec": {**job["spec"], "completions": 3}})
    assert (change.path, change.why) == ("spec.completions", "cannot be changed in a Job")
