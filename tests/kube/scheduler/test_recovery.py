"""What a scheduler that died left behind is finished, given back or claimed again by the next."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from dovetail.core.claim import Claim
from dovetail.core.device import Device
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.kube.api.port import ApiConflict
from dovetail.kube.classes.pod_annotation import annotations_of
from dovetail.kube.scheduler.claims import PodClaims
from dovetail.kube.scheduler.plans import BindingPlan, binding_of, fence_of, held_by
from dovetail.ledger import Transaction, claims
from dovetail.ledger.devices import DEVICE_CLASS, places, provider_name
from dovetail.podfit.objects import Node, Pod
from tests.kube.scheduler.flaky import RandomApi, refused
from tests.kube.scheduler.world import (
    NAMESPACE,
    World,
    device,
    empty_state,
    pod_body,
    until,
    until_told,
)

G0 = (DeviceHolding("g0", 1, "gpu", "main"),)
G1 = (DeviceHolding("g1", 1, "gpu", "main"),)


async def fleet(world: World, nodes: Iterable[str] = ("n1",)) -> None:
    """Nodes with two devices each, published by an earlier leader."""
    await world.resource_class("gpu")
    for node in nodes:
        await world.node(node, device("g0"), device("g1"))
        found = [Device(node=node, name=name, kind="gpu") for name in ("g0", "g1")]
        await world.devices.publish(node, found)


async def bound_pod(world: World, name: str, node: str, holdings: tuple[DeviceHolding, ...]) -> Pod:
    await world.pod(name, gpu=1)
    notes = annotations_of(node, holdings)
    meta = {"name": name, "namespace": NAMESPACE, "annotations": notes}
    await world.api.create(Pod, {"metadata": meta, "target": {"name": node}}, sub="binding")
    return world.see(name)


async def test_a_claim_without_a_binding_is_adopted_with_its_devices(world: World) -> None:
    await fleet(world, ["n1", "n2"])
    pod = await world.pod("p", gpu=1)
    await world.devices.claim(pod.metadata.uid, NAMESPACE, "default", "n2", G1)
    async with world.scheduling():
        await until(lambda: world.is_bound("p"))
    assert world.see("p").spec.node_name == "n2"
    assert "scheduler.alpha.kubernetes.io/resClass_gpu_g1" in world.see("p").metadata.annotations
    assert await world.held() == {"p": {"g1": 1}}


async def test_adoption_comes_before_new_decisions(world: World) -> None:
    await fleet(world)
    await world.pod("first", gpu=2)
    late = await world.pod("late", gpu=1)
    await world.devices.claim(late.metadata.uid, NAMESPACE, "default", "n1", G0)
    async with world.scheduling():
        await until(lambda: world.is_bound("late"))
        await until(lambda: len(world.notes("first")) == 1)
    assert not world.is_bound("first")


async def test_a_claim_on_a_node_that_is_gone_is_given_back_behind_a_fence(world: World) -> None:
    await fleet(world, ["n1", "n2"])
    pod = await world.pod("p", gpu=1)
    await world.devices.claim(pod.metadata.uid, NAMESPACE, "default", "n1", G0)
    await world.api.delete(Node, "n1")
    async with world.scheduling():
        await until(lambda: world.is_bound("p"))
    after = world.see("p")
    assert after.spec.node_name == "n2"
    assert "node n1 is no more" in fence_of(after)
    assert await world.held() == {"p": {"g0": 1}}


async def test_a_claim_that_was_claimed_behind_our_back_is_adopted(world: World) -> None:
    await fleet(world)
    async with world.scheduling():
        gate = asyncio.Event()
        claim = world.devices.claim

        async def late(*about: object) -> None:
            if not gate.is_set():
                gate.set()
                await claim(about[0], NAMESPACE, "default", "n1", G1)  # type: ignore[arg-type]
            await claim(*about)  # type: ignore[arg-type]

        world.devices.claim = late  # type: ignore[method-assign, assignment]
        await world.pod("p", gpu=1)
        await until(lambda: world.is_bound("p"))
    assert await world.held() == {"p": {"g1": 1}}


async def test_a_claim_whose_binding_was_refused_is_adopted_when_it_is_no_longer(
    world: World,
) -> None:
    await fleet(world)
    tries = 0

    async def before(verb: str, kind: object, name: str) -> None:
        nonlocal tries
        if verb == "create binding":
            tries += 1
            if tries <= 2:
                await refused(403)()

    world.api.before = before
    await world.pod("p", gpu=1)
    async with world.scheduling():
        await until(lambda: world.is_bound("p"))
    assert tries == 3
    assert await world.held() == {"p": {"g0": 1}}


async def test_claims_of_pods_that_went_while_nobody_was_there_are_released(world: World) -> None:
    await fleet(world)
    gone = await bound_pod(world, "gone", "n1", G0)
    over = await bound_pod(world, "over", "n1", G1)
    for pod, held in ((gone, G0), (over, G1)):
        await world.devices.claim(pod.metadata.uid, NAMESPACE, "default", "n1", held)
    await world.api.delete(Pod, "gone", NAMESPACE, grace=0)
    ended = {"status": {"phase": "Failed"}}
    await world.api.merge(Pod, "over", ended, namespace=NAMESPACE, sub="status")
    async with world.scheduling():
        assert await world.held() == {}


async def test_claims_of_others_than_pods_are_never_swept(world: World) -> None:
    await fleet(world)
    foreign = "33333333-3333-3333-3333-333333333333"
    await take_as_placement_client(world, foreign, "n1", "g0")
    async with world.scheduling() as scheduler:
        await scheduler.reconciler.reconcile()
    assert await world.held() == {foreign: {"g0": 1}}


async def take_as_placement_client(world: World, consumer: str, node: str, name: str) -> None:
    def take(tx: Transaction) -> None:
        provider = provider_name(node, name)
        where = places(tx, [provider])[provider]
        claims.replace(
            tx,
            [
                Claim(
                    consumer=consumer,
                    project="p",
                    user="u",
                    consumer_type="INSTANCE",
                    allocations={where: {DEVICE_CLASS: 1}},
                )
            ],
        )

    await asyncio.wrap_future(world.ledger.write(take))


async def test_a_lost_ledger_is_rebuilt_from_annotations(world: World) -> None:
    await fleet(world)
    await bound_pod(world, "a", "n1", G0)
    await bound_pod(world, "b", "n1", G1)
    async with world.scheduling():
        await until_told(lambda: world.is_held({"a": {"g0": 1}, "b": {"g1": 1}}))


async def test_of_two_pods_with_one_device_the_older_binding_wins_and_the_other_is_told(
    world: World,
) -> None:
    def told(name: str) -> list[str]:
        conditions = world.see(name).status.conditions
        return [each.reason for each in conditions if "Devices" in each.type]

    await fleet(world)
    await bound_pod(world, "younger", "n1", G0)
    await bound_pod(world, "older", "n1", G0)
    for name, at in (("younger", "2026-01-02T00:00:00Z"), ("older", "2026-01-01T00:00:00Z")):
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
        status = {"status": {"conditions": [condition]}}
        await world.api.merge(Pod, name, status, namespace=NAMESPACE, sub="status")
    async with world.scheduling():
        await until(lambda: told("younger") == ["DeviceConflict"])
        assert told("older") == []
        assert await world.held() == {"older": {"g0": 1}}


async def test_an_annotation_that_the_pods_maker_wrote_is_not_believed(world: World) -> None:
    await fleet(world)
    body = pod_body("liar")
    body["metadata"]["annotations"] = annotations_of("n1", G0)
    body["spec"]["nodeName"] = "n1"
    await world.api.create(Pod, body, namespace=NAMESPACE)
    await world.pod("honest", gpu=2)
    async with world.scheduling() as scheduler:
        await scheduler.reconciler.reconcile()
        await until(lambda: world.is_bound("honest"))
    assert await world.held() == {"honest": {"g0": 1, "g1": 1}}


async def test_a_binding_of_a_dead_leader_that_arrives_late_does_nothing(world: World) -> None:
    """The fence gave the pod a new version before its claim was released."""

    await fleet(world, ["n1", "n2"])
    before = await world.pod("p", gpu=1)
    await PodClaims(world.api, world.devices, empty_state()).claim(before, "n1", G0)
    await world.api.delete(Node, "n1")
    async with world.scheduling():
        await until(lambda: world.is_bound("p"))
    late = binding_of(BindingPlan(before, "n1", G0), before.metadata.resource_version)
    with pytest.raises(ApiConflict):
        await world.api.create(Pod, late, sub="binding")
    assert world.see("p").spec.node_name == "n2"


@pytest.mark.parametrize("seed", range(4))
async def test_two_schedulers_race_on_an_api_that_fails_and_no_device_is_held_twice(
    world: World, database: str, seed: int
) -> None:
    await fleet(world, [f"n{number}" for number in range(5)])
    ours, theirs = World(database), World(database)
    try:
        schedulers = []
        for number, each in enumerate((ours, theirs)):
            each.api = RandomApi(world.api, 2 * seed + number, 0.1)  # type: ignore[assignment]
            schedulers.append(each.scheduling())
        async with schedulers[0], schedulers[1]:
            for number in range(10):
                await world.pod(f"p{number}", gpu=1)
                if number == 5:
                    await world.api.delete(Pod, "p2", NAMESPACE, grace=0)
            left = [f"p{number}" for number in range(10) if number != 2]
            await until(lambda: world.is_bound(*left))

            async def are_accounted() -> bool:
                return set(await world.held()) == set(left)

            await until_told(are_accounted)
    finally:
        ours.close()
        theirs.close()
    said = {}
    for name in left:
        pod = world.see(name)
        assert held_by(pod)
        said[name] = (pod.spec.node_name, held_by(pod))
    holders = await world.devices.holders()
    in_ledger = {
        name: (held.node, dict(held.devices))
        for name in left
        for held in [holders[world.see(name).metadata.uid]]
    }
    assert said == in_ledger
