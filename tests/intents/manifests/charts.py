"""Objects as charts have them, in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.core.quantity import parse
from dovetail.intents.group import (
    AllocatableRequirement,
    AnyRequirement,
    GroupApp,
    LabelRequirement,
    ResourceConsumer,
)

Json = dict[str, Any]

API_VERSIONS = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "Pod": "v1",
}


def container(name: str = "main", **resources: Mapping[str, object]) -> Json:
    found: Json = {"name": name, "image": f"registry.example.com/{name}:1"}
    return {**found, "resources": dict(resources)} if resources else found


def workload(
    kind: str, name: str = "web", *containers: Json, replicas: object = None, **spec: object
) -> Json:
    """An object of the kind; further fields are those of the pod's spec."""
    labels = {"app": name}
    pod: Json = {
        "metadata": {"labels": labels},
        "spec": {"containers": list(containers) or [container()], **spec},
    }
    meta = {"name": name, "labels": labels}
    if kind == "Pod":
        return {"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": pod["spec"]}
    job: Json = {"template": pod}
    if "Job" in kind:
        pod["spec"].setdefault("restartPolicy", "Never")
    number = "parallelism" if "Job" in kind else "replicas"
    if replicas is not None:
        job[number] = replicas
    if kind == "CronJob":
        job = {"schedule": "* * * * *", "jobTemplate": {"spec": job}}
    elif kind not in ("Job", "ReplicationController"):
        job["selector"] = {"matchLabels": labels}
    return {"apiVersion": API_VERSIONS[kind], "kind": kind, "metadata": meta, "spec": job}


def app(*objects: Mapping[str, Any], name: str = "shop") -> GroupApp:
    return GroupApp(name=name, objects=objects)


def amount(resource: str, requests: str, limits: str | None = None, **more: Any) -> AnyRequirement:
    return AllocatableRequirement(
        name=more.pop("name", f"{resource}-needs"),
        resource=resource,
        requests=parse(requests),
        limits=None if limits is None else parse(limits),
        **more,
    )


def label(key: str, *values: str, operator: str = "In", **more: Any) -> AnyRequirement:
    return LabelRequirement(
        name=more.pop("name", f"{key}-needs"), key=key, operator=operator, values=values, **more
    )


def consumer(
    kind: str = "Deployment", name: str = "web", container: str = "main", **more: Any
) -> ResourceConsumer:
    return ResourceConsumer(
        name=more.pop("called", name), kind=kind, object_name=name, container=container, **more
    )
