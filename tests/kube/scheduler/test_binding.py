"""The protocol of claim and binding, line by line: what is done when things go otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dovetail.aio.backoff import Backoff
from dovetail.core.device import Device
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.kube.classes.pod_annotation import annotations_of
from dovetail.kube.scheduler.binding import Binder, BindingOutcome
from dovetail.kube.scheduler.claims import PodClaims
from dovetail.kube.scheduler.plans import FENCE, BindingPlan, fence_of
from dovetail.ledger import LedgerBusy
from dovetail.podfit.objects import Pod
from tests.kube.scheduler.flaky import FlakyApi, cut, refused
from tests.kube.scheduler.world import NAMESPACE, World, empty_state, pod_body

G0 = (DeviceHolding("g0", 1, "gpu", "main"),)
G1 = (DeviceHolding("g1", 1, "gpu", "main"),)
OTHER = "22222222-2222-2222-2222-222222222222"


class Stage:
    """A pod that is to be bound, nodes with two devices, and a binder that is in a hurry."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.api = FlakyApi(world.api)
        self.claims = PodClaims(self.api, world.devices, empty_state())  # type: ignore[arg-type]
        self.binder = Binder(self.api, self.claims, lambda: Backoff(0.001, 0.001))  # type: ignore[arg-type]

    async def set(self) -> None:
        for node in ("n1", "n2"):
            devices = [Device(node=node, name=name, kind="gpu") for name in ("g0", "g1")]
            await self.world.devices.publish(node, devices)
        await self.world.pod("p", gpu=1)

    @property
    def pod(self) -> Pod:
        return self.world.see("p")

    async def bind(self, **about: Any) -> BindingOutcome:
        plan = BindingPlan(self.pod, "n1", G0)
        for verb, fault in about.items():
            place, _, name = verb.partition("_")
            getattr(self.api, place)[name.replace("_", " ")] = [self._fault(fault)]
        return await self.binder.carry_out(plan)

    def _fault(self, fault: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
        return fault

    async def change(self, body: dict[str, Any], sub: str = "") -> None:
        await self.world.api.merge(Pod, "p", body, namespace=NAMESPACE, sub=sub)

    async def bind_elsewhere(self, node: str, holdings: tuple[DeviceHolding, ...] = ()) -> None:
        notes = annotations_of(node, holdings) if holdings else {}
        body = {
            "metadata": {"name": "p", "namespace": NAMESPACE, "annotations": notes},
            "target": {"name": node},
        }
        await self.world.api.create(Pod, body, sub="binding")

    @property
    def bindings(self) -> int:
        return self.api.sent.count("create binding")


@asynccontextmanager
async def staged(world: World) -> AsyncIterator[Stage]:
    stage = Stage(world)
    await stage.set()
    yield stage


async def test_a_plan_is_claimed_then_bound(world: World) -> None:
    async with staged(world) as stage:

        async def is_claimed() -> None:
            assert await world.held() == {"p": {"g0": 1}}

        assert await stage.bind(before_create_binding=is_claimed) is BindingOutcome.BOUND
        assert stage.pod.spec.node_name == "n1"
        assert await world.held() == {"p": {"g0": 1}}


async def test_taken_nothing_is_claimed_and_nothing_bound(world: World) -> None:
    async with staged(world) as stage:
        await world.devices.claim(OTHER, "x", "y", "n1", G0)
        assert await stage.bind() is BindingOutcome.TAKEN
        assert stage.bindings == 0
        assert await world.held() == {OTHER: {"g0": 1}}


async def test_claimed_already_what_is_claimed_stays_and_nothing_is_bound(world: World) -> None:
    async with staged(world) as stage:
        await stage.claims.claim(stage.pod, "n1", G1)
        assert await stage.bind() is BindingOutcome.CLAIMED
        assert stage.bindings == 0
        assert await world.held() == {"p": {"g1": 1}}


async def test_no_answer_to_the_claim_nothing_is_bound(world: World) -> None:
    async with staged(world) as stage:
        claim = world.devices.claim

        async def unanswered(*about: Any) -> None:
            await claim(*about)
            raise LedgerBusy("the connection broke in the commit")

        world.devices.claim = unanswered  # type: ignore[assignment,method-assign]
        assert await stage.bind() is BindingOutcome.FAILED
        assert stage.bindings == 0
        assert await world.held() == {"p": {"g0": 1}}


async def test_conflict_bound_as_planned_is_bound(world: World) -> None:
    async with staged(world) as stage:

        async def by_another() -> None:
            await stage.bind_elsewhere("n1", G0)

        assert await stage.bind(before_create_binding=by_another) is BindingOutcome.BOUND
        assert await world.held() == {"p": {"g0": 1}}


async def test_conflict_bound_elsewhere_without_devices_the_claim_is_released(world: World) -> None:
    async with staged(world) as stage:

        async def by_another() -> None:
            await stage.bind_elsewhere("n2")

        assert await stage.bind(before_create_binding=by_another) is BindingOutcome.OTHERWISE
        assert await world.held() == {}


async def test_conflict_bound_elsewhere_with_devices_the_ledger_says_what_the_pod_says(
    world: World,
) -> None:
    async with staged(world) as stage:

        async def by_another() -> None:
            await stage.bind_elsewhere("n2", G1)

        assert await stage.bind(before_create_binding=by_another) is BindingOutcome.OTHERWISE
        held = (await world.devices.holders())[stage.pod.metadata.uid]
        assert (held.node, held.devices) == ("n2", {"g1": 1})


async def test_conflict_bound_elsewhere_with_devices_of_another_nothing_is_held(
    world: World,
) -> None:
    async with staged(world) as stage:
        await world.devices.claim(OTHER, "x", "y", "n2", G1)

        async def by_another() -> None:
            await stage.bind_elsewhere("n2", G1)

        assert await stage.bind(before_create_binding=by_another) is BindingOutcome.OTHERWISE
        assert await world.held() == {OTHER: {"g1": 1}}


async def test_conflict_another_claimed_and_bound_after_a_fence_its_claim_is_left_alone(
    world: World,
) -> None:
    async with staged(world) as stage:

        async def by_another() -> None:
            assert await stage.claims.release_fenced(stage.pod, "test")
            await stage.claims.claim(stage.pod, "n1", G1)
            await stage.bind_elsewhere("n1", G1)

        assert await stage.bind(before_create_binding=by_another) is BindingOutcome.OTHERWISE
        assert await world.held() == {"p": {"g1": 1}}


async def test_gone_the_claim_is_released(world: World) -> None:
    async with staged(world) as stage:

        async def deleted() -> None:
            await world.api.delete(Pod, "p", NAMESPACE)

        assert await stage.bind(before_create_binding=deleted) is BindingOutcome.GONE
        assert await world.held() == {}


async def test_another_pod_of_that_name_is_not_bound_in_its_stead(world: World) -> None:
    async with staged(world) as stage:

        async def made_anew() -> None:
            await world.api.delete(Pod, "p", NAMESPACE)
            await world.pod("p", gpu=1)

        assert await stage.bind(before_create_binding=made_anew) is BindingOutcome.GONE
        assert stage.pod.spec.node_name == ""
        assert await world.held() == {}


async def test_being_deleted_the_claim_is_released(world: World) -> None:
    async with staged(world) as stage:
        await stage.change({"metadata": {"finalizers": ["test/wait"]}})

        async def leaving() -> None:
            await world.api.delete(Pod, "p", NAMESPACE)

        assert await stage.bind(before_create_binding=leaving) is BindingOutcome.GONE
        assert stage.pod.metadata.deletion_timestamp is not None
        assert await world.held() == {}


async def test_only_changed_is_bound_in_its_new_version(world: World) -> None:
    async with staged(world) as stage:

        async def labelled() -> None:
            await stage.change({"metadata": {"labels": {"new": "label"}}})

        assert await stage.bind(before_create_binding=labelled) is BindingOutcome.BOUND
        assert stage.bindings == 2
        assert stage.pod.metadata.labels == {"new": "label"}
        assert await world.held() == {"p": {"g0": 1}}


async def test_fenced_is_not_bound(world: World) -> None:
    async with staged(world) as stage:

        async def given_back() -> None:
            assert await stage.claims.release_fenced(stage.pod, "test")

        assert await stage.bind(before_create_binding=given_back) is BindingOutcome.VOID
        assert stage.pod.spec.node_name == ""
        assert await world.held() == {}


async def test_cut_before_the_binding_was_done_it_is_sent_again(world: World) -> None:
    async with staged(world) as stage:
        assert await stage.bind(before_create_binding=cut()) is BindingOutcome.BOUND
        assert stage.bindings == 2


async def test_cut_after_the_binding_was_done_it_is_not_sent_again(world: World) -> None:
    async with staged(world) as stage:
        assert await stage.bind(after_create_binding=cut()) is BindingOutcome.BOUND
        assert stage.bindings == 1
        assert await world.held() == {"p": {"g0": 1}}


async def test_the_pod_is_read_until_it_is_known(world: World) -> None:
    async with staged(world) as stage:
        stage.api.before["get"] = [cut(), refused(500), cut()]
        stage.api.after["create binding"] = [cut()]
        assert await stage.bind() is BindingOutcome.BOUND
        assert stage.bindings == 1


async def test_refused_the_claim_stays_for_the_next_turn(world: World) -> None:
    async with staged(world) as stage:
        assert await stage.bind(before_create_binding=refused(403)) is BindingOutcome.FAILED
        assert stage.bindings == 1
        assert await world.held() == {"p": {"g0": 1}}


@pytest.mark.parametrize("devices", [G0, G1])
async def test_who_is_held_up_between_fence_and_release_takes_no_newer_claim_away(
    world: World, devices: tuple[DeviceHolding, ...]
) -> None:
    """Be it on the same devices."""

    async with staged(world) as stage:
        before = stage.pod
        await stage.claims.claim(before, "n1", G0)
        release = world.devices.release_claim

        async def held_up(*about: Any) -> bool:
            """Meanwhile another leader gives the claim back, too, decides anew, and binds."""
            world.devices.release_claim = release  # type: ignore[method-assign]
            assert await stage.claims.release_fenced(stage.pod, "by another")
            await stage.claims.claim(stage.pod, "n1", devices)
            await stage.bind_elsewhere("n1", devices)
            return await release(*about)

        world.devices.release_claim = held_up  # type: ignore[assignment,method-assign]
        assert not await stage.claims.release_fenced(before, "by us")
        assert await world.held() == {"p": {devices[0].device: 1}}


async def test_a_fence_that_comes_after_a_binding_releases_nothing(world: World) -> None:
    async with staged(world) as stage:
        before = stage.pod
        assert await stage.bind() is BindingOutcome.BOUND
        assert not await stage.claims.release_fenced(before, "late")
        assert await world.held() == {"p": {"g0": 1}}


async def test_every_fence_is_another_write(world: World) -> None:
    async with staged(world) as stage:
        versions = {stage.pod.metadata.resource_version}
        words = set()
        for _ in range(3):
            await stage.claims.release_fenced(stage.pod, "same words")
            versions.add(stage.pod.metadata.resource_version)
            words.add(fence_of(stage.pod))
        assert len(versions) == 4
        assert len(words) == 3
        assert [each.type for each in stage.pod.status.conditions] == [FENCE]


async def test_a_fence_that_was_not_answered_releases_nothing(world: World) -> None:
    async with staged(world) as stage:
        await stage.claims.claim(stage.pod, "n1", G0)
        stage.api.before["apply status"] = [cut()]
        assert not await stage.claims.release_fenced(stage.pod, "test")
        assert await world.held() == {"p": {"g0": 1}}


async def test_pods_without_devices_need_no_claim(world: World) -> None:
    async with staged(world) as stage:
        await world.api.create(Pod, pod_body("plain"), namespace=NAMESPACE)
        plan = BindingPlan(world.see("plain"), "n1")
        assert await stage.binder.carry_out(plan) is BindingOutcome.BOUND
        assert await world.held() == {}
