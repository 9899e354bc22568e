"""The hardware that is fought over: twenty hosts, too small for the clients that want them.

A host has memory and two NUMA nodes with CPUs; each half of the hosts draws disk from one
sharing provider, so that claims on different hosts still meet on one row.
"""

from __future__ import annotations

import uuid
from typing import NamedTuple

from tests.stress.wire import Wire

HOSTS = 20
NAMESPACE = uuid.UUID("6f1d4c1e-56c4-4d5e-9a53-0d5a3a4f7c10")
QUERIES = (
    "resources=VCPU:1,MEMORY_MB:512",
    "resources=VCPU:4",
    "resources=VCPU:2,MEMORY_MB:1024,DISK_GB:4",
    "resources=MEMORY_MB:512&resources1=VCPU:1&resources2=VCPU:1&group_policy=isolate",
)


class Stock(NamedTuple):
    """One inventory."""

    total: int
    reserved: int = 0
    allocation_ratio: float = 1.0
    step_size: int = 1

    @property
    def capacity(self) -> float:
        return (self.total - self.reserved) * self.allocation_ratio


class Provider(NamedTuple):
    name: str
    stocks: dict[str, Stock]
    parent: str | None = None
    aggregate: str | None = None
    traits: tuple[str, ...] = ()

    @property
    def uuid(self) -> str:
        return identity(self.name)


def identity(name: str) -> str:
    return str(uuid.uuid5(NAMESPACE, name))


def providers() -> list[Provider]:
    """Parents before their children."""
    fleet = [_pool("pool-0"), _pool("pool-1")]
    for number in range(HOSTS):
        name = f"host-{number}"
        memory = {"MEMORY_MB": Stock(4352, reserved=256, step_size=256)}
        fleet.append(Provider(name, memory, aggregate=f"pool-{number % 2}"))
        fleet += [_numa(name, index) for index in range(2)]
    return fleet


def load(wire: Wire) -> None:
    for provider in providers():
        _create(wire, provider)


def _pool(name: str) -> Provider:
    disk = {"DISK_GB": Stock(110, reserved=10)}
    return Provider(name, disk, aggregate=name, traits=("MISC_SHARES_VIA_AGGREGATE",))


def _numa(host: str, index: int) -> Provider:
    return Provider(f"{host}-numa-{index}", {"VCPU": Stock(4, allocation_ratio=1.5)}, parent=host)


def _create(wire: Wire, provider: Provider) -> None:
    body = {"name": provider.name, "uuid": provider.uuid}
    if provider.parent:
        body["parent_provider_uuid"] = identity(provider.parent)
    _write(wire, "POST", "/resource_providers", body)
    stocks = {name: stock._asdict() for name, stock in provider.stocks.items()}
    _put(wire, provider, "inventories", 0, {"inventories": stocks})
    if provider.aggregate:
        _put(wire, provider, "aggregates", 1, {"aggregates": [identity(provider.aggregate)]})
    if provider.traits:
        _put(wire, provider, "traits", 2, {"traits": list(provider.traits)})


def _put(
    wire: Wire, provider: Provider, part: str, generation: int, body: dict[str, object]
) -> None:
    path = f"/resource_providers/{provider.uuid}/{part}"
    _write(wire, "PUT", path, body | {"resource_provider_generation": generation})


def _write(wire: Wire, method: str, path: str, body: object) -> None:
    answer = wire.call(method, path, body)
    assert answer.status in (200, 201, 204), (method, path, answer)
