"""Pods are placed: on nodes with room, with the devices they ask for, or with words why not."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from dovetail.devices.allocation.request import DeviceHolding
from dovetail.devices.allocation_document import read_allocation
from dovetail.kube.scheduler.pod_requirements import PodRequirements, RequirementsCache
from dovetail.ledger import decisions
from dovetail.podfit.objects import Node, Pod, ResourceClass
from dovetail.service.claims import DeviceTaken
from dovetail.telemetry.metrics import METRICS
from tests.kube.scheduler.world import NAMESPACE, QUICK, World, device, until, until_told
from tests.ledger.world import make


async def test_a_pod_that_asks_for_no_class_gets_a_node(world: World) -> None:
    await world.node("n1")
    await world.pod("p")
    async with world.scheduling():
        await until(lambda: world.is_bound("p"))
    assert world.see("p").spec.node_name == "n1"
    assert await world.held() == {}


async def test_a_pod_gets_its_devices_the_claim_and_the_annotations_with_its_node(
    world: World,
) -> None:
    await world.resource_class("gpu")
    await world.node("plain")
    await world.node("n1", device("g0"), device("g1"), device("g2"))
    await world.pod("p", gpu=2)
    async with world.scheduling():
        await until(lambda: world.is_bound("p"))
    pod = world.see("p")
    assert pod.spec.node_name == "n1"
    found = read_allocation(pod.metadata.annotations)
    assert found is not None
    assert [(each.container, each.class_name, each.device) for each in found.holdings] == [
        ("main", "gpu", "g0"),
        ("main", "gpu", "g1"),
    ]
    assert pod.metadata.annotations["scheduler.alpha.kubernetes.io/resClass_gpu_g0"] == "1"
    assert await world.held() == {"p": {"g0": 1, "g1": 1}}


async def test_binding_and_annotating_is_one_write(world: World) -> None:
    await world.resource_class("gpu")
    await world.node("n1", device("g0"))
    await world.pod("p", gpu=1)
    async with world.scheduling():
        await until(lambda: world.is_bound("p"))
    assert world.api.calls["create binding", "Pod"] == 1
    assert not [call for call in world.api.calls if call[1] == "Pod" and "merge" in call[0]]


async def test_the_status_of_a_class_follows_its_pods(world: World) -> None:
    def numbers() -> tuple[int, int, int]:
        status = world.api.everything(ResourceClass)["gpu"].status
        return status.allocatable, status.requested, status.available

    await world.resource_class("gpu")
    await world.node("n1", device("g0"), device("g1"))
    async with world.scheduling():
        await until(lambda: numbers() == (2, 0, 2))
        await world.pod("p", gpu=1)
        await until(lambda: numbers() == (2, 1, 1))
        await world.api.delete(Pod, "p", NAMESPACE, grace=0)
        await until(lambda: numbers() == (2, 0, 2))


async def test_higher_priority_comes_first(world: World) -> None:
    await world.resource_class("gpu")
    await world.node("n1", device("g0"))
    await world.pod("low", gpu=1)
    await world.pod("high", gpu=1)
    await world.api.merge(Pod, "high", {"spec": {"priority": 5}}, namespace=NAMESPACE)
    async with world.scheduling():
        await until(lambda: world.is_bound("high"))
    assert not world.is_bound("low")


async def test_a_pod_that_fits_nowhere_is_told_why_and_placed_when_a_device_is_given_back(
    world: World,
) -> None:
    await world.resource_class("gpu")
    await world.node("n1", device("g0"))
    await world.node("n2", cpu="0")
    await world.pod("first", gpu=1)
    async with world.scheduling():
        await until(lambda: world.is_bound("first"))
        await world.pod("second", gpu=1)
        await until(lambda: bool(world.see("second").status.conditions))
        (condition,) = world.see("second").status.conditions
        assert (condition.type, condition.status) == ("PodScheduled", "False")
        assert condition.reason == "Unschedulable"
        assert "0/2 nodes are available" in condition.message
        assert "too few free devices of resource class gpu" in condition.message
        assert "held by pod default/first" in condition.message
        await until(lambda: world.notes("second") == [condition.message])
        await world.api.delete(Pod, "first", NAMESPACE, grace=0)
        await until(lambda: world.is_bound("second"))
    assert await world.held() == {"second": {"g0": 1}}


async def test_a_pod_waits_for_its_class(world: World) -> None:
    await world.node("n1", device("g0"))
    await world.pod("p", gpu=1)
    async with world.scheduling():
        await until(lambda: world.notes("p") == ["there is no resource class 'gpu'."])
        await world.resource_class("gpu")
        await until(lambda: world.is_bound("p"))


async def test_a_pod_waits_for_a_node(world: World) -> None:
    await world.resource_class("gpu")
    await world.pod("p", gpu=1)
    async with world.scheduling():
        await until(lambda: len(world.notes("p")) == 1)
        await world.node("n1", device("g0"))
        await until(lambda: world.is_bound("p"))


async def test_gated_pods_and_pods_of_other_schedulers_are_left_alone(world: World) -> None:
    await world.node("n1")
    await world.pod("other", scheduler="default-scheduler")
    await world.pod("gated")
    gates = {"spec": {"schedulingGates": [{"name": "wait"}]}}
    await world.api.merge(Pod, "gated", gates, namespace=NAMESPACE)
    async with world.scheduling():
        await world.pod("p")
        await until(lambda: world.is_bound("p"))
        assert not world.is_bound("gated")
        gone = {"spec": {"schedulingGates": None}}
        await world.api.merge(Pod, "gated", gone, namespace=NAMESPACE)
        await until(lambda: world.is_bound("gated"))
    assert not world.is_bound("other")


async def test_a_pod_that_cannot_be_placed_here_is_told_so(world: World) -> None:
    await world.node("n1")
    await world.pod("p")
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    await world.api.merge(Pod, "p", {"spec": {"volumes": [volume]}}, namespace=NAMESPACE)
    async with world.scheduling():
        await until(lambda: any("PersistentVolumeClaim" in note for note in world.notes("p")))
    assert not world.is_bound("p")


async def test_devices_of_ended_and_deleted_pods_are_given_back(world: World) -> None:
    await world.resource_class("gpu")
    await world.node("n1", device("g0"), device("g1"))
    await world.pod("ends", gpu=1)
    await world.pod("goes", gpu=1)
    async with world.scheduling():
        await until(lambda: world.is_bound("ends", "goes"))
        ended = {"status": {"phase": "Succeeded"}}
        await world.api.merge(Pod, "ends", ended, namespace=NAMESPACE, sub="status")
        await world.api.delete(Pod, "goes", NAMESPACE, grace=0)
        await until_told(lambda: world.is_held({}))


async def test_a_pod_is_told_when_its_device_is_ill_gone_or_well_again(world: World) -> None:
    def reason(name: str) -> list[tuple[str, str]]:
        conditions = world.see(name).status.conditions
        return [(each.status, each.reason) for each in conditions if "Devices" in each.type]

    await world.resource_class("gpu")
    await world.node("n1", device("g0"))
    await world.pod("p", gpu=1)
    async with world.scheduling():
        await until(lambda: world.is_bound("p"))
        await world.set_devices("n1", device("g0", healthy=False))
        await until(lambda: reason("p") == [("False", "DeviceUnhealthy")])
        await world.set_devices("n1", device("other"))
        await until(lambda: reason("p") == [("False", "DeviceRemoved")])
        await world.set_devices("n1", device("g0"))
        await until(lambda: reason("p") == [("True", "Available")])
    assert await world.held() == {"p": {"g0": 1}}


async def test_what_placement_clients_take_is_not_given_to_pods(world: World) -> None:
    await world.resource_class("gpu")
    await world.node("n1", device("g0"))
    async with world.scheduling() as scheduler:
        await until(lambda: "n1" in scheduler.state.devices)
        foreign = "11111111-1111-1111-1111-111111111111"
        async with asyncio.timeout(10):
            await claimed_by(world, foreign, "n1", "g0")
        await world.pod("p", gpu=1)
        await until(lambda: any(foreign in note for note in world.notes("p")))
        await world.devices.release(foreign)
        await until(lambda: world.is_bound("p"))


async def test_after_a_conflict_the_ledger_is_looked_at_at_once(world: World) -> None:
    await world.resource_class("gpu")
    await world.node("n1", device("g0"), device("g1"))
    late = replace(QUICK, ledger_watch=3600.0)
    async with world.scheduling(world.replica(timings=late)):
        await claimed_by(world, "11111111-1111-1111-1111-111111111111", "n1", "g0")
        await world.pod("p", gpu=1)
        await until(lambda: world.is_bound("p"))
    assert (await world.held())["p"] == {"g1": 1}


async def claimed_by(world: World, holder: str, node: str, name: str) -> None:
    """As soon as the device is published."""
    while True:
        try:
            await world.devices.claim(holder, "project", "user", node, [DeviceHolding(name, 1)])
            return
        except DeviceTaken:
            await asyncio.sleep(0.01)


async def test_a_node_that_is_gone_takes_no_pods(world: World) -> None:
    await world.node("n1")
    async with world.scheduling() as scheduler:
        await until(lambda: scheduler.state.has_node("n1"))
        await world.api.delete(Node, "n1")
        await until(lambda: not scheduler.state.has_node("n1"))
        await world.pod("p")
        await until(lambda: len(world.notes("p")) == 1)
        await world.node("n2")
        await until(lambda: world.is_bound("p"))
    assert world.see("p").spec.node_name == "n2"


async def test_a_node_whose_devices_the_ledger_cannot_have_keeps_nobody_else_waiting(
    world: World,
) -> None:
    await world.resource_class("gpu")
    await world.node("bad", device("g0", properties={"note": "x" * 2000}))
    await world.node("good", device("g0"))
    await world.pod("p", gpu=1)
    async with world.scheduling():
        await until(lambda: world.is_bound("p"))
    assert world.see("p").spec.node_name == "good"


async def test_a_node_that_the_ledger_refuses_keeps_nobody_else_waiting(world: World) -> None:
    """Its name is that of a provider that is no root."""

    make(world.ledger, "bad", make(world.ledger, "rack"))
    await world.resource_class("gpu")
    await world.node("bad", device("g0"))
    await world.node("good", device("g0"), device("g1"))
    await world.pod("p", gpu=2)
    async with world.scheduling():
        await until(lambda: world.is_bound("p"))


async def test_a_pod_that_cannot_be_decided_keeps_nobody_else_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.node("n1")
    await world.pod("poison")
    of = RequirementsCache.of

    def failing(self: RequirementsCache, pod: Pod) -> PodRequirements:
        if pod.metadata.name == "poison":
            raise RuntimeError("a bug")
        return of(self, pod)

    monkeypatch.setattr(RequirementsCache, "of", failing)
    async with world.scheduling():
        await world.pod("p")
        await until(lambda: world.is_bound("p"))
        monkeypatch.setattr(RequirementsCache, "of", of)
        await until(lambda: world.is_bound("poison"))


async def test_pods_that_waited_long_are_tried_however_busy_it_is(world: World) -> None:
    await world.node("n1", cpu="0")
    soon = replace(QUICK, stale=0.0, longest_wait=0.2)
    async with world.scheduling(world.replica(timings=soon)) as scheduler:
        await world.pod("p")
        await until(lambda: len(world.notes("p")) == 1)
        uid = world.see("p").metadata.uid
        entry = scheduler.queue.find(uid)
        assert entry is not None
        before = entry.attempts

        def tried() -> bool:
            scheduler.queue.wake()
            return entry.attempts > before

        await until(tried)


def counted(outcome: str) -> float:
    """Of `claims_total`, as the daemon shows it."""
    (found,) = [
        float(line.split()[1])
        for line in METRICS.page().decode().splitlines()
        if line.startswith(f'dovetail_claims_total{{outcome="{outcome}"}}')
    ] or [0.0]
    return found


async def test_claims_of_pods_are_recorded_as_decisions_and_counted(world: World) -> None:
    await world.resource_class("gpu")
    await world.node("n1", device("g0"))
    before = counted("granted")
    async with world.scheduling():
        pod = await world.pod("p", gpu=1)
        await until(lambda: world.is_bound("p"))
    assert counted("granted") == before + 1
    recorded = world.ledger.read(
        lambda tx: decisions.listing(tx, limit=10, consumer=pod.metadata.uid)
    ).result()
    ((_, _, _, document),) = recorded
    assert "g0" in document


async def test_claims_that_others_outran_are_recorded_and_counted_too(world: World) -> None:
    await world.resource_class("gpu")
    await world.node("n1", device("g0"), device("g1"))
    late = replace(QUICK, ledger_watch=3600.0)
    before = counted("refused")
    async with world.scheduling(world.replica(timings=late)):
        await claimed_by(world, "11111111-1111-1111-1111-111111111111", "n1", "g0")
        pod = await world.pod("p", gpu=1)
        await until(lambda: world.is_bound("p"))
    assert counted("refused") > before
    recorded = world.ledger.read(
        lambda tx: decisions.listing(tx, limit=10, consumer=pod.metadata.uid)
    ).result()
    assert len(recorded) == 2
