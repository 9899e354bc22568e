"""The description of the server: complete, sound, and true of what the server does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.config import (
    CoveragePhaseConfig,
    GenerationConfig,
    PhasesConfig,
    ProjectConfig,
    ProjectsConfig,
    SchemathesisConfig,
)
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.specs.openapi.schemas import OpenApiSchema

from dovetail.core.explanation import Explanation
from dovetail.rest.doors import DOORS
from dovetail.rest.dovetail.door import DOVETAIL
from dovetail.rest.dovetail.fleet import MEDIA
from dovetail.rest.intents.door import INTENTS
from dovetail.rest.openapi.document import document, part_of
from dovetail.rest.server.site import server_door
from tests.rest.client import Client
from tests.rest.conftest import Make
from tests.support import server

PATH = "/dovetail/v1/openapi.json"
EXAMPLES = 12
HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}
CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
HOST = "6a1b5d6c-7f0e-4c6e-9d0a-0c4c2f9c1110"
CONSUMER = "6a1b5d6c-7f0e-4c6e-9d0a-0c4c2f9c1111"
BARE = "6a1b5d6c-7f0e-4c6e-9d0a-0c4c2f9c1112"
ASKED = "resources=CUSTOM_A:1"
RESHAPED = {"resource_provider_generation": 2}
STOCKED = {"resource_provider_generation": 0, "inventories": {"CUSTOM_A": {"total": 1}}}
API_DOORS = tuple(door for door in DOORS if door.describe is not None)
ALL_DOORS = (*API_DOORS, server_door(DOORS))
ALL_ROUTES = {path: methods for door in ALL_DOORS for path, methods in door.mounted().items()}
DOORS_HERE = tuple(door for door in API_DOORS if door is not INTENTS)
"""Those whose story is told here; tests/rest/intents has that of hardware intents."""
ROUTES_HERE = {
    path: methods
    for door in (*DOORS_HERE, ALL_DOORS[-1])
    for path, methods in door.mounted().items()
}


def test_every_route_is_described() -> None:
    """If not: describe it in the openapi.py of its door."""
    for door in ALL_DOORS:
        routes = {(method, path) for path, methods in door.routes.items() for method in methods}
        described = set(part_of(door).operations)
        assert routes - described == set()
        assert described - routes == set()


def test_everybody_may_read_it(serve: Make) -> None:
    answer = serve(policy="secure").get(PATH, x_auth_token="")
    assert answer.status_code == 200
    assert answer.json()["openapi"] == "3.1.0"


def test_it_describes_what_the_route_table_has(client: Client) -> None:
    described = client.get(PATH).json()["paths"]
    assert {path: set(methods) for path, methods in described.items()} == {
        path: {method.lower() for method in methods} for path, methods in ALL_ROUTES.items()
    }


def test_operations_have_names_of_their_own(client: Client) -> None:
    found = client.get(PATH).json()["paths"]
    names = [operation["operationId"] for path in found.values() for operation in path.values()]
    assert sorted(set(names)) == sorted(names)


def test_schemas_are_called_what_they_are_published_as(client: Client) -> None:
    """Whatever the classes are called inside: clients are made from these names."""
    document = client.get(PATH)
    schemas = document.json()["components"]["schemas"]
    assert schemas.keys() >= {"Line", "Fault", "Findings", "Total", "Question", "Wanted", "Asked"}
    assert {schema.get("title", name) == name for name, schema in schemas.items()} == {True}
    referred = set(re.findall(r"#/components/schemas/(\w+)", document.text))
    assert referred <= schemas.keys()


def test_a_route_that_nobody_described_is_there_all_the_same() -> None:
    routes = {"/v1/new": {"GET": DOVETAIL.routes["/v1/audit"]["GET"]}}
    door = msgspec.structs.replace(DOVETAIL, routes=routes)
    found = document([door], server_door([door]))["paths"]["/dovetail/v1/new"]["get"]
    assert found["summary"].startswith("/dovetail/v1/audit: is the ledger sound?")


def test_explanations_are_described_by_the_shape_that_all_finders_fill(client: Client) -> None:
    found = client.get(PATH).json()
    schemas = found["components"]["schemas"]
    _, components = msgspec.json.schema_components(
        [Explanation], ref_template="#/components/schemas/{name}"
    )
    assert {name: schemas[name] for name in components} == components
    answer = found["paths"]["/dovetail/v1/explain"]["get"]["responses"]["200"]
    (content,) = answer["content"].values()
    assert content["schema"] == {"$ref": "#/components/schemas/Explanation"}


# -- true of a server with a fleet ---------------------------------------------------------------


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with the demo fleet."""
    directory: Path = tmp_path_factory.mktemp("openapi")
    database = f"sqlite:///{directory}/ledger.db"
    with server.dovetail(database, directory / "server.log") as started:
        fleet = (resources.files("dovetail.cli.run") / "demo_fleet.jsonl").read_bytes()
        media = {**HEADERS, "content-type": "application/x-ndjson"}
        loaded = httpx2.post(f"{started.url}/dovetail/v1/fleet", content=fleet, headers=media)
        assert loaded.status_code == 200
        yield started.url


@pytest.fixture(scope="module")
def known(live: str) -> dict[str, str]:
    """Names of things that are there, by the parameter that takes them."""
    found = httpx2.get(f"{live}/resource_providers?name=rack1-host1_numa0", headers=HEADERS)
    return {
        "uuid": found.json()["resource_providers"][0]["uuid"],
        "resource_class": "VCPU",
        "name": "CUSTOM_THERE",
        "class_name": "all.gpus",
        "consumer_uuid": CONSUMER,
        "consumer": CONSUMER,
        "host": "rack1-host1",
    }


@schemathesis.serializer("application/x-ndjson")
def as_lines(_context: schemathesis.SerializationContext, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


def described() -> OpenApiSchema:
    generation = GenerationConfig(max_examples=EXAMPLES, deterministic=True, database="none")
    phases = PhasesConfig(coverage=CoveragePhaseConfig(enabled=False))
    project = ProjectConfig(generation=generation, phases=phases)
    config = SchemathesisConfig(projects=ProjectsConfig(default=project))
    return schemathesis.openapi.from_dict(document(DOORS_HERE, ALL_DOORS[-1]), config=config)


STREAMS = frozenset({"/dovetail/v1/map/events"})
"""They do not end by themselves: tests of their own read them."""
DESCRIBED = described()


def claim(amount: int) -> dict[str, Any]:
    return {
        "allocations": {HOST: {"resources": {"CUSTOM_A": amount}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_type": "INSTANCE",
        "consumer_generation": None,
    }


def stock(generation: int) -> dict[str, Any]:
    return {"resource_provider_generation": generation, "total": 9}


AT_HOST = f"/resource_providers/{HOST}"
OWN_HOST = f"/dovetail/v1/providers/{HOST}"
AFTER_CLAIMS = {"resource_provider_generation": 7}
GPUS = {
    "resourceSelector": [
        {"matchExpressions": [{"key": "Kind", "operator": "In", "values": ["gpu"]}]}
    ]
}
STORY: list[tuple[str, str, Any]] = [
    ("GET", "/", None),
    ("GET", "/livez", None),
    ("GET", "/readyz", None),
    ("GET", "/metrics", None),
    ("GET", PATH, None),
    ("POST", "/resource_classes", {"name": "CUSTOM_A"}),
    ("PUT", "/resource_classes/CUSTOM_B", None),
    ("GET", "/resource_classes/CUSTOM_B", None),
    ("DELETE", "/resource_classes/CUSTOM_B", None),
    ("GET", "/resource_classes", None),
    ("PUT", "/traits/CUSTOM_T", None),
    ("GET", "/traits/CUSTOM_T", None),
    ("POST", "/resource_providers", {"name": "told", "uuid": HOST}),
    ("PUT", AT_HOST, {"name": "told again"}),
    ("GET", AT_HOST, None),
    ("GET", "/resource_providers", None),
    ("POST", f"{AT_HOST}/inventories", {"resource_class": "CUSTOM_A", "total": 5}),
    ("PUT", f"{AT_HOST}/inventories/CUSTOM_A", stock(1)),
    ("GET", f"{AT_HOST}/inventories/CUSTOM_A", None),
    ("GET", f"{AT_HOST}/inventories", None),
    ("PUT", f"{AT_HOST}/traits", {"traits": ["CUSTOM_T"], "resource_provider_generation": 2}),
    ("GET", f"{AT_HOST}/traits", None),
    ("GET", "/traits?name=startswith:CUSTOM", None),
    ("PUT", f"{AT_HOST}/aggregates", {"aggregates": [HOST], "resource_provider_generation": 3}),
    ("GET", f"{AT_HOST}/aggregates", None),
    ("GET", "/allocation_candidates?resources=CUSTOM_A:1", None),
    ("GET", "/allocation_candidates?resources=CUSTOM_A:1&rank=pack&scores=1", None),
    ("PUT", f"/allocations/{CONSUMER}", claim(2)),
    ("GET", f"/allocations/{CONSUMER}", None),
    ("GET", f"{AT_HOST}/allocations", None),
    ("GET", f"{AT_HOST}/usages", None),
    ("GET", "/usages?project_id=p", None),
    ("GET", "/dovetail/v1/map", None),
    ("GET", "/dovetail/v1/map/holders", None),
    ("GET", f"/dovetail/v1/hosts/{HOST}", None),
    ("GET", "/dovetail/v1/consumers?limit=1&project=p", None),
    ("GET", f"/dovetail/v1/consumers/{CONSUMER}", None),
    ("DELETE", f"/allocations/{CONSUMER}", None),
    ("GET", f"/allocations/{CONSUMER}", None),
    ("POST", "/allocations", {CONSUMER: claim(1)}),
    ("DELETE", f"/allocations/{CONSUMER}", None),
    ("POST", "/dovetail/v1/claims", {"query": ASKED, "project_id": "p", "user_id": "u"}),
    ("GET", "/dovetail/v1/decisions", None),
    ("GET", f"/dovetail/v1/explain?{ASKED}&host=told%20again", None),
    ("GET", "/dovetail/v1/explain?resources=CUSTOM_A:100", None),
    ("GET", "/dovetail/v1/explain/hosts?resources=CUSTOM_A:100", None),
    ("POST", "/dovetail/v1/whatif", {"query": ASKED, "drain": [HOST]}),
    ("POST", "/dovetail/v1/whatif", {"query": f"{ASKED}&rank=pack&scores=1"}),
    ("POST", "/dovetail/v1/names", {"providers": ["told again"]}),
    ("GET", "/dovetail/v1/usage", None),
    ("GET", f"{OWN_HOST}/attributes", None),
    ("PUT", f"{OWN_HOST}/attributes", {"attributes": {"Kind": "gpu"}, **AFTER_CLAIMS}),
    ("PUT", "/dovetail/v1/classes/all.gpus", {"spec": GPUS}),
    ("GET", "/dovetail/v1/classes/all.gpus", None),
    ("GET", "/allocation_candidates?resources_G=CUSTOM_A:1&class_G=all.gpus", None),
    ("GET", "/dovetail/v1/classes", None),
    ("GET", "/dovetail/v1/classes/availability", None),
    ("GET", "/dovetail/v1/machines", None),
    ("GET", "/dovetail/v1/intents", None),
    ("DELETE", "/dovetail/v1/classes/all.gpus", None),
    ("GET", "/dovetail/v1/devices", None),
    ("GET", "/dovetail/v1/audit", None),
    ("POST", "/dovetail/v1/audit", None),
    ("GET", "/dovetail/v1/fleet?tree=told%20again", None),
    ("POST", "/dovetail/v1/fleet", b'{"name": "loaded"}'),
    ("POST", "/resource_providers", {"name": "bare", "uuid": BARE}),
    ("POST", "/reshaper", {"inventories": {BARE: STOCKED}, "allocations": {}}),
    ("PUT", f"/resource_providers/{BARE}/inventories", {**STOCKED, **RESHAPED}),
    ("DELETE", f"/resource_providers/{BARE}/inventories/CUSTOM_A", None),
    ("DELETE", f"/resource_providers/{BARE}/inventories", None),
    ("DELETE", f"/resource_providers/{BARE}", None),
    ("DELETE", f"{AT_HOST}/traits", None),
    ("DELETE", "/traits/CUSTOM_T", None),
]


def test_every_operation_succeeds_as_described(live: str) -> None:
    unseen = {
        (method, path)
        for path, methods in ROUTES_HERE.items()
        if path not in STREAMS
        for method in methods
    }
    with httpx2.Client(base_url=live) as http:
        for method, path, body in STORY:
            lines = {"content": body} if isinstance(body, bytes) else {"json": body}
            media = {"content-type": MEDIA[0]} if isinstance(body, bytes) else {}
            answer = http.request(method, path, headers={**HEADERS, **media}, **lines)
            assert answer.is_success, (method, path, answer.text)
            operation = DESCRIBED.find_operation_by_path(method, path.partition("?")[0])
            assert operation is not None
            operation.validate_response(answer)
            unseen.discard((operation.method.upper(), operation.path))
    assert unseen == set()


@DESCRIBED.exclude(path=[*STREAMS]).parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_what_is_answered_is_described(case: Case[Any], live: str, known: dict[str, str]) -> None:
    # The description is that of the newest version: other answers are for others.
    case.headers = HEADERS  # type: ignore[assignment]
    case.call_and_validate(base_url=live, checks=CHECKS)
    if case.path_parameters:
        case.path_parameters = {name: known[name] for name in case.path_parameters}
        case.call_and_validate(base_url=live, checks=CHECKS)
