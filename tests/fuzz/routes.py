"""Every route and method, each with requests that are valid in the world as it is built.

Where the body of a request changed its shape over the versions, each shape has its own entry.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.fuzz.message import Headers, Message
from tests.fuzz.world import (
    AGGREGATE,
    BIG,
    CONSUMER,
    GENERATIONS,
    HOST,
    NEWCOMER,
    NUMA,
    POOL,
    SPARE,
    VERSION,
)

JSON = b"application/json"
NDJSON = b"application/x-ndjson"
Query = tuple[tuple[str, str], ...]


class Call(NamedTuple):
    """A valid request, before it is written down in bytes."""

    method: str
    path: str
    query: Query = ()
    body: Any = None
    version: str = VERSION

    @property
    def media_type(self) -> bytes:
        return NDJSON if self.path == FLEET else JSON

    def message(self) -> Message:
        return Message(
            self.method.encode(), self.target(self.query), self.headers(), self.payload()
        )

    def target(self, query: Query) -> bytes:
        return (self.path + ("?" + urlencode(query) if query else "")).encode()

    def headers(self) -> Headers:
        version = (b"OpenStack-API-Version", b"placement " + self.version.encode())
        common = ((b"X-Auth-Token", b"admin"), version)
        return common if self.body is None else (*common, (b"Content-Type", self.media_type))

    def payload(self) -> bytes | None:
        if self.body is None:
            return None
        lines = self.body if self.path == FLEET else [self.body]
        return b"\n".join(json.dumps(line).encode() for line in lines)


def _inventory(total: int, **rest: float) -> dict[str, float]:
    return {"total": total, "reserved": 0, "min_unit": 1, "step_size": 1, **rest}


def _generation(provider: str) -> dict[str, int]:
    return {"resource_provider_generation": GENERATIONS[provider]}


def _claim(resources: dict[str, int], **rest: object) -> dict[str, Any]:
    claim = {"allocations": {NUMA: {"resources": resources}}}
    return claim | {"project_id": "project", "user_id": "user"} | rest


def _new_claim(provider: str, resources: dict[str, int]) -> dict[str, Any]:
    claim = _claim({}, consumer_generation=None, consumer_type="INSTANCE")
    return claim | {"allocations": {provider: {"resources": resources}}}


FLEET = "/dovetail/v1/fleet"
LOADED = "a0000000-0000-4000-8000-000000000009"
ONE = f"/resource_providers/{HOST}"
NODE = f"/resource_providers/{NUMA}"
IDLE = f"/resource_providers/{SPARE}"

CLASSES = (
    Call("GET", "/resource_classes"),
    Call("POST", "/resource_classes", body={"name": "CUSTOM_NEW"}),
    Call("GET", "/resource_classes/CUSTOM_HELD"),
    Call("PUT", "/resource_classes/CUSTOM_NEW"),
    Call("PUT", "/resource_classes/CUSTOM_IDLE", body={"name": "CUSTOM_NEW"}, version="1.6"),
    Call("DELETE", "/resource_classes/CUSTOM_IDLE"),
)

PROVIDERS = (
    Call("GET", "/resource_providers"),
    Call(
        "GET",
        "/resource_providers",
        (
            ("name", "numa"),
            ("uuid", NUMA),
            ("in_tree", HOST),
            ("member_of", f"!in:{AGGREGATE}"),
            ("resources", "VCPU:1,CUSTOM_HELD:1"),
            ("required", "CUSTOM_WORN,!CUSTOM_LOOSE"),
        ),
    ),
    Call("POST", "/resource_providers", body={"name": "new", "parent_provider_uuid": HOST}),
    Call("POST", "/resource_providers", body={"name": "new", "uuid": NEWCOMER}, version="1.0"),
    Call("GET", ONE),
    Call("PUT", NODE, body={"name": "renamed", "parent_provider_uuid": POOL}),
    Call("PUT", NODE, body={"name": "renamed"}, version="1.0"),
    Call("DELETE", IDLE),
)

INVENTORIES = (
    Call("GET", f"{NODE}/inventories"),
    Call(
        "POST",
        f"{IDLE}/inventories",
        body={"resource_class": "VCPU", **_inventory(4), **_generation(SPARE)},
    ),
    Call(
        "PUT",
        f"{NODE}/inventories",
        body={
            "inventories": {
                "VCPU": _inventory(16, max_unit=8, allocation_ratio=1.5),
                "CUSTOM_HELD": _inventory(5),
            },
            **_generation(NUMA),
        },
    ),
    Call("DELETE", f"/resource_providers/{POOL}/inventories"),
    Call("GET", f"{NODE}/inventories/VCPU"),
    Call("PUT", f"{NODE}/inventories/VCPU", body=_inventory(16) | _generation(NUMA)),
    Call("DELETE", f"/resource_providers/{POOL}/inventories/DISK_GB"),
)

PARTS = (
    Call("GET", f"{NODE}/usages"),
    Call("GET", f"{NODE}/allocations"),
    Call("GET", f"{ONE}/aggregates"),
    Call("PUT", f"{ONE}/aggregates", body={"aggregates": [NEWCOMER], **_generation(HOST)}),
    Call("PUT", f"{ONE}/aggregates", body=[AGGREGATE, NEWCOMER], version="1.18"),
    Call("GET", f"{NODE}/traits"),
    Call("PUT", f"{NODE}/traits", body={"traits": ["CUSTOM_LOOSE"], **_generation(NUMA)}),
    Call("DELETE", f"{NODE}/traits"),
)

TRAITS = (
    Call("GET", "/traits"),
    Call("GET", "/traits", (("name", "startswith:CUSTOM_"), ("associated", "true"))),
    Call("GET", "/traits", (("name", "in:CUSTOM_WORN,CUSTOM_LOOSE"),)),
    Call("GET", "/traits/CUSTOM_WORN"),
    Call("PUT", "/traits/CUSTOM_NEW"),
    Call("DELETE", "/traits/CUSTOM_LOOSE"),
)

ALLOCATIONS = (
    Call("GET", f"/allocations/{CONSUMER}"),
    Call("PUT", f"/allocations/{NEWCOMER}", body=_new_claim(NUMA, {"VCPU": 2, "CUSTOM_HELD": 1})),
    Call(
        "PUT",
        f"/allocations/{CONSUMER}",
        body=_claim({"VCPU": 1}, consumer_generation=1),
        version="1.28",
    ),
    Call("PUT", f"/allocations/{NEWCOMER}", body=_claim({"VCPU": 1}), version="1.12"),
    Call(
        "PUT",
        f"/allocations/{NEWCOMER}",
        body={
            "allocations": [{"resource_provider": {"uuid": NUMA}, "resources": {"VCPU": 1}}],
            "project_id": "project",
            "user_id": "user",
        },
        version="1.8",
    ),
    Call(
        "PUT",
        f"/allocations/{NEWCOMER}",
        body={"allocations": [{"resource_provider": {"uuid": NUMA}, "resources": {"VCPU": 1}}]},
        version="1.0",
    ),
    Call("DELETE", f"/allocations/{CONSUMER}"),
    Call(
        "POST",
        "/allocations",
        body={
            NEWCOMER: _new_claim(POOL, {"DISK_GB": 5}),
            CONSUMER: _claim({"VCPU": 1}, consumer_generation=1, consumer_type="MIGRATION"),
        },
    ),
    Call("POST", "/allocations", body={NEWCOMER: _claim({"VCPU": 1})}, version="1.13"),
    Call("GET", "/usages", (("project_id", "project"), ("user_id", "user"))),
    Call("GET", "/usages", (("project_id", "project"), ("consumer_type", "INSTANCE"))),
)

CANDIDATES = (
    Call("GET", "/allocation_candidates", (("resources", "VCPU:1,MEMORY_MB:256,DISK_GB:1"),)),
    Call(
        "GET",
        "/allocation_candidates",
        (
            ("resources", "MEMORY_MB:256"),
            ("resources_CPU", "VCPU:1"),
            ("required_CPU", "in:CUSTOM_WORN,HW_NUMA_ROOT"),
            ("in_tree_CPU", HOST),
            ("resources_DISK", "DISK_GB:1"),
            ("member_of_DISK", f"in:{AGGREGATE}"),
            ("required_NODE", "HW_NUMA_ROOT,!CUSTOM_LOOSE"),
            ("same_subtree", "_CPU,_NODE"),
            ("root_required", "!CUSTOM_LOOSE"),
            ("group_policy", "none"),
            ("limit", "10"),
        ),
    ),
    Call(
        "GET", "/allocation_candidates", (("resources", "VCPU:1"), ("limit", "1")), version="1.16"
    ),
    Call(
        "GET",
        "/allocation_candidates",
        (
            ("resources_CPU", "VCPU:1"),
            ("attributes_CPU", 'Kind="numa",memory>=30G,!mig,Kind notin (a,b)'),
            ("class_CPU", BIG),
            ("resources", "CUSTOM_HELD:1"),
            ("attributes", "memory=30000M"),
        ),
    ),
)

MARKS = f"/dovetail/v1/providers/{NUMA}/attributes"
SELECTION = {
    "resourceSelector": [
        {
            "matchExpressions": [
                {"key": "Kind", "operator": "NotIn", "values": ["nic", "disk"]},
                {"key": "memory", "operator": "LtEq", "values": ["80G"]},
            ]
        }
    ],
    "singleDevice": True,
}
DEVICES = (
    Call("GET", MARKS),
    Call("PUT", MARKS, body={"attributes": {"memory": "80G", "ecc": ""}, **_generation(NUMA)}),
    Call("GET", "/dovetail/v1/classes"),
    Call("GET", f"/dovetail/v1/classes/{BIG}"),
    Call("PUT", "/dovetail/v1/classes/new.class", body={"spec": SELECTION}),
    Call(
        "PUT",
        "/dovetail/v1/classes/pair",
        body={"spec": {"members": [{"class": BIG, "count": 2}], "same": ["numa"]}},
    ),
    Call("DELETE", f"/dovetail/v1/classes/{BIG}"),
    Call("GET", "/dovetail/v1/devices"),
    Call("GET", "/dovetail/v1/devices", (("node", "host"),)),
    Call("GET", "/dovetail/v1/explain", (("resources_CPU", "VCPU:1"), ("class_CPU", BIG))),
)

RESHAPES = (
    Call(
        "POST",
        "/reshaper",
        body={
            "inventories": {
                NUMA: {"inventories": {"CUSTOM_HELD": _inventory(3)}, **_generation(NUMA)},
                SPARE: {"inventories": {"VCPU": _inventory(8)}, **_generation(SPARE)},
            },
            "allocations": {
                CONSUMER: {
                    "allocations": {
                        HOST: {"resources": {"MEMORY_MB": 512}},
                        NUMA: {"resources": {"CUSTOM_HELD": 1}},
                        SPARE: {"resources": {"VCPU": 2}},
                    },
                    "project_id": "project",
                    "user_id": "user",
                    "consumer_generation": 1,
                    "consumer_type": "INSTANCE",
                }
            },
        },
    ),
)

LOADS = (
    Call(
        "POST",
        FLEET,
        body=[
            {
                "name": "new",
                "uuid": LOADED,
                "traits": ["CUSTOM_NEW"],
                "attributes": {"memory": "80G"},
                "aggregates": [AGGREGATE],
                "inventories": {"MEMORY_MB": _inventory(1024), "CUSTOM_NEW": 2},
                "children": [{"name": "new-numa", "inventories": {"VCPU": 8}}],
            },
            {
                "consumer": NEWCOMER,
                "project_id": "project",
                "user_id": "user",
                "consumer_type": "INSTANCE",
                "allocations": {"new-numa": {"VCPU": 2}, LOADED: {"CUSTOM_NEW": 1}},
            },
        ],
    ),
)

PLACEMENT = (
    Call("GET", "/"),
    *CLASSES,
    *PROVIDERS,
    *INVENTORIES,
    *PARTS,
    *TRAITS,
    *ALLOCATIONS,
    *CANDIDATES,
    *RESHAPES,
)
CALLS = (*PLACEMENT, *LOADS, *DEVICES)
WITH_BODY = tuple(call for call in CALLS if call.body is not None)
CLAIMS = tuple(call for call in WITH_BODY if NEWCOMER in call.path and call.version == VERSION)
PATHS = tuple(dict.fromkeys(call.path for call in CALLS))
