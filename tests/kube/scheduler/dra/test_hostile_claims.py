"""Claims that others made to look like ours, and servers that do not take ours."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.devices.allocation.request import DeviceHolding
from dovetail.kube.api.port import ApiError
from dovetail.kube.classes.resource_claims import ResourceClaim, WantedClaim, is_ours, wanted_claim
from dovetail.kube.extender.extender import Extender
from dovetail.kube.extender.wire import Args
from dovetail.kube.scheduler.binding import BindingOutcome
from dovetail.kube.scheduler.dra.claim_writer import ClaimRefused
from dovetail.kube.scheduler.plans import fence_of
from dovetail.podfit.objects import Pod
from tests.kube.scheduler.dra.claims_world import (
    DRIVER,
    claim_body,
    claims,
    device_class,
    dra_fleet,
    given,
    name_of,
    origin,
    publish,
)
from tests.kube.scheduler.dra.test_claim_writer import staged
from tests.kube.scheduler.world import NAMESPACE, World, until


def wanted_of(pod: Pod, device: str) -> WantedClaim:
    held = [DeviceHolding(name_of("n1", device), 1, "gpu", "main")]
    origins = {held[0].device: origin("n1", device)}
    found = wanted_claim(pod, "n1", held, origins, fence_of(pod))
    assert found is not None
    return found


async def posed(world: World, pod: Pod, name: str, device: str, reserved_for: str) -> ResourceClaim:
    """A user makes a claim that says it is the pod's, and kube-scheduler allocates it to another
    pod of the user's."""
    document = wanted_of(pod, "g0").document()
    document["metadata"]["name"] = name
    await world.api.create(ResourceClaim, document)
    result = {"request": "device-0", "driver": DRIVER, "pool": "n1", "device": device}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": "user", "uid": reserved_for}],
    }
    return await world.api.merge(
        ResourceClaim, name, {"status": status}, namespace=NAMESPACE, sub="status"
    )


async def test_a_claim_with_our_label_that_another_pod_uses_is_never_swept(world: World) -> None:
    await dra_fleet(world, devices=1)
    async with world.scheduling():
        owner = await world.pod("owner")
        await until(lambda: world.is_bound("owner"))
    user = await world.pod("user")
    for name in ("any", wanted_of(owner, "g0").name):
        there = await posed(world, owner, name, "g0", user.metadata.uid)
        assert not is_ours(there)
    async with world.scheduling() as scheduler:
        await scheduler.reconciler.reconcile()
        assert len(claims(world)) == 2


async def test_who_poses_as_our_claim_is_a_rival_all_the_same(world: World) -> None:
    stage = await staged(world)
    user = await world.pod("user")

    async def by_kube_scheduler() -> None:
        await posed(world, stage.pod, "any", "g0", user.metadata.uid)

    stage.faults["create ResourceClaim"] = [by_kube_scheduler]
    assert await stage.bind() is BindingOutcome.TAKEN
    assert list(claims(world)) == [f"{NAMESPACE}/any"]


@pytest.mark.parametrize("device", ["g0", "g1"])
async def test_a_claim_with_our_name_that_is_allocated_otherwise_is_refused(
    world: World, device: str
) -> None:
    stage = await staged(world)
    user = await world.pod("user")
    await posed(world, stage.pod, wanted_of(stage.pod, "g0").name, device, user.metadata.uid)
    with pytest.raises(ClaimRefused):
        await stage.bind()
    assert not stage.pod.spec.node_name
    assert len(claims(world)) == 1


async def test_who_may_have_no_claim_keeps_no_device_from_others(world: World) -> None:
    """As a quota on claims would do it, for a namespace full of pods."""
    await dra_fleet(world, devices=1)

    async def before(verb: str, kind: Any, name: str) -> None:
        if (verb, kind) == ("create", ResourceClaim) and name.startswith("refused"):
            raise ApiError(403, "Forbidden", "exceeded quota")

    world.api.before = before
    async with world.scheduling():
        await world.pod("refused", gpu=1)
        await until(lambda: any("exceeded quota" in note for note in world.notes("refused")))
        await world.pod("p", gpu=1)
        await until(lambda: world.is_bound("p"))
    assert given(world, "p") == {("main", "g0")}


@pytest.mark.parametrize("is_there", [True, False])
async def test_a_claim_that_kube_scheduler_gave_the_pod_is_not_written_over(
    world: World, is_there: bool
) -> None:
    """The containers that it is for would start without their devices and without a word."""
    stage = await staged(world)
    if is_there:
        await world.api.create(ResourceClaim, claim_body("its-own"))
    told = {"resourceClaimName": "its-own", "requestMappings": []}
    status = {"status": {"extendedResourceClaimStatus": told}}
    await world.api.merge(Pod, "p", status, namespace=NAMESPACE, sub="status")
    if is_there:
        with pytest.raises(ClaimRefused, match="its-own"):
            await stage.bind()
        assert list(claims(world)) == [f"{NAMESPACE}/its-own"]
        assert await world.held() == {}
    else:
        assert await stage.bind() is BindingOutcome.BOUND


async def test_a_class_that_kube_scheduler_serves_itself_is_not_served_twice(
    world: World,
) -> None:
    await dra_fleet(world, ["d1"])
    await device_class(world, "big", "resourceclass.dovetail.dev/gpu")
    replica = world.replica()
    async with world.scheduling(replica):
        extender = Extender(replica.extender_parts())
        pod = await world.pod("p", scheduler="default-scheduler", gpu=1)
        refused = extender.filter(Args(pod=pod, node_names=["d1"]))
        assert refused.node_names == []
        assert "DeviceClass 'big'" in refused.failed_and_unresolvable_nodes["d1"]
        await world.pod("own", gpu=1)
        await until(lambda: world.is_bound("own"))
    assert given(world, "own") == {("main", "g0")}


async def test_a_pod_that_became_impossible_keeps_no_device(world: World) -> None:
    """It was claimed for before the DeviceClass was seen."""
    await dra_fleet(world, devices=1)
    await publish(world)
    pod = await world.pod("both", gpu=1, direct={"example.com/accelerator": 1})
    held = [DeviceHolding(name_of("n1", "g0"), 1, "gpu", "main")]
    await world.devices.claim(pod.metadata.uid, NAMESPACE, "default", "n1", held)
    await device_class(world, "big", "example.com/accelerator")
    async with world.scheduling():
        await until(lambda: any("DeviceClass 'big'" in note for note in world.notes("both")))
        await world.pod("p", gpu=1)
        await until(lambda: world.is_bound("p"))
    assert given(world, "p") == {("main", "g0")}
