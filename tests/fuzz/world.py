"""A small live world to break things in: a host with a NUMA node, a pool, a consumer.

Its names are fixed and its generations follow from how it is built, so that it can be rebuilt to
the byte after every request that was let through, and requests can be written down beforehand.
"""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import quote

VERSION = "1.39"
HOST = "a0000000-0000-4000-8000-000000000001"
NUMA = "a0000000-0000-4000-8000-000000000002"
POOL = "a0000000-0000-4000-8000-000000000003"
SPARE = "a0000000-0000-4000-8000-000000000004"
CONSUMER = "c0000000-0000-4000-8000-000000000001"
NEWCOMER = "c0000000-0000-4000-8000-000000000002"
AGGREGATE = "e0000000-0000-4000-8000-000000000001"
BIG = "big.numa"
GENERATIONS = {HOST: 3, NUMA: 4, POOL: 3, SPARE: 0}

STEPS: tuple[tuple[str, str, Any], ...] = (
    ("PUT", "/resource_classes/CUSTOM_HELD", None),
    ("PUT", "/resource_classes/CUSTOM_IDLE", None),
    ("PUT", "/traits/CUSTOM_WORN", None),
    ("PUT", "/traits/CUSTOM_LOOSE", None),
    ("POST", "/resource_providers", {"name": "host", "uuid": HOST}),
    (
        "POST",
        "/resource_providers",
        {"name": "numa", "uuid": NUMA, "parent_provider_uuid": HOST},
    ),
    ("POST", "/resource_providers", {"name": "pool", "uuid": POOL}),
    ("POST", "/resource_providers", {"name": "spare", "uuid": SPARE}),
    (
        "PUT",
        f"/resource_providers/{HOST}/inventories",
        {
            "resource_provider_generation": 0,
            "inventories": {"MEMORY_MB": {"total": 4096, "reserved": 256, "step_size": 256}},
        },
    ),
    (
        "PUT",
        f"/resource_providers/{NUMA}/inventories",
        {
            "resource_provider_generation": 0,
            "inventories": {
                "VCPU": {"total": 8, "allocation_ratio": 2.0, "max_unit": 4},
                "CUSTOM_HELD": {"total": 3},
            },
        },
    ),
    (
        "PUT",
        f"/resource_providers/{POOL}/inventories",
        {"resource_provider_generation": 0, "inventories": {"DISK_GB": {"total": 100}}},
    ),
    (
        "PUT",
        f"/resource_providers/{HOST}/aggregates",
        {"resource_provider_generation": 1, "aggregates": [AGGREGATE]},
    ),
    (
        "PUT",
        f"/resource_providers/{POOL}/aggregates",
        {"resource_provider_generation": 1, "aggregates": [AGGREGATE]},
    ),
    (
        "PUT",
        f"/resource_providers/{POOL}/traits",
        {"resource_provider_generation": 2, "traits": ["MISC_SHARES_VIA_AGGREGATE"]},
    ),
    (
        "PUT",
        f"/resource_providers/{NUMA}/traits",
        {"resource_provider_generation": 1, "traits": ["CUSTOM_WORN", "HW_NUMA_ROOT"]},
    ),
    (
        "PUT",
        f"/dovetail/v1/providers/{NUMA}/attributes",
        {"resource_provider_generation": 2, "attributes": {"Kind": "numa", "memory": "30G"}},
    ),
    (
        "PUT",
        f"/dovetail/v1/classes/{BIG}",
        {
            "spec": {
                "resourceSelector": [
                    {
                        "matchExpressions": [
                            {"key": "memory", "operator": "GtEq", "values": ["1G"]},
                            {"key": "Kind", "operator": "Exists"},
                        ]
                    }
                ]
            }
        },
    ),
    (
        "PUT",
        f"/allocations/{CONSUMER}",
        {
            "allocations": {
                HOST: {"resources": {"MEMORY_MB": 512}},
                NUMA: {"resources": {"VCPU": 2, "CUSTOM_HELD": 1}},
            },
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
            "project_id": "project",
            "user_id": "user",
        },
    ),
)


class World:
    """The world as one client sees and makes it, over a connection kept open."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        self._erase()
        self._build()
        self.pristine = self.state()
        self.pristine_glimpse = self.glimpse()
        found = {one["uuid"]: one["generation"] for one in self.pristine["providers"]}
        assert found == GENERATIONS, found

    def close(self) -> None:
        self._connection.close()

    def reset(self) -> None:
        self._erase()
        self._build()
        assert self.glimpse() == self.pristine_glimpse

    def glimpse(self) -> dict[str, Any]:
        """What shows nearly every change, at a fifth of the cost of the whole state."""
        providers = sorted(self._providers(), key=lambda one: str(one["uuid"]))
        for provider in providers:
            provider.pop("links")
        return {
            "providers": providers,
            "classes": sorted(self._custom_classes()),
            "selections": {one["name"]: one["spec"] for one in self._selections()},
            "traits": sorted(self._custom_traits()),
            "usages": self._get("/usages?project_id=project"),
        }

    def state(self) -> dict[str, Any]:
        """All that can be asked, in an order that does not depend on the server."""
        glimpse = self.glimpse()
        parts = {one["uuid"]: self._parts(one["uuid"]) for one in glimpse["providers"]}
        consumers = {name for part in parts.values() for name in part["allocations"]}
        holdings = {name: self._get(f"/allocations/{name}") for name in sorted(consumers)}
        return {**glimpse, "parts": parts, "consumers": holdings}

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        headers = {
            "content-type": "application/json",
            "openstack-api-version": f"placement {VERSION}",
            "x-auth-token": "admin",
        }
        payload = None if body is None else json.dumps(body)
        self._connection.request(method, path, payload, headers)
        response = self._connection.getresponse()
        content = response.read()
        return response.status, json.loads(content) if content else None

    def _parts(self, provider: str) -> dict[str, Any]:
        path = f"/resource_providers/{provider}"
        return {
            "inventories": self._get(f"{path}/inventories")["inventories"],
            "traits": sorted(self._get(f"{path}/traits")["traits"]),
            "aggregates": sorted(self._get(f"{path}/aggregates")["aggregates"]),
            "allocations": self._get(f"{path}/allocations")["allocations"],
            "attributes": self._get(f"/dovetail/v1/providers/{provider}/attributes"),
        }

    def _providers(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get("/resource_providers")["resource_providers"]
        return found

    def _custom_classes(self) -> list[str]:
        names = [one["name"] for one in self._get("/resource_classes")["resource_classes"]]
        return [name for name in names if name.startswith("CUSTOM_")]

    def _selections(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get("/dovetail/v1/classes")["classes"]
        return found

    def _custom_traits(self) -> list[str]:
        names: list[str] = self._get("/traits?name=startswith:CUSTOM_")["traits"]
        return names

    def _get(self, path: str) -> Any:
        status, body = self.call("GET", path)
        assert status == 200, f"GET {path}: {status} {body}"
        return body

    def _do(self, method: str, path: str, body: object = None) -> None:
        status, answer = self.call(method, path, body)
        assert status < 300, f"{method} {path} {body}: {status} {answer}"

    def _build(self) -> None:
        for method, path, body in STEPS:
            self._do(method, path, body)

    def _erase(self) -> None:
        consumers: set[str] = set()
        for provider in self._providers():
            path = f"/resource_providers/{provider['uuid']}/allocations"
            consumers |= set(self._get(path)["allocations"])
        for consumer in consumers:
            self._do("DELETE", f"/allocations/{consumer}")
        self._fell_trees()
        for name in self._custom_classes():
            self._do("DELETE", f"/resource_classes/{quote(name)}")
        for name in self._custom_traits():
            self._do("DELETE", f"/traits/{quote(name)}")
        for one in self._selections():
            self._do("DELETE", f"/dovetail/v1/classes/{quote(one['name'])}")

    def _fell_trees(self) -> None:
        """Leaves first, until nothing is left."""
        while providers := self._providers():
            parents = {one["parent_provider_uuid"] for one in providers}
            for provider in providers:
                if provider["uuid"] not in parents:
                    self._do("DELETE", f"/resource_providers/{provider['uuid']}")
