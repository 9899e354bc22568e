"""Readiness of objects by their kind: whether what was applied does what it is for.

Called by the port of deployments with objects as their cluster tells them. A kind that is not known
here is ready, unless a condition says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dovetail.intents.deployment import ObjectReadiness
from dovetail.kube.deploy.discovery import DynamicObject

Fields = Mapping[str, Any]
READY = ObjectReadiness(is_ready=True)


def readiness(found: DynamicObject) -> ObjectReadiness:
    if found.metadata.deletion_timestamp is not None:
        return waiting("it is being deleted")
    spec, status = fields(found.spec), fields(found.status)
    if status.get("observedGeneration", found.metadata.generation) < found.metadata.generation:
        return waiting("its controller has not seen the last change")
    return RULES.get(found.API.kind, by_conditions)(spec, status)


def fields(value: Any) -> Fields:
    return value if isinstance(value, Mapping) else {}


def waiting(words: str) -> ObjectReadiness:
    return ObjectReadiness(is_ready=False, words=words)


def so_many(have: int, wanted: int, what: str) -> ObjectReadiness:
    return READY if have >= wanted else waiting(f"{have} of {wanted} {what}")


def deployment(spec: Fields, status: Fields) -> ObjectReadiness:
    wanted = spec.get("replicas", 1)
    updated = so_many(status.get("updatedReplicas", 0), wanted, "replicas are up to date")
    if not updated.is_ready:
        return updated
    return so_many(status.get("availableReplicas", 0), wanted, "replicas are available")


def stateful_set(spec: Fields, status: Fields) -> ObjectReadiness:
    wanted = spec.get("replicas", 1)
    if fields(spec.get("updateStrategy")).get("type") != "OnDelete":
        updated = so_many(status.get("updatedReplicas", 0), wanted, "replicas are up to date")
        if not updated.is_ready:
            return updated
    return so_many(status.get("readyReplicas", 0), wanted, "replicas are ready")


def replicas(spec: Fields, status: Fields) -> ObjectReadiness:
    return so_many(status.get("readyReplicas", 0), spec.get("replicas", 1), "replicas are ready")


def daemon_set(_: Fields, status: Fields) -> ObjectReadiness:
    wanted = status.get("desiredNumberScheduled", 0)
    updated = so_many(status.get("updatedNumberScheduled", 0), wanted, "pods are up to date")
    ready = so_many(status.get("numberReady", 0), wanted, "pods are ready")
    return ready if updated.is_ready else updated


def job(spec: Fields, status: Fields) -> ObjectReadiness:
    """Ready when it is done, or has all its pods at work."""
    for each in status.get("conditions") or ():
        if each.get("type") == "Failed" and each.get("status") == "True":
            return waiting(f"it failed: {each.get('message', '')}")
        if each.get("type") == "Complete" and each.get("status") == "True":
            return READY
    wanted = min(spec.get("parallelism", 1), spec.get("completions", spec.get("parallelism", 1)))
    at_work = status.get("ready", 0) + status.get("succeeded", 0)
    return so_many(at_work, wanted, "pods are at work")


def pod(_: Fields, status: Fields) -> ObjectReadiness:
    if status.get("phase") == "Succeeded":
        return READY
    conditions = {each.get("type"): each for each in status.get("conditions") or ()}
    if conditions.get("Ready", {}).get("status") == "True":
        return READY
    scheduled = conditions.get("PodScheduled", {})
    words = scheduled.get("message") if scheduled.get("status") == "False" else ""
    return waiting(words or f"the pod is {status.get('phase', 'Pending')}")


def volume_claim(_: Fields, status: Fields) -> ObjectReadiness:
    phase = status.get("phase", "Pending")
    return READY if phase == "Bound" else waiting(f"it is {phase}")


def service(spec: Fields, status: Fields) -> ObjectReadiness:
    if spec.get("type") != "LoadBalancer" or fields(status.get("loadBalancer")).get("ingress"):
        return READY
    return waiting("no load balancer has an address for it")


def established(_: Fields, status: Fields) -> ObjectReadiness:
    for each in status.get("conditions") or ():
        if each.get("type") == "Established" and each.get("status") == "True":
            return READY
    return waiting("the kind is not established")


def by_conditions(_: Fields, status: Fields) -> ObjectReadiness:
    conditions = status.get("conditions")
    for each in conditions if isinstance(conditions, list) else ():
        if fields(each).get("type") == "Ready" and each.get("status") == "False":
            return waiting(each.get("message") or each.get("reason") or "it says that it is not")
    return READY


RULES: dict[str, Callable[[Fields, Fields], ObjectReadiness]] = {
    "Deployment": deployment,
    "StatefulSet": stateful_set,
    "ReplicaSet": replicas,
    "ReplicationController": replicas,
    "DaemonSet": daemon_set,
    "Job": job,
    "Pod": pod,
    "PersistentVolumeClaim": volume_claim,
    "Service": service,
    "CustomResourceDefinition": established,
}
