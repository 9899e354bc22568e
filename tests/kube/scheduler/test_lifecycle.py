"""Who decides: the elected one, once it knows the cluster; and how it stops."""

from __future__ import annotations

import asyncio

import pytest

from dovetail.kube.api.port import ApiUnreachable
from dovetail.kube.replica import Replica
from dovetail.kube.runtime.leader import Election, LeaseTiming
from dovetail.podfit.objects import KubeObject, Node, Pod, ResourceClass
from tests.kube.scheduler.world import World, device, until

QUICK = LeaseTiming(lease=1.0, renew=0.6, retry=0.05)


def candidate(world: World, name: str) -> Replica:
    return world.replica(election=Election(world.api, "default", "lease", name, timing=QUICK))


async def test_only_the_leader_decides_and_another_takes_over(world: World) -> None:
    await world.resource_class("gpu")
    await world.node("n1", device("g0"), device("g1"))
    first, second = candidate(world, "first"), candidate(world, "second")
    stops = asyncio.Event(), asyncio.Event()
    tasks = [asyncio.create_task(first.run(stops[0]))]
    await until(first.scheduler.loop.may_decide)
    tasks.append(asyncio.create_task(second.run(stops[1])))
    await until(lambda: second.is_ready)
    await world.pod("p", gpu=1)
    await until(lambda: world.is_bound("p"))
    assert not second.scheduler.loop.may_decide()
    await until(lambda: len(second.scheduler.queue) == 0)
    stops[0].set()
    await tasks[0]
    assert not first.scheduler.loop.may_decide()
    await world.pod("q", gpu=1)
    await until(lambda: world.is_bound("q"))
    assert second.scheduler.loop.may_decide()
    stops[1].set()
    await tasks[1]


async def test_nothing_is_decided_without_the_lease(world: World) -> None:
    await world.node("n1")
    await world.pod("p")

    async def before(verb: str, kind: type[KubeObject], name: str) -> None:
        if kind.API.kind == "Lease":
            raise ApiUnreachable("cut")

    world.api.before = before
    stop = asyncio.Event()
    replica = candidate(world, "only")
    task = asyncio.create_task(replica.run(stop))
    await until(lambda: replica.is_ready and len(replica.scheduler.queue) == 1)
    await asyncio.sleep(0.3)
    assert not world.is_bound("p")
    world.api.before = None
    await until(lambda: world.is_bound("p"))
    stop.set()
    await task


async def test_it_can_be_stopped_while_the_api_server_is_away(world: World) -> None:
    async def before(verb: str, kind: type[KubeObject], name: str) -> None:
        raise ApiUnreachable("cut")

    world.api.before = before
    stop = asyncio.Event()
    task = asyncio.create_task(world.replica().run(stop))
    await asyncio.sleep(0.05)
    stop.set()
    await asyncio.wait_for(task, 10)


async def test_what_is_in_flight_is_finished_before_it_stops(world: World) -> None:
    await world.resource_class("gpu")
    await world.node("n1", device("g0"))
    bound, let = asyncio.Event(), asyncio.Event()

    async def before(verb: str, kind: type[KubeObject], name: str) -> None:
        if verb == "create binding":
            bound.set()
            await let.wait()

    world.api.before = before
    stop = asyncio.Event()
    task = asyncio.create_task(world.replica().run(stop))
    await world.pod("p", gpu=1)
    await bound.wait()
    stop.set()
    await asyncio.sleep(0.05)
    assert not task.done()
    let.set()
    await task
    assert world.is_bound("p")


async def test_a_part_that_fails_ends_the_whole(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.node("n1")
    await world.pod("p")
    replica = world.replica()

    def broken(*_: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(replica.scheduler.loop, "_turn", broken)
    with pytest.raises(RuntimeError, match="a fault"):
        await replica.run(asyncio.Event())


async def test_nodes_and_pods_that_were_there_before_are_known_when_it_is_ready(
    world: World,
) -> None:
    for number in range(3):
        await world.node(f"n{number}")
    await world.pod("p")
    async with world.scheduling() as scheduler:
        assert scheduler.state.rows.names == sorted(world.api.everything(Node))
        assert set(scheduler.state.pods) == {
            pod.metadata.uid for pod in world.api.everything(Pod).values()
        }


async def test_a_standby_that_watched_classes_come_and_go_sees_all_devices_when_it_takes_over(
    world: World,
) -> None:
    """Nobody asks a standby anything: what it makes of events must not depend on being asked."""
    await world.resource_class("gpu")
    first, second = candidate(world, "first"), candidate(world, "second")
    stops = asyncio.Event(), asyncio.Event()
    tasks = [asyncio.create_task(first.run(stops[0]))]
    await until(first.scheduler.loop.may_decide)
    tasks.append(asyncio.create_task(second.run(stops[1])))
    await until(lambda: second.is_ready)
    seen = second.scheduler.state
    memory = {"key": "memory", "operator": "Exists"}
    spec = {"resourceSelector": [{"matchExpressions": [memory]}]}
    await world.api.create(ResourceClass, {"metadata": {"name": "large"}, "spec": spec})
    await until(lambda: "large" in seen.classes)
    await world.node("n1", *(device(f"g{number}") for number in range(12)))
    await until(lambda: seen.has_node("n1"))
    await world.api.delete(ResourceClass, "large")
    await until(lambda: "large" not in seen.classes)
    stops[0].set()
    await tasks[0]
    await world.pod("p", gpu=12)
    await until(lambda: world.is_bound("p"))
    numbers = world.api.everything
    await until(lambda: numbers(ResourceClass)["gpu"].status.requested == 12)
    assert numbers(ResourceClass)["gpu"].status.allocatable == 12
    stops[1].set()
    await tasks[1]
