"""The scheduler and devices of DRA drivers, in memory: beside claims of others, after crashes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from msgspec.structs import replace

from dovetail.devices.allocation.request import DeviceHolding
from dovetail.kube.api.port import ApiError
from dovetail.kube.classes.resource_claims import ResourceClaim, wanted_claim
from dovetail.kube.runtime.leader import Election, LeaseTiming
from dovetail.kube.scheduler.plans import fence_of
from dovetail.podfit.objects import Pod, ResourceSlice
from tests.kube.scheduler.dra.claims_world import (
    DRIVER,
    all_given,
    bound,
    claim_of,
    claims,
    device_class,
    dra_fleet,
    given,
    name_of,
    origin,
    publish,
    slice_body,
    theirs,
)
from tests.kube.scheduler.flaky import RandomApi
from tests.kube.scheduler.world import NAMESPACE, QUICK, World, pod_body, until, until_told
from tests.support.kube.memory import MemoryApi


async def test_devices_of_drivers_come_by_a_claim(world: World) -> None:
    await dra_fleet(world)
    async with world.scheduling():
        await world.pod("p", gpu=2)
        await until(lambda: world.is_bound("p"))
    assert given(world, "p") == {("main", "g0"), ("main", "g1")}
    await until(lambda: any("by ResourceClaim p-" in note for note in world.notes("p")))
    assert world.api.calls["list", "ResourceClaim"] == 1, "the informer's; the look needs none"


async def test_devices_that_claims_of_others_hold_are_left_to_them(world: World) -> None:
    await dra_fleet(world)
    await theirs(world, "n1", "g0")
    async with world.scheduling():
        await world.pod("one", gpu=1)
        await until(lambda: world.is_bound("one"))
        assert given(world, "one") == {("main", "g1")}
        await world.pod("two", gpu=1)
        await until(lambda: any("default/theirs" in note for note in world.notes("two")))
        await world.api.delete(ResourceClaim, "theirs", NAMESPACE)
        await until(lambda: world.is_bound("two"))
    assert given(world, "two") == {("main", "g0")}


async def test_a_claim_that_is_only_deallocated_helps_as_well(world: World) -> None:
    await dra_fleet(world, devices=1)
    await theirs(world, "n1", "g0")
    async with world.scheduling():
        await world.pod("p", gpu=1)
        await until(lambda: bool(world.notes("p")))
        free = {"status": {"allocation": None}}
        await world.api.merge(ResourceClaim, "theirs", free, namespace=NAMESPACE, sub="status")
        await until(lambda: world.is_bound("p"))


async def test_claims_count_whichever_comes_first_they_or_the_slice(world: World) -> None:
    await world.resource_class("gpu")
    await theirs(world, "n1", "g0")
    await world.node("n1")
    async with world.scheduling() as scheduler:
        await world.api.create(ResourceSlice, slice_body("n1", ["g0"]))
        await until(lambda: scheduler.state.catalogue.report("gpu")[0].requested == 1)
        await world.api.delete(ResourceSlice, "slice-n1")
        await until(lambda: scheduler.state.catalogue.report("gpu")[0].requested == 0)
        await world.api.create(ResourceSlice, slice_body("n1", ["g0", "g1"]))
        await world.pod("p", gpu=1)
        await until(lambda: world.is_bound("p"))
    assert given(world, "p") == {("main", "g1")}


@pytest.mark.parametrize(
    "resource", ["example.com/accelerator", "deviceclass.resource.kubernetes.io/big"]
)
async def test_a_pod_that_asks_for_a_device_class_too_is_told_that_it_cannot(
    world: World, resource: str
) -> None:
    await dra_fleet(world)
    await device_class(world, "big", "example.com/accelerator")
    async with world.scheduling():
        await world.pod("p", gpu=1, direct={resource: 1})
        await until(lambda: any("DeviceClass 'big'" in note for note in world.notes("p")))
    assert not world.is_bound("p")
    assert claims(world) == {}


async def test_more_devices_than_a_claim_can_have_are_refused(world: World) -> None:
    await dra_fleet(world, devices=33)
    async with world.scheduling():
        await world.pod("p", gpu=33)
        await until(lambda: any("which can have 32" in note for note in world.notes("p")))
        await world.pod("q", gpu=32)
        await until(lambda: world.is_bound("q"))
    assert len(given(world, "q")) == 32


async def test_what_the_server_refuses_is_told_the_pod_and_tried_again(world: World) -> None:
    await dra_fleet(world)
    refusals = 2

    async def before(verb: str, kind: Any, name: str) -> None:
        nonlocal refusals
        if (verb, kind) == ("create", ResourceClaim) and refusals:
            refusals -= 1
            raise ApiError(403, "Forbidden", "exceeded quota")

    world.api.before = before
    async with world.scheduling():
        await world.pod("p", gpu=1)
        await until(lambda: any("exceeded quota" in note for note in world.notes("p")))
        await until(lambda: world.is_bound("p"))
    assert given(world, "p") == {("main", "g0")}


async def test_a_claim_of_others_that_comes_after_the_binding_is_told_and_counted(
    world: World,
) -> None:
    await dra_fleet(world)
    async with world.scheduling():
        await world.pod("p", gpu=1)
        await until(lambda: world.is_bound("p"))
        await theirs(world, "n1", "g0")

        def reasons() -> list[str]:
            return [each.reason for each in world.see("p").status.conditions]

        await until(lambda: "DeviceConflict" in reasons())
        assert any("ResourceClaim default/theirs" in note for note in world.notes("p"))
        await world.api.delete(ResourceClaim, "theirs", NAMESPACE)
        await until(lambda: "DeviceConflict" not in reasons())


async def left_by(world: World, pod: Pod, device: str) -> None:
    """A scheduler wrote the pod's claim and died."""
    held = [DeviceHolding(name_of("n1", device), 1, "gpu", "main")]
    origins = {held[0].device: origin("n1", device)}
    wanted = wanted_claim(pod, "n1", held, origins, fence_of(pod))
    assert wanted is not None
    await world.api.create(ResourceClaim, wanted.document())
    body = {"status": wanted.status()}
    await world.api.merge(ResourceClaim, wanted.name, body, namespace=NAMESPACE, sub="status")


async def test_claims_whose_pods_are_gone_are_removed(world: World) -> None:
    await dra_fleet(world, devices=1)
    pod = await world.pod("gone", gpu=1)
    await left_by(world, pod, "g0")
    await world.api.delete(Pod, "gone", NAMESPACE)
    async with world.scheduling():
        await until(lambda: claims(world) == {})
        await world.pod("p", gpu=1)
        await until(lambda: world.is_bound("p"))


async def test_a_claim_that_nobody_will_bind_with_is_removed_behind_a_fence(world: World) -> None:
    """Its pod waits for something else: the ledger has nothing for it."""
    await dra_fleet(world, devices=1)
    pod = await world.pod("waits", gpu=2)
    await left_by(world, pod, "g0")
    async with world.scheduling():
        await until(lambda: claims(world) == {})
        assert fence_of(world.see("waits"))
        await world.pod("p", gpu=1)
        await until(lambda: world.is_bound("p"))


async def test_a_claim_that_its_pod_was_bound_without_is_removed(world: World) -> None:
    await dra_fleet(world, devices=1)
    pod = await world.pod("elsewhere", gpu=1)
    await left_by(world, pod, "g0")
    meta = {"name": "elsewhere", "namespace": NAMESPACE}
    await world.api.create(Pod, {"metadata": meta, "target": {"name": "n1"}}, sub="binding")
    async with world.scheduling():
        await until(lambda: claims(world) == {})


async def test_a_claim_in_use_is_never_swept(world: World) -> None:
    await dra_fleet(world)
    async with world.scheduling():
        await world.pod("p", gpu=1)
        await until(lambda: world.is_bound("p"))
    before = claim_of(world, "p")
    async with world.scheduling() as scheduler:
        await scheduler.reconciler.reconcile()
    assert claim_of(world, "p") == before
    assert given(world, "p") == {("main", "g0")}


# Crashes.


class Mortal:
    """The API of a scheduler that dies at one of its writes: before it is done, or after."""

    def __init__(self, api: MemoryApi, at: int, *, done: bool) -> None:
        self._api = api
        self._left = at
        self._done = done
        self.dead = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        if name in ("create", "merge", "apply", "replace", "delete"):
            return lambda *given, **about: self._write(name, *given, **about)
        return getattr(self._api, name)

    async def _write(self, verb: str, kind: Any, *given: Any, **about: Any) -> Any:
        if self.dead.is_set():
            await asyncio.Event().wait()
        counts = kind in (Pod, ResourceClaim)
        self._left -= counts
        dies = counts and self._left < 0
        if dies and not self._done:
            await self._die()
        found = await getattr(self._api, verb)(kind, *given, **about)
        if dies:
            await self._die()
        return found

    async def _die(self) -> None:
        self.dead.set()
        await asyncio.Event().wait()


@asynccontextmanager
async def dying(world: World, at: int, *, done: bool) -> AsyncIterator[Mortal]:
    """A scheduler that runs until it dies, and is cut off then without any farewell."""
    api = world.api
    mortal = Mortal(api, at, done=done)
    world.api = mortal  # type: ignore[assignment]
    replica = world.replica(timings=replace(QUICK, drain=0.0))
    world.api = api
    task = asyncio.create_task(replica.run(asyncio.Event()))
    try:
        yield mortal
    finally:
        mortal.dead.set()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def dead_or(mortal: Mortal, *names: str, world: World) -> None:
    await until(lambda: mortal.dead.is_set() or world.is_bound(*names))


def in_order(world: World) -> None:
    """Nothing is allocated twice, every bound pod has its device, and nothing is left over."""
    devices = all_given(world)
    assert len(devices) == len(set(devices))
    owners = [each.metadata.owner_references[0].uid for each in claims(world).values()]
    assert sorted(owners) == sorted(pod.metadata.uid for pod in bound(world))
    for pod in bound(world):
        assert len(given(world, pod.metadata.name)) == 1


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(9))
async def test_a_crash_at_any_write_leaves_nothing_twice_and_nothing_over(
    world: World, at: int, done: bool
) -> None:
    await dra_fleet(world)
    names = ("one", "two")
    for name in names:
        await world.pod(name, gpu=1)
    async with dying(world, at, done=done) as mortal:
        await dead_or(mortal, *names, world=world)
    async with world.scheduling():
        await until(lambda: world.is_bound(*names))
    in_order(world)
    assert {name: len(held) for name, held in (await world.held()).items()} == dict.fromkeys(
        names, 1
    )


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(6))
async def test_a_crash_at_any_write_of_a_withdrawal(world: World, at: int, done: bool) -> None:
    """kube-scheduler allocates while the first claim is written; its pod goes later."""
    await dra_fleet(world, devices=1)
    await world.pod("p", gpu=1)
    api_before = world.api.before

    async def rival(verb: str, kind: Any, name: str) -> None:
        if (verb, kind) == ("merge status", ResourceClaim) and name != "theirs":
            world.api.before = api_before
            await theirs(world, "n1", "g0")

    world.api.before = rival
    async with dying(world, at, done=done) as mortal:
        await until(lambda: mortal.dead.is_set() or bool(world.notes("p")))
    async with world.scheduling():
        await until(lambda: "default/theirs" in claims(world))
        await until(lambda: list(claims(world)) == ["default/theirs"])
        await until_told(lambda: world.is_held({}))
        assert not world.is_bound("p")
        await world.api.delete(ResourceClaim, "theirs", NAMESPACE)
        await until(lambda: world.is_bound("p"))
    in_order(world)


@pytest.mark.parametrize("at", range(5))
async def test_a_pod_deleted_after_a_crash_leaves_nothing(world: World, at: int) -> None:
    await dra_fleet(world, devices=1)
    await world.pod("p", gpu=1)
    async with dying(world, at, done=False) as mortal:
        await dead_or(mortal, "p", world=world)
    await world.api.delete(Pod, "p", NAMESPACE, grace=0)
    async with world.scheduling():
        await until(lambda: claims(world) == {})
        await until_told(lambda: world.is_held({}))


@pytest.mark.parametrize("seed", range(4))
async def test_two_schedulers_race_on_an_api_that_fails_and_no_device_is_given_twice(
    world: World, database: str, seed: int
) -> None:
    nodes = [f"n{number}" for number in range(5)]
    await dra_fleet(world, nodes)
    await publish(world, nodes)
    ours, others = World(database), World(database)
    try:
        schedulers = []
        for number, each in enumerate((ours, others)):
            each.api = RandomApi(world.api, 2 * seed + number, 0.1)  # type: ignore[assignment]
            schedulers.append(each.scheduling())
        async with schedulers[0], schedulers[1]:
            for number in range(10):
                await world.pod(f"p{number}", gpu=1)
            await until(lambda: world.is_bound(*(f"p{number}" for number in range(10))))
    finally:
        ours.close()
        others.close()
    in_order(world)


async def test_pods_of_several_containers_get_what_each_uses(world: World) -> None:
    await dra_fleet(world, devices=3)
    body = pod_body("p", gpu=1)
    first = body["spec"]["containers"][0]
    body["spec"]["containers"] = [first, {**first, "name": "other"}]
    body["spec"]["initContainers"] = [
        {**first, "name": "side", "restartPolicy": "Always"},
        {**first, "name": "early"},
    ]
    await world.api.create(Pod, body, namespace=NAMESPACE)
    async with world.scheduling():
        await until(lambda: world.is_bound("p"))
    found = dict(sorted(given(world, "p")))
    assert {found["main"], found["other"], found["side"]} == {"g0", "g1", "g2"}
    assert found["early"] in (found["main"], found["other"])
    assert DRIVER in name_of("n1", "g0")


async def test_an_election_is_no_excuse(world: World) -> None:
    """The second replica takes over where the first one died."""
    await dra_fleet(world, devices=1)
    timing = LeaseTiming.in_proportion(0.5)
    await world.pod("p", gpu=1)
    async with dying(world, 2, done=True) as mortal:
        await until(mortal.dead.is_set)
    election = Election(world.api, "default", "lease", "second", timing=timing)
    async with world.scheduling(world.replica(election=election)):
        await until(lambda: world.is_bound("p"))
    in_order(world)
