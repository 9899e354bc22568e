"""The shape of a starting world, and the one builder that makes it over HTTP.

Every call is chosen for the generation it leaves behind, since the test files check those:
an inventory adds one, a traits update one, an allocation one, and aggregates (written at
microversion 1.18) none.
"""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from string import Template
from typing import Any

import httpx

Quantity = int | Mapping[str, int | float]
"""A total, or a total with limits; max_unit is the total unless it is given."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider with everything below it; $NAME in its name stands for a variable."""

    name: str
    variable: str = ""
    inventories: Mapping[str, Quantity] = field(default_factory=dict)
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    children: tuple["Provider", ...] = ()

    @property
    def uuid_variable(self) -> str:
        return self.variable or f"{self.name.upper()}_UUID"


@dataclass(frozen=True, slots=True)
class Claim:
    """What one consumer holds of one provider; both are given by their variables."""

    consumer: str
    provider: str
    resources: Mapping[str, int]
    project: str
    user: str


@dataclass(frozen=True, slots=True)
class World:
    """A server profile, the variables a file reads as new UUIDs, and what is there at first."""

    profile: str = "default"
    variables: tuple[str, ...] = ()
    trees: tuple[Provider, ...] = ()
    claims: tuple[Claim, ...] = ()


class WorldError(Exception):
    """The server refused a call the starting world needs."""


def build(world: World, url: str, names: Mapping[str, str]) -> dict[str, str]:
    """Fill an empty server; the given names and those of all that was made."""
    with httpx.Client(base_url=url, trust_env=False, verify=False, timeout=30.0) as http:
        builder = _Builder(http, dict(names))
        for variable in world.variables:
            builder.identity(variable)
        builder.introduce(world.trees)
        for tree in world.trees:
            builder.plant(tree, parent=None)
        for claim in world.claims:
            builder.claim(claim)
        return builder.names


def _walk(trees: tuple[Provider, ...]) -> Iterator[Provider]:
    for provider in trees:
        yield provider
        yield from _walk(provider.children)


class _Builder:
    def __init__(self, http: httpx.Client, names: dict[str, str]) -> None:
        self.http = http
        self.names = names

    def identity(self, variable: str) -> str:
        """The UUID a variable stands for, new at its first use."""
        return self.names.setdefault(variable, str(uuid.uuid4()))

    def introduce(self, trees: tuple[Provider, ...]) -> None:
        """Create the custom traits and resource classes that occur."""
        traits = {trait for provider in _walk(trees) for trait in provider.traits}
        classes = {name for provider in _walk(trees) for name in provider.inventories}
        for kind, used in (("traits", traits), ("resource_classes", classes)):
            for name in sorted(used):
                if name.startswith("CUSTOM_"):
                    self._call("PUT", f"/{kind}/{name}", "1.7")

    def plant(self, provider: Provider, parent: str | None) -> None:
        identity = self.identity(provider.uuid_variable)
        name = Template(provider.name).substitute(self.names)
        body = {"name": name, "uuid": identity, "parent_provider_uuid": parent}
        self._call("POST", "/resource_providers", "1.14", body)
        self._furnish(provider, f"/resource_providers/{identity}")
        for child in provider.children:
            self.plant(child, parent=identity)

    def claim(self, claim: Claim) -> None:
        body = {
            "allocations": {self.names[claim.provider]: {"resources": claim.resources}},
            "project_id": Template(claim.project).substitute(self.names),
            "user_id": Template(claim.user).substitute(self.names),
            "consumer_generation": None,
        }
        self._call("PUT", f"/allocations/{self.identity(claim.consumer)}", "1.28", body)

    def _furnish(self, provider: Provider, path: str) -> None:
        if provider.aggregates:
            aggregates = [self.identity(variable) for variable in provider.aggregates]
            self._call("PUT", f"{path}/aggregates", "1.18", aggregates)
        for name, quantity in provider.inventories.items():
            limits = {"total": quantity} if isinstance(quantity, int) else dict(quantity)
            body = {"resource_class": name, "max_unit": limits["total"], **limits}
            self._call("POST", f"{path}/inventories", "1.18", body)
        if provider.traits:
            generation = len(provider.inventories)
            update = {"traits": provider.traits, "resource_provider_generation": generation}
            self._call("PUT", f"{path}/traits", "1.18", update)

    def _call(self, method: str, path: str, version: str, body: Any = None) -> None:
        headers = {"x-auth-token": "admin", "openstack-api-version": f"placement {version}"}
        response = self.http.request(method, path, headers=headers, json=body)
        if not response.is_success:
            raise WorldError(f"{method} {path}: {response.status_code} {response.text[:500]}")
