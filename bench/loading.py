"""Gives a server the fleet: call by call as any Placement client would, or as one bulk load.

The call by call way sends the very same documents to both servers.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from . import fleet
from .client import Client, require
from .fleet import Consumer, Host, Provider
from .servers import Server

CONNECTIONS = 2
"""The reference on SQLite answers 500 to some writers where there are more."""
BULK = "/dovetail/v1/fleet"


@dataclass(frozen=True, slots=True)
class Load:
    way: str
    hosts: int
    seconds: float

    @property
    def hosts_per_second(self) -> float:
        return self.hosts / self.seconds


def load_by_calls(server: Server, hosts: int) -> Load:
    """Load over several connections; all calls for a host go over one of them."""
    local = threading.local()

    def load(host: Host) -> None:
        if not hasattr(local, "client"):
            local.client = server.client()
        for provider in host.providers:
            _put_provider(local.client, provider)
        for consumer in host.consumers:
            _put_consumer(local.client, consumer)

    start = time.perf_counter()
    first = server.client()
    for trait in fleet.CUSTOM_TRAITS:
        first.insist("PUT", f"/traits/{trait}")
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        for _ in pool.map(load, fleet.generate(hosts)):
            pass
    first.close()
    return Load(f"{server.name}, call by call", hosts, time.perf_counter() - start)


def load_in_bulk(server: Server, hosts: int) -> Load:
    client = server.client()
    start = time.perf_counter()
    status, answer = client.stream(BULK, fleet.ndjson(hosts))
    seconds = time.perf_counter() - start
    require(status, answer, f"POST {BULK}")
    client.close()
    return Load(f"{server.name}, POST {BULK}", hosts, seconds)


def allocation_document(allocations: dict[str, dict[str, int]]) -> dict[str, object]:
    return {
        "allocations": {
            provider: {"resources": resources} for provider, resources in allocations.items()
        },
        "project_id": fleet.PROJECT,
        "user_id": fleet.USER,
        "consumer_type": fleet.CONSUMER_TYPE,
        "consumer_generation": None,
    }


def _put_provider(client: Client, provider: Provider) -> None:
    document = {"name": provider.name, "uuid": provider.uuid}
    if provider.parent is not None:
        document["parent_provider_uuid"] = provider.parent
    client.insist("POST", "/resource_providers", document)
    path = f"/resource_providers/{provider.uuid}"
    generation = 0
    if provider.inventories:
        records = {name: {"total": total} for name, total in provider.inventories.items()}
        client.insist(
            "PUT",
            f"{path}/inventories",
            {"resource_provider_generation": generation, "inventories": records},
        )
        generation += 1
    if provider.traits:
        client.insist(
            "PUT",
            f"{path}/traits",
            {"resource_provider_generation": generation, "traits": provider.traits},
        )


def _put_consumer(client: Client, consumer: Consumer) -> None:
    client.insist("PUT", f"/allocations/{consumer.uuid}", allocation_document(consumer.allocations))
