"""Random reads other than candidates: provider lists with every filter, usages, allocations."""

from __future__ import annotations

import random

from tests.differential.forests import CLASSES, PROJECTS, TRAITS, USERS, some_of, some_uuid
from tests.differential.wire import NEWEST, Call
from tests.differential.world import World

RESOURCES, MEMBER_OF, IN_TREE, REQUIRED, FORBIDDEN = 4, 3, 14, 18, 22
REPEATED_AGGREGATES, NOT_MEMBER, KINDS, ANY_TRAIT = 24, 32, 38, 39


def some_version(rng: random.Random, oldest: int) -> str:
    return NEWEST if rng.random() < 0.65 else f"1.{rng.randint(oldest, 39)}"


class Lookups:
    """Draws reads about one world; they are compared word for word."""

    def __init__(self, rng: random.Random, world: World, aggregates: list[str]) -> None:
        self.rng, self.world, self.aggregates = rng, world, aggregates
        self.uuids = [it.uuid for it in world.providers]

    def listing(self) -> Call:
        """GET /resource_providers with some of its filters, most of them known at the version."""
        rng = self.rng
        version = some_version(rng, 0)
        minor = 39 if rng.random() < 0.05 else int(version.split(".")[1])
        params: list[tuple[str, str]] = []
        if rng.random() < 0.15:
            params.append(("name", rng.choice(self.world.providers).name))
        if rng.random() < 0.1:
            params.append(("uuid", self._somebody()))
        if minor >= RESOURCES and rng.random() < 0.5:
            names = rng.sample(CLASSES, rng.choice((1, 1, 2)))
            params.append(("resources", ",".join(f"{it}:{rng.randint(1, 4)}" for it in names)))
        if minor >= IN_TREE and rng.random() < 0.25:
            params.append(("in_tree", self._somebody()))
        if minor >= MEMBER_OF and rng.random() < 0.4:
            params += self._memberships(minor)
        if minor >= REQUIRED and rng.random() < 0.4:
            params += self._traits(minor)
        return Call("GET", "/resource_providers", tuple(params), version=version)

    def reading(self) -> Call:
        """One provider's page, one consumer's allocations, or the usages of a project."""
        rng = self.rng
        version = some_version(rng, 0)
        kind = rng.choice(("usages", "allocations", "provider", "provider"))
        if kind == "usages":
            return Call("GET", "/usages", self._usages(version), version=version)
        if kind == "allocations":
            consumers = [it.uuid for it in self.world.consumers] + [some_uuid(rng)]
            return Call("GET", f"/allocations/{rng.choice(consumers)}", version=version)
        pages = ("", "/inventories", "/usages", "/allocations", "/aggregates", "/traits")
        one = f"/inventories/{rng.choice(CLASSES)}"
        page = rng.choice((*pages, one))
        return Call("GET", f"/resource_providers/{self._somebody()}{page}", version=version)

    def _somebody(self) -> str:
        return some_uuid(self.rng) if self.rng.random() < 0.05 else self.rng.choice(self.uuids)

    def _usages(self, version: str) -> tuple[tuple[str, str], ...]:
        rng = self.rng
        params = [("project_id", rng.choice((*PROJECTS, "nobody")))]
        if rng.random() < 0.4:
            params.append(("user_id", rng.choice(USERS)))
        if int(version.split(".")[1]) >= KINDS and rng.random() < 0.5:
            kinds = ("INSTANCE", "MIGRATION", "all", "unknown", "VOLUME")
            params.append(("consumer_type", rng.choice(kinds)))
        return tuple(params)

    def _memberships(self, minor: int) -> list[tuple[str, str]]:
        rng = self.rng
        values = [rng.choice(self.aggregates)]
        if len(self.aggregates) > 1 and rng.random() < 0.4:
            values = ["in:" + ",".join(rng.sample(self.aggregates, 2))]
        if minor >= REPEATED_AGGREGATES and rng.random() < 0.3:
            values.append(rng.choice(self.aggregates))
        if minor >= NOT_MEMBER and rng.random() < 0.3:
            values.append("!" + rng.choice(self.aggregates))
        if minor >= NOT_MEMBER and len(self.aggregates) > 1 and rng.random() < 0.2:
            values = ["!in:" + ",".join(rng.sample(self.aggregates, 2))]
        return [("member_of", value) for value in values]

    def _traits(self, minor: int) -> list[tuple[str, str]]:
        rng = self.rng
        wanted = sorted(some_of(rng, TRAITS, 2)) or [TRAITS[0]]
        if minor >= FORBIDDEN and rng.random() < 0.5:
            wanted = [it if rng.random() < 0.5 else "!" + it for it in wanted]
        values = [",".join(wanted)]
        if minor >= ANY_TRAIT and rng.random() < 0.4:
            values.append("in:" + ",".join(rng.sample(TRAITS, 2)))
        return [("required", value) for value in values]
