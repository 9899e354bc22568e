"""Resource claims of Kubernetes: who has which devices by them, and what one says for a pod.

Devices of ResourceSlices come into containers by a ResourceClaim, as kube-scheduler writes it for
extended resources that DRA drivers serve: the scheduler's claim writer makes a claim of the pod's
own, with its allocation, and says in the pod's status which request of it is for which container.
The kubelet and the driver do the rest. A claim has a request for each device, so that a container
gets exactly those it uses, whichever containers use others of the same class. The mirror and the
scheduler's state read the claims of everybody. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from dovetail.core.device import DraOrigin, Origin
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.devices.container_use import uses
from dovetail.kube.classes.device_requests import container_uses_of
from dovetail.podfit.objects import (
    ApiResource,
    ApiStruct,
    ExtendedClaimStatus,
    KubeObject,
    Pod,
    RequestMapping,
)
from dovetail.podfit.pod_sum import CLASS_PREFIX

FINALIZER = "resource.kubernetes.io/delete-protection"
"""Kubernetes' own: its controller takes it away when nobody has the claim reserved."""
EXTENDED = "resource.kubernetes.io/extended-resource-claim"
"""Annotation: the claim is for a pod's extended resources."""
OURS = "dovetail.dev/resource-claim"
"""Label of the claims that are written here."""
PLAN = "dovetail.dev/plan"
"""Annotation: a digest of node and devices that the claim was written for."""
EPOCH = "dovetail.dev/epoch"
"""Annotation: a digest of the fence that the pod had then; with another, the claim is void."""
DEVICE_CLASS = "dovetail.dev"
"""A request has to name a DeviceClass; there need not be one of that name."""
MOST_DEVICES = 32
"""Of one claim."""
IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""Begins the extended resource that every DeviceClass is."""
LONGEST_POD_NAME = 200
"""Characters of a pod's name that go into its claim's."""


class AllocatedDevice(ApiStruct, frozen=True, kw_only=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    """It looks at a device that somebody else has."""


class DeviceAllocation(ApiStruct, frozen=True, kw_only=True):
    results: tuple[AllocatedDevice, ...] = ()


class ClaimAllocation(ApiStruct, frozen=True, kw_only=True):
    devices: DeviceAllocation = DeviceAllocation()


class ClaimConsumer(ApiStruct, frozen=True, kw_only=True):
    resource: str = ""
    uid: str = ""


class ResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    allocation: ClaimAllocation | None = None
    reserved_for: tuple[ClaimConsumer, ...] = ()


class ResourceClaim(KubeObject, frozen=True, kw_only=True):
    API = ApiResource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")

    status: ResourceClaimStatus = ResourceClaimStatus()


class KubeDeviceClassSpec(ApiStruct, frozen=True, kw_only=True):
    extended_resource_name: str = ""


class KubeDeviceClass(KubeObject, frozen=True, kw_only=True):
    """Kubernetes' own, which has nothing to do with classes here but that pods may ask for both."""

    API = ApiResource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False)

    spec: KubeDeviceClassSpec = KubeDeviceClassSpec()


# -- who has what


def allocated_devices(claim: ResourceClaim) -> frozenset[DraOrigin]:
    """What nobody else can have; who only looks at a device has nothing."""
    allocation = claim.status.allocation
    if allocation is None:
        return frozenset()
    return frozenset(
        DraOrigin(each.driver, each.pool, each.device)
        for each in allocation.devices.results
        if not each.admin_access
    )


def is_ours(claim: ResourceClaim) -> bool:
    """Written here, for the pod that owns it.

    Users may make claims that say so. But what kube-scheduler gives these is reserved for the pods
    that name them, and such a claim is theirs.
    """
    uid = owner_uid(claim)
    return (
        OURS in claim.metadata.labels
        and bool(uid)
        and claim.metadata.name.endswith(f"-{uid}")
        and all(each.uid == uid for each in claim.status.reserved_for)
    )


def owner_uid(claim: ResourceClaim) -> str:
    """Of the pod that it was made for; empty if for none."""
    owners = (each for each in claim.metadata.owner_references if each.controller)
    return next((each.uid for each in owners if each.kind == "Pod"), "")


def holder_name(claim: ResourceClaim) -> str:
    """By whom its devices count as held: a claim of ours is its pod's, others are their own."""
    return owner_uid(claim) if is_ours(claim) else claim.metadata.uid


def mapped_resource(resources: Iterable[str], classes: Mapping[str, str]) -> tuple[str, str] | None:
    """The first of these that kube-scheduler takes for devices of a DeviceClass, and which.

    `classes` has the names of DeviceClasses by the resource that they say they are.
    """
    for name in resources:
        if name in classes:
            return name, classes[name]
        if name.startswith(IMPLICIT):
            return name, name.removeprefix(IMPLICIT)
    return None


# -- what one says for a pod


class WantedClaim(msgspec.Struct, frozen=True):
    """The claim of a pod for the devices of a plan that DRA drivers have."""

    pod: Pod
    node: str
    devices: tuple[DraOrigin, ...]
    """In order, so that everybody who writes it for these devices writes the same."""
    epoch: str

    @property
    def name(self) -> str:
        return claim_name(self.pod)

    @property
    def plan(self) -> str:
        return digest(self.node, *(part for each in self.devices for part in parts_of(each)))

    def is_written_in(self, claim: ResourceClaim) -> bool:
        notes = claim.metadata.annotations
        return self.is_of_its_epoch(claim) and notes.get(PLAN) == self.plan

    def is_allocated_in(self, claim: ResourceClaim) -> bool:
        """These devices, and to this pod."""
        uids = {each.uid for each in claim.status.reserved_for}
        return uids == {self.pod.metadata.uid} and allocated_devices(claim) == set(self.devices)

    def is_of_its_epoch(self, claim: ResourceClaim) -> bool:
        return claim.metadata.annotations.get(EPOCH) == self.epoch

    def document(self) -> dict[str, Any]:
        """To be created: what is allocated is said in its status."""
        meta = self.pod.metadata
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid}
        exactly = {"deviceClassName": DEVICE_CLASS, "allocationMode": "ExactCount", "count": 1}
        return {
            "metadata": {
                "name": self.name,
                "namespace": meta.namespace,
                "labels": {OURS: "true"},
                "annotations": {EXTENDED: "true", PLAN: self.plan, EPOCH: self.epoch},
                "finalizers": [FINALIZER],
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": {
                "devices": {
                    "requests": [
                        {"name": request_name(at), "exactly": exactly}
                        for at in range(len(self.devices))
                    ]
                }
            },
        }

    def status(self) -> dict[str, Any]:
        """What is allocated, on which node, and that it is for this pod alone."""
        meta = self.pod.metadata
        here = {"key": "metadata.name", "operator": "In", "values": [self.node]}
        results = [
            {
                "request": request_name(at),
                "driver": each.driver,
                "pool": each.pool,
                "device": each.device,
            }
            for at, each in enumerate(self.devices)
        ]
        return {
            "allocation": {
                "devices": {"results": results},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
            },
            "reservedFor": [{"resource": "pods", "name": meta.name, "uid": meta.uid}],
        }


def wanted_claim(
    pod: Pod,
    node: str,
    holdings: Sequence[DeviceHolding],
    origins: Mapping[str, Origin],
    fence: str,
) -> WantedClaim | None:
    """None: none of the devices comes by a claim. `fence`: the words of the pod's last one."""
    devices = sorted(
        {origin for each in holdings if isinstance(origin := origins.get(each.device), DraOrigin)},
        key=parts_of,
    )
    return WantedClaim(pod, node, tuple(devices), digest(fence)) if devices else None


def claim_name(pod: Pod) -> str:
    """By the pod's uid: whoever comes later finds it."""
    return f"{pod.metadata.name[:LONGEST_POD_NAME].rstrip('.-')}-{pod.metadata.uid}"


def pod_claim_status(
    wanted: WantedClaim, holdings: Sequence[DeviceHolding], origins: Mapping[str, Origin]
) -> ExtendedClaimStatus:
    """Which request is for which container, by the resource that the container asks for."""
    at = {device: request_name(number) for number, device in enumerate(wanted.devices)}
    mappings = {
        RequestMapping(
            container_name=container,
            resource_name=f"{CLASS_PREFIX}{each.class_name}",
            request_name=at[origin],
        ): None
        for container, used in uses(container_uses_of(wanted.pod), holdings).items()
        for each in used
        if isinstance(origin := origins.get(each.device), DraOrigin)
    }
    return ExtendedClaimStatus(resource_claim_name=wanted.name, request_mappings=tuple(mappings))


def request_name(at: int) -> str:
    return f"device-{at}"


def parts_of(device: DraOrigin) -> tuple[str, str, str]:
    return device.driver, device.pool, device.device


def digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:32]
