"""Readiness by kind: what an object has to show before it counts as ready."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.kube.deploy.discovery import DynamicObject, class_of
from dovetail.kube.deploy.readiness import readiness
from dovetail.podfit.objects import ApiResource, ObjectMeta


def found(kind: str, spec: Any = None, status: Any = None, **meta: Any) -> DynamicObject:
    of = class_of(ApiResource("g", "v1", "things", kind), DynamicObject)
    made: DynamicObject = of(metadata=ObjectMeta(name="x", **meta), spec=spec, status=status)
    return made


def condition(kind: str, status: str = "True", **more: str) -> dict[str, str]:
    return {"type": kind, "status": status, **more}


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (found("Deployment", {"replicas": 2}, {}), "0 of 2 replicas are up to date"),
        (
            found("Deployment", {"replicas": 2}, {"updatedReplicas": 2, "availableReplicas": 1}),
            "1 of 2 replicas are available",
        ),
        (found("StatefulSet", {}, {"updatedReplicas": 1}), "0 of 1 replicas are ready"),
        (
            found("DaemonSet", {}, {"desiredNumberScheduled": 3, "updatedNumberScheduled": 2}),
            "2 of 3 pods are up to date",
        ),
        (found("ReplicaSet", {"replicas": 1}, None), "0 of 1 replicas are ready"),
        (
            found("Job", {}, {"conditions": [condition("Failed", message="too often")]}),
            "it failed: too often",
        ),
        (found("Job", {"parallelism": 2}, {"ready": 1}), "1 of 2 pods are at work"),
        (
            found("Pod", {}, {"conditions": [condition("PodScheduled", "False", message="full")]}),
            "full",
        ),
        (found("Pod", {}, {"phase": "Running"}), "the pod is Running"),
        (found("PersistentVolumeClaim", {}, {}), "it is Pending"),
        (found("Service", {"type": "LoadBalancer"}, {}), "no load balancer has an address for it"),
        (found("CustomResourceDefinition", {}, {}), "the kind is not established"),
        (
            found("Widget", {}, {"conditions": [condition("Ready", "False", message="cold")]}),
            "cold",
        ),
        (
            found("Deployment", {}, {"observedGeneration": 1}, generation=2),
            "its controller has not seen the last change",
        ),
        (found("ConfigMap", deletion_timestamp="now"), "it is being deleted"),
    ],
)
def test_what_is_waited_for(one: DynamicObject, words: str) -> None:
    told = readiness(one)
    assert not told.is_ready
    assert told.words == words


@pytest.mark.parametrize(
    "one",
    [
        found("Deployment", {"replicas": 0}, {}),
        found("Deployment", {}, {"updatedReplicas": 1, "availableReplicas": 1}),
        found("StatefulSet", {"updateStrategy": {"type": "OnDelete"}}, {"readyReplicas": 1}),
        found("DaemonSet", {}, {}),
        found("Job", {}, {"conditions": [condition("Complete")]}),
        found("Job", {"parallelism": 5, "completions": 1}, {"ready": 1}),
        found("Pod", {}, {"phase": "Succeeded"}),
        found("Pod", {}, {"conditions": [condition("Ready")]}),
        found("PersistentVolumeClaim", {}, {"phase": "Bound"}),
        found("Service", {"type": "LoadBalancer"}, {"loadBalancer": {"ingress": [{"ip": "::1"}]}}),
        found("Service", {}, {}),
        found("CronJob", {}, {}),
        found("ConfigMap"),
        found("Widget", "anything", ["at all"]),
        found("Widget", {}, {"conditions": {"not": "a list"}}),
    ],
)
def test_what_is_ready(one: DynamicObject) -> None:
    assert readiness(one).is_ready
