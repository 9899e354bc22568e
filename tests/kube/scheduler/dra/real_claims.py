"""Slices, claims and what a real control plane has of them, for tests of schedulers."""

from __future__ import annotations

import json
from typing import Any

from tests.kube.scheduler import real
from tests.support.kube.cluster import OK, Cluster

DRIVER = "gpu.example.com"
CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"


def slice_object(node: str, *devices: str, driver: str = DRIVER) -> dict[str, Any]:
    listed = [{"name": name, "attributes": {"kind": {"string": "gpu"}}} for name in devices]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": listed},
    }


def device_class(name: str, resource: str = "") -> dict[str, Any]:
    select = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    more = {"extendedResourceName": resource} if resource else {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [select], **more},
    }


def claim_object(name: str, class_name: str) -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": class_name}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "work"},
        "spec": {"devices": {"requests": [request]}},
    }


def pod_with_claim(name: str, claim: str) -> dict[str, Any]:
    """For kube-scheduler."""
    pod = real.pod_object(name, "work", {}, scheduler="default-scheduler")
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
    pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    return pod


def claims(cluster: Cluster) -> list[dict[str, Any]]:
    status, said = cluster.request("GET", CLAIMS)
    assert status == OK, said
    found: list[dict[str, Any]] = json.loads(said)["items"]
    return found


def allocated(cluster: Cluster) -> dict[str, list[str]]:
    """Devices by the claim that has them."""
    return {
        each["metadata"]["name"]: sorted(
            result["device"] for result in each["status"]["allocation"]["devices"]["results"]
        )
        for each in claims(cluster)
        if each.get("status", {}).get("allocation")
    }


def pod(cluster: Cluster, name: str) -> dict[str, Any]:
    status, said = cluster.request("GET", f"/api/v1/namespaces/work/pods/{name}")
    assert status == OK, said
    found: dict[str, Any] = json.loads(said)
    return found


def is_bound(cluster: Cluster, name: str) -> bool:
    return bool(pod(cluster, name)["spec"].get("nodeName"))


def claim_name(cluster: Cluster, name: str) -> str:
    told = pod(cluster, name)["status"]["extendedResourceClaimStatus"]
    found: str = told["resourceClaimName"]
    return found


def words(cluster: Cluster, name: str) -> str:
    about = f"involvedObject.name={name}"
    listed = ("get", "events", "-n", "work", "--field-selector", about)
    return cluster.kubectl(*listed, "-o", "jsonpath={.items[*].message}")
