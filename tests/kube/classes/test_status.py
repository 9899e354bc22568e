"""The numbers of a class are written where users see them, and no more often than needed."""

from __future__ import annotations

from dovetail.devices.allocation.request import ClassStatus
from dovetail.kube.classes.catalogue import ClassReport
from dovetail.kube.classes.status import ClassStatusWriter
from dovetail.podfit.objects import ResourceClass
from tests.support.kube.memory import MemoryApi


class World:
    """An API with some classes, and a writer that knows them as the API has them."""

    def __init__(self) -> None:
        self.api = MemoryApi()
        self.classes: dict[str, ResourceClass] = {}
        self.reports: dict[str, ClassReport] = {}
        self.writer = ClassStatusWriter(self.api, self.classes, self.reports.__getitem__, 1.0)

    async def create(self, name: str) -> None:
        await self.api.create(ResourceClass, {"metadata": {"name": name}, "spec": {}})

    async def written(self, **reports: ClassReport) -> int:
        """How many writes it took to say this."""
        self.reports.update(reports)
        await self.look()
        before = self.writes
        await self.writer.write()
        await self.look()
        return self.writes - before

    async def look(self) -> None:
        listing = await self.api.list(ResourceClass)
        self.classes.clear()
        self.classes.update({each.metadata.name: each for each in listing.items})

    @property
    def writes(self) -> int:
        return sum(count for (verb, _), count in self.api.calls.items() if verb == "merge status")


def usable(allocatable: int, requested: int) -> ClassReport:
    return ClassStatus(allocatable, requested), ()


async def test_numbers_are_written_with_what_is_left() -> None:
    world = World()
    await world.create("a")
    assert await world.written(a=usable(8, 3)) == 1
    status = world.classes["a"].status
    assert (status.allocatable, status.requested, status.available) == (8, 3, 5)
    (condition,) = status.conditions
    assert (condition.type, condition.status) == ("Valid", "True")
    assert status.observed_generation == world.classes["a"].metadata.generation


async def test_row_25_what_is_said_already_is_not_written_again() -> None:
    world = World()
    await world.create("a")
    await world.create("b")
    await world.written(a=usable(8, 3), b=usable(2, 0))
    assert await world.written() == 0
    assert await world.written(b=usable(2, 1)) == 1


async def test_a_class_that_cannot_be_used_says_why() -> None:
    world = World()
    await world.create("a")
    await world.written(a=(ClassStatus(0, 0), ["spec.members[0].class: there is no class 'b'"]))
    (condition,) = world.classes["a"].status.conditions
    assert (condition.status, condition.reason) == ("False", "Unusable")
    assert "there is no class 'b'" in condition.message


async def test_row_25_numbers_for_an_older_version_are_not_written() -> None:
    world = World()
    await world.create("a")
    await world.look()
    await world.api.merge(ResourceClass, "a", {"metadata": {"labels": {"x": "y"}}})
    world.reports["a"] = usable(8, 3)
    await world.writer.write()
    await world.look()
    assert world.classes["a"].status.allocatable == 0
    assert await world.written() == 1


async def test_a_class_that_went_away_meanwhile_is_no_trouble() -> None:
    world = World()
    await world.create("a")
    await world.look()
    await world.api.delete(ResourceClass, "a")
    world.reports["a"] = usable(1, 0)
    await world.writer.write()
