"""Pods that wait: told why, even by a bug; tried again at once when something helps, and at last
whatever happened. Beside kube-scheduler: `test_wakeups_beside_kube_scheduler.py`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from dovetail.devices.allocation.strategies import Strategy
from dovetail.kube.classes.sources import devices_of
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.kube.scheduler import loop
from dovetail.kube.scheduler.decide import Decider
from dovetail.kube.scheduler.pod_requirements import (
    WHO_IS_HELPED,
    PodRequirements,
    RequirementsCache,
)
from dovetail.kube.scheduler.queue import SchedulingQueue, Wake
from dovetail.kube.scheduler.state import ClusterState
from dovetail.kube.timings import Timings
from dovetail.podfit.objects import ContainerStatus, Pod, PodStatus, ResourceRequirements
from tests.kube.scheduler.world import NAMESPACE, World, device, until
from tests.podfit import building
from tests.podfit.building import REQUIRED

ZONE = "zone"
PATIENT = Timings(
    ledger_watch=0.05,
    housekeeping=0.05,
    class_status=0.05,
    first_backoff=3600.0,
    longest_backoff=3600.0,
)
"""No back-off ends while a test lasts."""


def test_the_table_has_every_kind_of_event() -> None:
    assert set(WHO_IS_HELPED) == set(Wake)


async def test_a_pod_that_a_bug_keeps_from_being_decided_is_told_so_and_stops_nobody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide, broken = Decider.decide, True

    def sometimes(self: Decider, required: PodRequirements) -> Any:
        if broken and required.pod_request.labels.get("unlucky"):
            raise ZeroDivisionError("in the depths")
        return decide(self, required)

    monkeypatch.setattr(Decider, "decide", sometimes)
    await world.node("n1")
    await world.pod("unlucky")
    label = {"metadata": {"labels": {"unlucky": "yes"}}}
    await world.api.merge(Pod, "unlucky", label, namespace=NAMESPACE)
    async with world.scheduling():
        await world.pod("lucky")
        await until(lambda: world.is_bound("lucky"))
        await until(lambda: bool(world.see("unlucky").status.conditions))
        (told,) = world.see("unlucky").status.conditions
        assert (told.type, told.status, told.reason) == ("PodScheduled", "False", "SchedulerError")
        assert "ZeroDivisionError('in the depths')" in told.message
        await until(lambda: world.notes("unlucky") == [told.message])
        broken = False
        await until(lambda: world.is_bound("unlucky"))


async def test_a_plan_that_a_bug_keeps_from_counting_counts_for_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = {"unlucky"}
    hold = ClusterState._count_pod

    def sometimes(self: ClusterState, pod: Pod, node: str) -> None:
        hold(self, pod, node)
        if pod.metadata.name in failing:
            raise ZeroDivisionError("in the depths")

    monkeypatch.setattr(ClusterState, "_count_pod", sometimes)
    await world.node("n1", cpu="1")
    await world.pod("unlucky", cpu="1")
    async with world.scheduling():
        await until(lambda: bool(world.see("unlucky").status.conditions))
        await world.pod("lucky", cpu="1")
        await until(lambda: world.is_bound("lucky"))


async def test_a_pod_that_is_helped_does_not_wait_out_its_back_off(world: World) -> None:
    await world.resource_class("gpu")
    await world.node("n1")
    await world.pod("p", gpu=1)
    async with world.scheduling(world.replica(timings=PATIENT)):
        await until(lambda: bool(world.notes("p")))
        await world.node("n2", device("g0"))
        await until(lambda: world.is_bound("p"))


async def test_many_that_nothing_helps_keep_nobody_from_being_helped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is time for one early turn in each period, and all of them are woken."""
    monkeypatch.setattr(loop, "EARLY_SECONDS", 1e-9)
    monkeypatch.setattr(loop, "EARLY_PERIOD_SECONDS", 0.001)
    await world.resource_class("gpu")
    for number in range(50):
        await world.pod(f"p{number}", cpu="9")
    await world.pod("last", gpu=1)
    async with world.scheduling(world.replica(timings=PATIENT)) as scheduler:
        await until(lambda: scheduler.queue.depths()["parked"] == 51)
        await world.node("n1", device("g0"))
        await until(lambda: world.is_bound("last"))


async def test_the_safety_net_looks_afresh(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event is missed, as by a bug: neither the pod nor others of its template stay behind."""
    monkeypatch.setattr(ClusterState, "_cluster_changed", lambda *_: None)
    await world.pod("p")
    hasty = Timings(stale=0.3, longest_wait=0.05, housekeeping=0.05, ledger_watch=0.05)
    async with world.scheduling(world.replica(timings=hasty)):
        await until(lambda: bool(world.notes("p")))
        await world.node("n1")
        await world.pod("q")
        await until(lambda: world.is_bound("p", "q"))


async def test_a_claim_that_others_make_for_a_pod_has_it_looked_at(world: World) -> None:
    await world.resource_class("gpu")
    await world.node("n1", device("g0"), cpu="0")
    pod = await world.pod("p", gpu=1)
    async with world.scheduling(world.replica(timings=PATIENT)) as scheduler:
        await until(lambda: bool(world.notes("p")))
        assert scheduler.queue.depths()["parked"] == 1
        scheduler.state.on_ledger({"n1": {"g0": {pod.metadata.uid: 1}}})
        await until(lambda: world.is_bound("p"))
        await asyncio.sleep(0)


# What of a bound pod counts, and whom that may help.


def told(*pods: Pod) -> ClusterState:
    state = ClusterState(devices_of, SchedulingQueue(), WorkQueue("releases"))
    state.on_node(None, building.node("n1", {ZONE: "a"}, cpu="2"))
    for pod in pods:
        state.on_pod(None, pod)
    return state


def resized(pod: Pod, now: str, has: str) -> Pod:
    """Asks for `now` from now on, and still has what it had."""
    (container,) = pod.spec.containers
    asked = replace(container, resources=ResourceRequirements(requests={"cpu": now}))
    status = ContainerStatus(
        name="main",
        resources=ResourceRequirements(requests={"cpu": has}),
        allocated_resources={"cpu": has},
    )
    return replace(
        pod,
        spec=replace(pod.spec, containers=(asked,)),
        status=PodStatus(phase="Running", container_statuses=(status,)),
    )


def free_cpu(state: ClusterState) -> int:
    return state.nodes.free("n1", "cpu")


def test_room_of_a_pod_that_was_resized_down_is_free_when_the_kubelet_has_done_it() -> None:
    before = building.pod("p", on="n1", requests={"cpu": "2"})
    state = told(before)
    asked, done = resized(before, "1", has="2"), resized(before, "1", has="1")
    state.on_pod(before, asked)
    assert free_cpu(state) == 0
    state._queue.changes = Wake(0)
    state.on_pod(asked, done)
    assert free_cpu(state) == 1000
    assert state._queue.changes == Wake.RESIZED


def test_room_of_a_resize_found_infeasible_is_free() -> None:
    before = building.pod("p", on="n1", requests={"cpu": "1"})
    state = told(before)
    asked = resized(before, "2", has="1")
    state.on_pod(before, asked)
    assert free_cpu(state) == 0
    never = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    refused = replace(asked, status=replace(asked.status, conditions=building.conditions(never)))
    state.on_pod(asked, refused)
    assert free_cpu(state) == 1000


def test_a_heartbeat_of_a_pod_wakes_nobody() -> None:
    before = building.pod("p", on="n1", requests={"cpu": "1"})
    state = told(before)
    state._queue.changes = Wake(0)
    running = replace(before, status=PodStatus(phase="Running", start_time="2026-01-01T00:00:00Z"))
    state.on_pod(before, running)
    assert state._queue.changes == Wake(0)


def test_a_refusal_is_not_remembered_over_an_event_that_may_help() -> None:
    """Not for the pod that waits, nor for another of its template."""
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": ZONE}
    bound = building.pod("p", {"app": "x"}, on="n1")
    state = told(bound)
    decider = Decider(state, Strategy.FIRST_FIT)
    waiting = building.pod("q", affinity={"podAntiAffinity": {REQUIRED: [term]}})
    required = RequirementsCache().of(waiting)
    refusal = decider.decide(required)
    assert decider.decide(required) is refusal
    relabelled = replace(bound, metadata=replace(bound.metadata, labels={"app": "y"}))
    state.on_pod(bound, relabelled)
    assert decider.decide(required) is not refusal
