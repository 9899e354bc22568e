"""Guests on a real API server: the policies installed, shapes published, pods tried."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dovetail.kube import manifests
from dovetail.machines.documents import MachineShape
from dovetail.machines.names import (
    ENABLED,
    GUEST,
    INJECT_RESOURCE,
    RESERVATION,
    UNIT_GATE,
    role_labels,
    stock_name,
)
from dovetail.machines.parameters import shape_parameters
from tests.kube.manifests.machines.api import install_kinds, one_type
from tests.machines.building import shape
from tests.support.kube.cluster import Cluster

NAMESPACE, GROUP = "dovetail", "general-machine"
OPERATOR = "system:serviceaccount:dovetail:dovetail-operator"
TYPES = ("compute-medium", "compute-xlarge", "plain")
PLAIN = one_type("plain")
"""Two CPUs, four gibibytes and no GPU."""


@contextmanager
def admission(cluster: Cluster) -> Iterator[Cluster]:
    """Everything that judges guests, with the shapes of the specification's example."""
    given = manifests.text(["machines-injection", "machines-admission"])
    install_kinds(cluster)
    cluster.kubectl("create", "namespace", NAMESPACE, check=False)
    cluster.kubectl("create", "serviceaccount", "dovetail-operator", "-n", NAMESPACE, check=False)
    cluster.kubectl("apply", "--server-side", "-f", "-", given=given)
    cluster.apply(*(parameters(name) for name in TYPES))
    if cluster.request("GET", "/api/v1/namespaces/opted-in")[0] != 200:
        cluster.make_namespace("opted-in")
        opt_in(cluster, "opted-in")
    cluster.await_that(lambda: is_in_force(cluster), "policies")
    try:
        yield cluster
    finally:
        cluster.kubectl("delete", "-f", "-", given=given)


def is_in_force(cluster: Cluster) -> bool:
    sleeper = pod_object(role=RESERVATION)
    unknown = pod_object("no-such-type")
    return (
        UNIT_GATE in str(made(cluster, "opted-in", pod_object()))
        and "no Machine" in refusal(cluster, "opted-in", unknown)
        and "StatefulSets" in refusal(cluster, "opted-in", sleeper)
    )


def parameters(name: str) -> dict[str, Any]:
    """The MachineShape that the operator publishes for the type."""
    found = shape(name, PLAIN if name == "plain" else None)
    fields = shape_parameters(GROUP, found)
    meta = {"name": stock_name(name, GROUP), **fields["metadata"]}
    api = MachineShape.API
    return {"apiVersion": api.api_version, "kind": api.kind, **fields, "metadata": meta}


def opt_in(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("label", "namespace", namespace, f"{INJECT_RESOURCE}={ENABLED}")


def container(name: str, requests: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    resources = {} if requests is None else {"resources": {"requests": requests}}
    return {"name": name, "image": "any", **resources, **more}


def pod_object(
    machine_type: str = "compute-xlarge",
    *containers: dict[str, Any],
    role: str = GUEST,
    labels: dict[str, str] | None = None,
    meta: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    named = {**role_labels(GROUP, machine_type, role), **(labels or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "guest-", "labels": named, **(meta or {})},
        "spec": {"containers": list(containers) or [container("main")], **spec},
    }


def made(
    cluster: Cluster, namespace: str, pod: dict[str, Any], *, dry: bool = True
) -> dict[str, Any]:
    """The pod as it would be stored, or the refusal, which has kind Status."""
    path = f"/api/v1/namespaces/{namespace}/pods{'?dryRun=All' if dry else ''}"
    _, said = cluster.request("POST", path, pod)
    found: dict[str, Any] = json.loads(said)
    return found


def spec_of(cluster: Cluster, namespace: str, pod: dict[str, Any]) -> dict[str, Any]:
    found = made(cluster, namespace, pod)
    assert found["kind"] == "Pod", found
    spec: dict[str, Any] = found["spec"]
    return spec


def refusal(cluster: Cluster, namespace: str, pod: dict[str, Any]) -> str:
    """What is said against the pod; nothing if it may be."""
    found = made(cluster, namespace, pod)
    return str(found["message"]) if found["kind"] == "Status" else ""
