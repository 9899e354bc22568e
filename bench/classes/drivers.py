"""Pods bound per second with devices of DRA drivers: Dovetail beside kube-scheduler, in one run.

All get the same cluster, whose nodes have their devices in ResourceSlices, and as many pods.
Dovetail's ask for one device of a class: claimed in the ledger, allocated by a ResourceClaim of the
pod's own, annotated and bound. kube-scheduler's ask in the two ways that it has: by the extended
resource of a DeviceClass, for which it makes such a claim itself, and by a template, from which a
controller has made the claims before it starts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvloop
from tests.support.kube.cluster import Cluster

from ..report import progress
from . import binding
from .binding import OURS, ROUNDS, TOGETHER, Bound, by_dovetail, by_kube_scheduler

EXTENDED, TEMPLATE = "kube-scheduler, DeviceClass", "kube-scheduler, template"
KUBE = (EXTENDED, TEMPLATE)
DRIVER = "gpu.example.com"
RESOURCE = "example.com/accelerator"
API = "resource.k8s.io/v1"


def measure(nodes: int = binding.NODES, pods: int = binding.PODS, rounds: int = ROUNDS) -> Bound:
    found = Bound(nodes, pods, {EXTENDED: [], TEMPLATE: [], OURS: []})
    with tempfile.TemporaryDirectory() as directory, Cluster.running(Path(directory)) as cluster:
        prepare(cluster, nodes)
        for number in range(rounds):
            for at, name in enumerate(found.rates):
                namespace = f"round-{number}-{at}"
                cluster.make_namespace(namespace)
                cluster.apply(template(namespace))
                binding.create_pods(cluster, namespace, name, pods, pod)
                if name == TEMPLATE:
                    await_claims(cluster, namespace, pods)
                schedule = by_dovetail if name == OURS else by_kube_scheduler
                rate = uvloop.run(binding.bound(cluster, namespace, pods, schedule))
                progress(f"  {name}: {rate:.0f} pods/s")
                found.rates[name].append(rate)
                cluster.kubectl("delete", "namespace", namespace, "--timeout=300s")
                cluster.await_that(lambda: not claims(cluster), "end of all claims", 300)
    return found


def prepare(cluster: Cluster, nodes: int) -> None:
    binding.prepare(cluster, nodes, devices=())
    cluster.start_resource_claims()
    select = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    spec = {"selectors": [select], "extendedResourceName": RESOURCE}
    device_class = {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": "gpu"}}
    cluster.apply({**device_class, "spec": spec})
    for first in range(0, nodes, TOGETHER):
        numbers = range(first, min(first + TOGETHER, nodes))
        items = [slice_of(f"node-{number}") for number in numbers]
        listed = {"apiVersion": "v1", "kind": "List", "items": items}
        cluster.kubectl("create", "-f", "-", given=listed)


def slice_of(node: str) -> Mapping[str, Any]:
    kind = {"kind": {"string": "gpu"}}
    devices = [{"name": f"gpu-{n}", "attributes": kind} for n in range(binding.DEVICES_PER_NODE)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": API,
        "kind": "ResourceSlice",
        "metadata": {"name": node},
        "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices},
    }


def template(namespace: str) -> Mapping[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    return {
        "apiVersion": API,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu", "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def pod(name: str, namespace: str, scheduler: str) -> Mapping[str, Any]:
    resource = {EXTENDED: RESOURCE, OURS: binding.CLASS}.get(scheduler)
    amounts = {"cpu": "100m", "memory": "64Mi"} | ({resource: "1"} if resource else {})
    resources: dict[str, Any] = {"requests": amounts, "limits": amounts}
    spec: dict[str, Any] = {
        "schedulerName": "dovetail" if scheduler == OURS else "default-scheduler"
    }
    if scheduler == TEMPLATE:
        resources["claims"] = [{"name": "gpu"}]
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    spec["containers"] = [{"name": "main", "image": "any", "resources": resources}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def claims(cluster: Cluster, namespace: str = "") -> list[str]:
    where = ("-n", namespace) if namespace else ("-A",)
    return cluster.kubectl("get", "resourceclaims", *where, "-o", "name").split()


def await_claims(cluster: Cluster, namespace: str, count: int) -> None:
    cluster.await_that(lambda: len(claims(cluster, namespace)) == count, "claims", 300)
