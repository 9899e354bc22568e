"""Claims of pods written, found, replaced, withdrawn: what is done when things go otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dovetail.aio.backoff import Backoff
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.kube.api.port import ApiError, ApiNotFound, ApiUnreachable
from dovetail.kube.classes.resource_claims import ResourceClaim, claim_name
from dovetail.kube.scheduler.binding import Binder, BindingOutcome
from dovetail.kube.scheduler.claims import PodClaims
from dovetail.kube.scheduler.dra import claim_writer
from dovetail.kube.scheduler.dra.claim_writer import ClaimRefused, ClaimWriter
from dovetail.kube.scheduler.plans import BindingPlan
from dovetail.podfit.objects import Pod
from tests.kube.scheduler.dra.claims_world import (
    claim_body,
    claim_of,
    claims,
    dra_fleet,
    given,
    name_of,
    origin,
    publish,
    theirs,
)
from tests.kube.scheduler.world import NAMESPACE, World, empty_state, pod_body

Fault = Callable[[], Awaitable[None]]


class Died(Exception):
    """Whoever carried out the plan."""


async def dies() -> None:
    raise Died


class ClaimStage:
    """A pod that is to get devices of a driver, and a binder that is in a hurry."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.state = empty_state()
        self.claims = PodClaims(world.api, world.devices, self.state)
        self.binder = Binder(world.api, self.claims, lambda: Backoff(0.001, 0.001))
        self.calls: list[str] = []
        self.faults: dict[str, list[Fault]] = {}
        world.api.before = self._before

    async def _before(self, verb: str, kind: Any, name: str) -> None:
        self.calls.append(f"{verb} {kind.API.kind}")
        if self.faults.get(self.calls[-1]):
            await self.faults[self.calls[-1]].pop(0)()

    @property
    def pod(self) -> Pod:
        return self.world.see("p")

    @property
    def writes(self) -> list[str]:
        return [each for each in self.calls if not each.startswith(("get", "list"))]

    def plan(self, *devices: str, node: str = "n1", is_claimed: bool = False) -> BindingPlan:
        held = tuple(DeviceHolding(name_of(node, each), 1, "gpu", "main") for each in devices)
        origins = {name_of(node, each): origin(node, each) for each in devices}
        return BindingPlan(self.pod, node, held, is_claimed=is_claimed, origins=origins)

    async def bind(self, *devices: str, **about: Any) -> BindingOutcome:
        return await self.binder.carry_out(self.plan(*(devices or ("g0",)), **about))

    async def given_back(self) -> None:
        assert await self.claims.release_fenced(self.pod, "by another")


async def staged(world: World) -> ClaimStage:
    await dra_fleet(world, ["n1", "n2"])
    await publish(world, ["n1", "n2"])
    await world.pod("p", gpu=1)
    return ClaimStage(world)


async def test_claim_allocation_status_and_binding_come_in_this_order(world: World) -> None:
    stage = await staged(world)
    assert await stage.bind() is BindingOutcome.BOUND
    assert stage.writes == [
        "create ResourceClaim",
        "merge status ResourceClaim",
        "merge status Pod",
        "create binding Pod",
    ]
    assert given(world, "p") == {("main", "g0")}


async def test_pods_without_such_devices_pay_nothing(world: World) -> None:
    stage = await staged(world)
    await world.api.create(Pod, pod_body("plain"), namespace=NAMESPACE)
    plan = BindingPlan(world.see("plain"), "n1")
    stage.calls.clear()
    assert await stage.binder.carry_out(plan) is BindingOutcome.BOUND
    assert stage.calls == ["create binding Pod"]


async def test_what_was_written_is_found_by_the_next(world: World) -> None:
    stage = await staged(world)

    async def fails() -> None:
        raise ApiUnreachable("cut")

    stage.faults["merge status ResourceClaim"] = [fails]
    with pytest.raises(ApiUnreachable):
        await stage.bind()
    first = claim_of(world, "p")
    assert first is not None
    assert await stage.bind(is_claimed=True) is BindingOutcome.BOUND
    now = claim_of(world, "p")
    assert now is not None
    assert now.metadata.uid == first.metadata.uid


async def test_of_two_who_carry_out_one_plan_both_find_it_bound(world: World) -> None:
    stage = await staged(world)

    async def by_another() -> None:
        assert await stage.bind(is_claimed=True) is BindingOutcome.BOUND

    stage.faults["merge status ResourceClaim"] = [by_another]
    assert await stage.bind() is BindingOutcome.BOUND
    assert given(world, "p") == {("main", "g0")}
    assert stage.calls.count("create binding Pod") == 1


async def test_a_claim_of_before_a_fence_is_replaced(world: World) -> None:
    """Whoever put the fence may still be about to remove it."""
    stage = await staged(world)
    wanted = stage.plan("g0")
    stage.faults["merge status Pod"] = [stage.given_back]
    assert await stage.binder.carry_out(wanted) is BindingOutcome.VOID
    # The one who was fenced out writes its claim once more, late.
    await stage.claims.claim(stage.pod, "n1", wanted.holdings)
    stage.faults["merge status Pod"] = [dies]
    with pytest.raises(Died):
        await stage.binder.carry_out(stage.plan("g0", is_claimed=True))
    assert claim_of(world, "p") is not None
    await stage.given_back()
    assert claim_of(world, "p") is None
    assert await stage.bind("g1") is BindingOutcome.BOUND
    assert given(world, "p") == {("main", "g1")}


def refuses(code: int) -> Fault:
    async def fault() -> None:
        raise ApiError(code, "Refused", "no")

    return fault


async def test_a_late_claim_of_an_earlier_epoch_makes_way(world: World) -> None:
    stage = await staged(world)
    early = stage.plan("g0")
    await stage.claims.claim(stage.pod, "n1", early.holdings)
    await stage.given_back()
    stage.faults["merge status Pod"] = [dies]
    with pytest.raises(Died):
        await stage.binder.carry_out(early)
    left = claim_of(world, "p")
    assert left is not None
    await world.devices.release(early.uid)
    assert await stage.bind("g1") is BindingOutcome.BOUND
    now = claim_of(world, "p")
    assert now is not None
    assert now.metadata.uid != left.metadata.uid
    assert given(world, "p") == {("main", "g1")}


async def test_who_was_fenced_meanwhile_leaves_the_newer_claim_alone(world: World) -> None:
    stage = await staged(world)
    early = stage.plan("g0")
    await stage.claims.release_fenced(stage.pod, "by another")
    assert await stage.bind("g1") is BindingOutcome.BOUND
    now = claim_of(world, "p")
    assert await stage.binder.carry_out(early) in (BindingOutcome.VOID, BindingOutcome.CLAIMED)
    late = BindingPlan(early.pod, "n1", early.holdings, is_claimed=True, origins=early.origins)
    assert await stage.binder.carry_out(late) is BindingOutcome.VOID
    assert claim_of(world, "p") == now
    assert given(world, "p") == {("main", "g1")}


async def test_a_claim_of_another_plan_of_the_same_epoch_is_not_touched_without_a_fence(
    world: World,
) -> None:
    stage = await staged(world)
    stage.faults["merge status Pod"] = [dies]
    with pytest.raises(Died):
        await stage.bind("g0")
    # The ledger was lost, and another device chosen.
    await world.devices.release(stage.pod.metadata.uid)
    before = stage.pod.metadata.resource_version
    assert await stage.bind("g1") is BindingOutcome.TAKEN
    assert stage.pod.metadata.resource_version != before
    assert claims(world) == {}
    assert await world.held() == {}
    assert await stage.bind("g1") is BindingOutcome.BOUND


async def test_a_claim_that_somebody_else_made_is_refused_and_left(world: World) -> None:
    stage = await staged(world)
    await world.api.create(ResourceClaim, claim_body(claim_name(stage.pod)))
    with pytest.raises(ClaimRefused, match="has to be removed"):
        await stage.bind()
    assert len(claims(world)) == 1


async def test_somebody_elses_allocation_of_before_makes_us_withdraw(world: World) -> None:
    stage = await staged(world)

    async def by_kube_scheduler() -> None:
        await theirs(world, "n1", "g0")

    stage.faults["create ResourceClaim"] = [by_kube_scheduler]
    assert await stage.bind() is BindingOutcome.TAKEN
    assert list(claims(world)) == ["default/theirs"]
    assert await world.held() == {}
    assert not stage.pod.spec.node_name


async def test_somebody_elses_allocation_of_after_makes_us_withdraw_while_it_is_seen(
    world: World,
) -> None:
    stage = await staged(world)

    async def by_kube_scheduler() -> None:
        stage.state.on_resource_claim(None, await theirs(world, "n1", "g0"))

    stage.faults["merge status Pod"] = [by_kube_scheduler]
    assert await stage.bind() is BindingOutcome.TAKEN
    assert list(claims(world)) == ["default/theirs"]
    assert "create binding Pod" not in stage.calls


async def test_of_two_of_ours_one_tries_again_at_once_and_the_other_waits(world: World) -> None:
    """As two ledgers would make it happen; whoever wrote later sees the other."""
    await dra_fleet(world)
    await publish(world)
    await world.pod("p", gpu=1)
    stage = ClaimStage(world)
    mine = stage.pod.metadata.uid
    for number in range(2):
        other = await world.pod(f"other-{number}", gpu=1)
        plan = BindingPlan(other, "n1", stage.plan("g0").holdings, True, stage.plan("g0").origins)
        stage.faults["merge status Pod"] = [dies]
        with pytest.raises(Died):
            await stage.binder.carry_out(plan)
        comes_first = mine < other.metadata.uid
        outcome = await stage.bind()
        assert outcome is (BindingOutcome.TAKEN if comes_first else BindingOutcome.WITHDRAWN)
        assert claim_of(world, "p") is None
        await stage.claims.release_fenced(other, "test")
        assert claims(world) == {}


async def test_a_server_without_extended_claims_is_told_before_the_binding(
    world: World,
) -> None:
    stage = await staged(world)
    api, merge = world.api, world.api.merge

    async def dropping(kind: Any, name: str, body: Any, **about: Any) -> Any:
        if kind is Pod:
            body = {**body, "status": {}}
        return await merge(kind, name, body, **about)

    api.merge = dropping  # type: ignore[method-assign]
    with pytest.raises(ClaimRefused, match="DRAExtendedResource"):
        await stage.bind()
    assert not stage.pod.spec.node_name


@pytest.mark.parametrize("where", ["create ResourceClaim", "merge status ResourceClaim"])
async def test_what_the_server_refuses_is_told_and_given_back(world: World, where: str) -> None:
    stage = await staged(world)
    stage.faults[where] = [refuses(403)]
    with pytest.raises(ClaimRefused, match="no"):
        await stage.bind()
    assert await world.held() == {}
    assert claims(world) == {}


async def test_gone_the_claim_is_removed_with_its_finalizer(world: World) -> None:
    stage = await staged(world)

    async def deleted() -> None:
        await world.api.delete(Pod, "p", NAMESPACE)

    stage.faults["create binding Pod"] = [deleted]
    assert await stage.bind() is BindingOutcome.GONE
    assert claims(world) == {}
    assert await world.held() == {}


async def test_a_pod_that_changes_meanwhile_is_told_again_and_bound(world: World) -> None:
    stage = await staged(world)

    async def labelled() -> None:
        body = {"metadata": {"labels": {"new": "label"}}}
        await world.api.merge(Pod, "p", body, namespace=NAMESPACE)

    stage.faults["merge status Pod"] = [labelled]
    assert await stage.bind() is BindingOutcome.BOUND
    assert given(world, "p") == {("main", "g0")}


async def test_a_plan_without_such_devices_takes_back_what_an_earlier_one_told(
    world: World,
) -> None:
    stage = await staged(world)
    stage.faults["create binding Pod"] = [stage.given_back]
    assert await stage.bind() is BindingOutcome.VOID
    assert stage.pod.status.extended_resource_claim_status is not None
    assert await stage.binder.carry_out(BindingPlan(stage.pod, "n2")) is BindingOutcome.BOUND
    assert stage.pod.status.extended_resource_claim_status is None
    assert claims(world) == {}


async def test_what_kube_scheduler_told_of_its_own_claim_stays(world: World) -> None:
    stage = await staged(world)
    told = {"resourceClaimName": "its-own", "requestMappings": []}
    status = {"status": {"extendedResourceClaimStatus": told}}
    await world.api.merge(Pod, "p", status, namespace=NAMESPACE, sub="status")
    assert await stage.binder.carry_out(BindingPlan(stage.pod, "n1")) is BindingOutcome.BOUND
    assert stage.pod.status.extended_resource_claim_status is not None


async def test_who_is_held_up_after_the_fence_removes_no_newer_claim(world: World) -> None:
    stage = await staged(world)
    early = stage.plan("g0")
    stage.faults["merge status Pod"] = [dies]
    with pytest.raises(Died):
        await stage.binder.carry_out(early)

    async def meanwhile() -> None:
        """Another gives it back, too, decides anew and binds."""
        assert await stage.claims.release_fenced(stage.pod, "by another")
        assert await stage.bind("g1") is BindingOutcome.BOUND

    stage.faults["merge ResourceClaim"] = [meanwhile]
    await stage.claims.release_fenced(early.pod, "by us")
    assert given(world, "p") == {("main", "g1")}
    assert await world.held() == {"p": {name_of("n1", "g1"): 1}}


async def test_a_cluster_without_claims_has_none_to_give_back(world: World) -> None:
    stage = await staged(world)

    async def unknown() -> None:
        raise ApiNotFound(404, "NotFound", "the server could not find the requested resource")

    await stage.claims.claim(stage.pod, "n1", stage.plan("g0").holdings)
    stage.faults["get ResourceClaim"] = [unknown]
    assert await stage.claims.release_fenced(stage.pod, "test")
    await stage.claims.claim(stage.pod, "n1", stage.plan("g0").holdings)
    stage.faults["get ResourceClaim"] = [refuses(403)]
    assert await stage.claims.release_fenced(stage.pod, "test")


async def test_an_informer_that_does_not_come_to_the_version_is_not_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list is as good."""
    stage = await staged(world)
    monkeypatch.setattr(claim_writer, "SEEN_SECONDS", 0.01)

    async def never(_: str) -> None:
        await asyncio.Event().wait()

    writer = ClaimWriter(world.api, stage.state.claimed, never)
    stage.claims.writer = writer
    await theirs(world, "n1", "g0")
    assert await stage.bind("g0") is BindingOutcome.TAKEN
    assert await stage.bind("g1") is BindingOutcome.BOUND
    assert "list ResourceClaim" in stage.calls
