"""A cluster on which Imperator has run, for the page of who comes from it: its objects as it leaves
them, its marks on nodes, its webhooks that nobody answers. Nothing of Imperator itself is here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.kube.machines.bed import DGX, RTX, Bed
from tests.support.kube.cluster import Cluster, node_object
from tests.support.kube.tour import Demo
from tests.support.paths import DOVETAIL
from tests.support.server import running

API = "imperator.tenzen-y.io/v1alpha1"
DOMAIN = "imperator.tenzen-y.io"
GROUP = "general-machine"
SYSTEM = "imperator-system"
OWN = {"app.kubernetes.io/name": "imperator"}
UNITS = {"cpu": "6", "memory": "48Gi", "nvidia.com/gpu": "1"}
POOL = [{"name": "eriri", "mode": "ready", "taint": True, "machineType": [{"name": "medium"}]}]


def definition(kind: str, plural: str) -> dict[str, Any]:
    """Of a kind that takes anything."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": anything},
        "subresources": {"status": {}},
    }
    names = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": plural.removesuffix("s"),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{DOMAIN}", "labels": OWN},
        "spec": {"group": DOMAIN, "scope": "Cluster", "names": names, "versions": [version]},
    }


def machine() -> dict[str, Any]:
    """With the number of GPUs as text, as its webhook writes it."""
    gpu = {"type": "nvidia.com/gpu", "num": "1", "machine": "DGX-1"}
    shape = {"cpu": "6000m", "memory": "48Gi", "gpu": gpu}
    return {
        "apiVersion": API,
        "kind": "Machine",
        "metadata": {"name": GROUP, "labels": {f"{DOMAIN}/machine-group": GROUP}},
        "spec": {
            "nodePool": POOL,
            "machineTypes": [{"name": "medium", "spec": shape, "available": 4}],
        },
    }


def pool(owner: str) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "MachineNodePool",
        "metadata": {
            "name": f"{GROUP}-node-pool",
            "finalizers": ["imperator-machinenodepool-finalizer"],
            "ownerReferences": [
                {
                    "apiVersion": API,
                    "kind": "Machine",
                    "name": GROUP,
                    "uid": owner,
                    "controller": True,
                }
            ],
        },
        "spec": {
            "machineGroupName": GROUP,
            "nodePool": POOL,
            "machineTypeStock": [{"name": "medium"}],
        },
    }


def nodes() -> list[dict[str, Any]]:
    """One of the pool, and one that left it and kept its marks."""
    return [
        node_object(
            name,
            memory="256Gi",
            more={"nvidia.com/gpu": "4"},
            labels={**label, f"{DOMAIN}/node-pool": "ready", f"{DOMAIN}/{kind}": GROUP},
            annotations={f"{DOMAIN}/machine-group": GROUP},
            taints=[
                {"key": f"{DOMAIN}/{kind}", "value": GROUP, "effect": "NoSchedule"},
                {"key": f"{DOMAIN}/node-pool", "value": "ready", "effect": "NoSchedule"},
            ],
        )
        for name, label, kind in (("eriri", DGX, "medium"), ("michiru", RTX, "large"))
    ]


def labels(role: str) -> dict[str, str]:
    return {
        f"{DOMAIN}/machine-group": GROUP,
        f"{DOMAIN}/machine-type": "medium",
        f"{DOMAIN}/pod-role": role,
    }


def template(role: str) -> dict[str, Any]:
    """As Imperator makes stock, and as it leaves guests."""
    tolerations = [
        {"key": f"{DOMAIN}/medium", "operator": "Equal", "value": GROUP, "effect": "NoSchedule"},
        {
            "key": f"{DOMAIN}/node-pool",
            "operator": "Equal",
            "value": "ready",
            "effect": "NoSchedule",
        },
    ]
    resources = {"requests": UNITS, "limits": UNITS}
    return {
        "metadata": {"labels": labels(role)},
        "spec": {
            "tolerations": tolerations,
            "nodeSelector": {f"{DOMAIN}/medium": GROUP},
            "terminationGracePeriodSeconds": 2,
            "containers": [{"name": "main", "image": "any", "resources": resources}],
        },
    }


def workload(kind: str, name: str, namespace: str, replicas: int, role: str) -> dict[str, Any]:
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels(role)},
        "template": template(role),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels(role)},
        "spec": {**spec, **({"serviceName": name} if kind == "StatefulSet" else {})},
    }


def service(name: str, port: int, **about: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": SYSTEM, **about}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta,
        "spec": {"ports": [{"port": port}]},
    }


def webhooks() -> list[dict[str, Any]]:
    """That nobody answers."""
    client = {"service": {"name": "imperator-webhook-service", "namespace": SYSTEM}}
    about = {
        "clientConfig": client,
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    made = {"operations": ["CREATE", "UPDATE"], "apiVersions": ["v1"], "apiGroups": [""]}
    opted_in = {"matchLabels": {"imperator.tenzen.io/inject-resource": "enabled"}}
    pods = {
        "name": f"mutator.pod.{DOMAIN}",
        "namespaceSelector": opted_in,
        "rules": [{**made, "resources": ["pods"]}],
    }
    rule = {**made, "apiGroups": [DOMAIN], "apiVersions": ["v1alpha1"], "resources": ["machines"]}
    machines = {"name": f"validator.machine.{DOMAIN}", "rules": [rule]}
    return [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {
                "name": f"imperator-{kind.lower()}-webhook-configuration",
                "labels": OWN,
            },
            "webhooks": [{**hook, **about}],
        }
        for kind, hook in (("Mutating", pods), ("Validating", machines))
    ]


def controller() -> dict[str, Any]:
    found = workload("Deployment", "imperator-controller", SYSTEM, 1, "guest")
    found["metadata"]["labels"] = OWN
    found["spec"]["selector"] = {"matchLabels": OWN}
    pod = {"nodeName": "michiru", "containers": [{"name": "manager", "image": "any"}]}
    found["spec"]["template"] = {"metadata": {"labels": OWN}, "spec": pod}
    return found


@contextmanager
def a_cluster_of_imperator(directory: Path) -> Iterator[Demo]:
    """With a Machine whose stock is held, and a guest; an operator of ours waits for its kinds."""
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster.running(directory))
        cluster.start_controllers()
        cluster.start_node_lifecycle()
        cluster.start_kwok()
        cluster.start_scheduler()
        settle(cluster)
        bed = Bed(cluster, directory)
        options = ["--host", "127.0.0.1", "--auth", "noauth2", "--policy", "open"]
        serving = [DOVETAIL, "serve", "--database", bed.database, *options]
        server = stack.enter_context(running(serving, directory / "serve.log"))
        stack.callback(bed.stop_operators)
        bed.start_operator()
        yield Demo(directory, cluster, server)


def settle(cluster: Cluster) -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    cluster.apply(*nodes(), {**role, "metadata": {"name": "imperator-manager-role", "labels": OWN}})
    cluster.make_namespace(SYSTEM, OWN)
    cluster.make_namespace("guest-ns", {"imperator.tenzen.io/inject-resource": "enabled"})
    definitions = [
        definition("Machine", "machines"),
        definition("MachineNodePool", "machinenodepools"),
    ]
    for each in definitions:
        cluster.kubectl("apply", "-f", "-", given=each)
    names = [f"crd/{each['metadata']['name']}" for each in definitions]
    cluster.kubectl("wait", "--for=condition=Established", *names)
    cluster.kubectl("apply", "-f", "-", given=machine())
    uid = cluster.kubectl("get", "machine", GROUP, "-o", "jsonpath={.metadata.uid}")
    cluster.apply(
        pool(uid),
        controller(),
        service(f"{GROUP}-medium", 80, labels=labels("reservation")),
        service("imperator-webhook-service", 443, labels=OWN),
        workload("StatefulSet", f"{GROUP}-medium", SYSTEM, 3, "reservation"),
        workload("Deployment", "guest", "guest-ns", 1, "guest"),
    )
    cluster.kubectl("rollout", "status", "-n", SYSTEM, f"statefulset/{GROUP}-medium")
    cluster.kubectl("rollout", "status", "-n", "guest-ns", "deployment/guest")
    cluster.apply(*webhooks())
