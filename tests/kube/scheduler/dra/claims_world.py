"""A cluster in memory whose devices are DRA drivers', and the makings of slices and claims."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dovetail.core.device import DraOrigin
from dovetail.kube.classes.resource_claims import (
    KubeDeviceClass,
    ResourceClaim,
    allocated_devices,
    owner_uid,
)
from dovetail.kube.classes.slices import device_name
from dovetail.kube.classes.sources import devices_of
from dovetail.podfit.objects import Node, Pod, ResourceSlice
from tests.kube.scheduler.world import NAMESPACE, World, node_body

DRIVER = "gpu.example.com"
THEIRS = "default/theirs"


def name_of(node: str, device: str) -> str:
    """As the inventory and the ledger call it."""
    return device_name(DRIVER, node, device)


def origin(node: str, device: str) -> DraOrigin:
    return DraOrigin(DRIVER, node, device)


def slice_body(node: str, devices: Iterable[str], kind: str = "gpu") -> Any:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    written = [{"name": name, "attributes": {"kind": {"string": kind}}} for name in devices]
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": written}
    return {"metadata": {"name": f"slice-{node}"}, "spec": spec}


def claim_body(name: str) -> Any:
    request = {"name": "gpu", "exactly": {"deviceClassName": "any"}}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"devices": {"requests": [request]}},
    }


async def dra_fleet(world: World, nodes: Iterable[str] = ("n1",), devices: int = 2) -> None:
    """A class, and nodes that have so many devices of it, g0 and on."""
    await world.resource_class("gpu")
    for node in nodes:
        await world.api.create(Node, node_body(node))
        body = slice_body(node, (f"g{number}" for number in range(devices)))
        await world.api.create(ResourceSlice, body)


async def publish(world: World, nodes: Iterable[str] = ("n1",)) -> None:
    """Have the ledger know the devices of a fleet, as a leader would."""
    slices = list(world.api.everything(ResourceSlice).values())
    there = world.api.everything(Node)
    for node in nodes:
        mine = [each for each in slices if each.spec.node_name == node]
        await world.devices.publish(node, devices_of(there[node], mine))


async def theirs(world: World, node: str, device: str, name: str = "theirs") -> ResourceClaim:
    """kube-scheduler allocates a device."""
    await world.api.create(ResourceClaim, claim_body(name), namespace=NAMESPACE)
    result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": device}
    status = {"allocation": {"devices": {"results": [result]}}}
    return await world.api.merge(
        ResourceClaim, name, {"status": status}, namespace=NAMESPACE, sub="status"
    )


async def device_class(world: World, name: str, resource: str) -> None:
    body = {"metadata": {"name": name}, "spec": {"extendedResourceName": resource}}
    await world.api.create(KubeDeviceClass, body)


def claims(world: World) -> dict[str, ResourceClaim]:
    return world.api.everything(ResourceClaim)


def claim_of(world: World, pod: str) -> ResourceClaim | None:
    """The ResourceClaim that a pod owns."""
    uid = world.see(pod).metadata.uid
    return next((each for each in claims(world).values() if owner_uid(each) == uid), None)


def given(world: World, pod: str) -> set[tuple[str, str]]:
    """Container and device, as the kubelet brings them in; only if everything is in order."""
    seen = world.see(pod)
    told, claim = seen.status.extended_resource_claim_status, claim_of(world, pod)
    if told is None or claim is None or not seen.spec.node_name:
        return set()
    raw = world.api.raw(ResourceClaim, told.resource_claim_name, NAMESPACE)
    assert [each["uid"] for each in raw["status"]["reservedFor"]] == [seen.metadata.uid]
    results = raw["status"]["allocation"]["devices"]["results"]
    devices = {each["request"]: each["device"] for each in results}
    assert {each["pool"] for each in results} == {seen.spec.node_name}
    return {(each.container_name, devices[each.request_name]) for each in told.request_mappings}


def all_given(world: World) -> list[DraOrigin]:
    """Every device that a claim has, once for each claim."""
    return [each for claim in claims(world).values() for each in allocated_devices(claim)]


def bound(world: World) -> list[Pod]:
    return [each for each in world.api.everything(Pod).values() if each.spec.node_name]
