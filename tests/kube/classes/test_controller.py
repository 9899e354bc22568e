"""The class controller by itself: without a scheduler, and only while leading."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec

from dovetail.core.device import Device
from dovetail.core.rows import Rows
from dovetail.kube.classes.catalogue import DeviceCatalogue
from dovetail.kube.classes.controller import ClassController
from dovetail.kube.classes.sources import devices_of
from dovetail.ledger import LedgerBusy
from dovetail.podfit.objects import Node, ResourceClass
from tests.kube.scheduler.world import (
    QUICK,
    World,
    device,
    node_body,
    until,
    until_told,
)
from tests.ledger.world import make


class Stage:
    """A catalogue that is fed by hand, and its controller."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.seen: dict[str, ResourceClass] = {}
        self.catalogue = DeviceCatalogue(Rows(), devices_of)
        self.controller = ClassController(
            world.api, world.devices, self.catalogue, self.seen, QUICK
        )

    async def add_class(self, name: str) -> None:
        await self.world.resource_class(name)
        self.seen[name] = self.world.api.everything(ResourceClass)[name]
        self.catalogue.set_class(None, self.seen[name])

    def set_devices(self, node: str, *names: str) -> None:
        devices = [device(name) for name in names]
        self.catalogue.set_node(msgspec.convert(node_body(node, devices), Node))

    def allocatable(self, name: str) -> int:
        return self.world.api.everything(ResourceClass)[name].status.allocatable

    async def is_published(self, classes: set[str]) -> bool:
        return set(await self.world.devices.classes()) == classes

    async def can_claim(self, name: str) -> bool:
        _, nodes = await self.world.devices.changes(None)
        return name in nodes

    @asynccontextmanager
    async def leading(self) -> AsyncIterator[None]:
        tasks = [
            asyncio.create_task(self.controller.run()),
            asyncio.create_task(self.controller.lead()),
        ]
        try:
            yield
        finally:
            for task in reversed(tasks):
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


async def test_what_is_there_is_published_first_then_what_changes(world: World) -> None:
    stage = Stage(world)
    await stage.add_class("gpu")
    stage.set_devices("n1", "g0", "g1")
    async with stage.leading():
        await stage.controller.published.wait()
        assert await stage.is_published({"gpu"})
        assert await stage.can_claim("n1")
        await until(lambda: stage.allocatable("gpu") == 2)
        stage.set_devices("n2", "g0")
        await stage.add_class("other")
        await until_told(lambda: stage.can_claim("n2"))
        await until_told(lambda: stage.is_published({"gpu", "other"}))
        stage.catalogue.set_class(stage.seen.pop("other"), None)
        await until_told(lambda: stage.is_published({"gpu"}))
        stage.catalogue.drop_node("n2")
        await until_told(lambda: is_gone(stage, "n2"))
    assert not stage.controller.published.is_set()


async def is_gone(stage: Stage, node: str) -> bool:
    return not await stage.can_claim(node)


async def test_nothing_is_published_or_written_by_a_replica_that_does_not_lead(
    world: World,
) -> None:
    stage = Stage(world)
    await stage.add_class("gpu")
    stage.set_devices("n1", "g0")
    running = asyncio.create_task(stage.controller.run())
    await asyncio.sleep(0.2)
    running.cancel()
    assert await stage.is_published(set())
    assert not await stage.can_claim("n1")
    assert stage.allocatable("gpu") == 0


async def test_a_ledger_that_is_away_is_waited_for(world: World) -> None:
    publish, tries = world.devices.publish, 0

    async def away_at_first(node: str, found: Sequence[Device]) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise LedgerBusy("away")
        await publish(node, found)

    world.devices.publish = away_at_first  # type: ignore[method-assign]
    stage = Stage(world)
    stage.set_devices("n1", "g0")
    async with stage.leading():
        await stage.controller.published.wait()
    assert tries >= 3
    assert await stage.can_claim("n1")


async def test_what_the_ledger_refuses_is_published_again_when_asked_for(world: World) -> None:
    make(world.ledger, "n1", make(world.ledger, "rack"))
    stage = Stage(world)
    stage.set_devices("n1", "g0")
    stage.set_devices("n2", "g0")
    async with stage.leading():
        await stage.controller.published.wait()
        assert await stage.can_claim("n2")
        await world.devices.withdraw("n2")
        stage.controller.republish("n2")
        await until_told(lambda: stage.can_claim("n2"))
    assert not await stage.can_claim("n1")


async def test_what_keeps_a_class_from_being_used_is_in_its_status(world: World) -> None:
    stage = Stage(world)
    await stage.add_class("gpu")
    body = {"metadata": {"name": "bad"}, "spec": {"resourceSelector": "all"}}
    await world.api.create(ResourceClass, body)
    stage.seen["bad"] = world.api.everything(ResourceClass)["bad"]
    assert not stage.catalogue.set_class(None, stage.seen["bad"])
    async with stage.leading():
        await until(lambda: bool(conditions(world, "bad") and conditions(world, "gpu")))
    assert conditions(world, "gpu") == [("Valid", "True")]
    assert conditions(world, "bad") == [("Valid", "False")]


def conditions(world: World, name: str) -> list[tuple[str, str]]:
    status = world.api.everything(ResourceClass)[name].status
    return [(each.type, each.status) for each in status.conditions]
