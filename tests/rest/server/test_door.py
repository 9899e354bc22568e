"""A door is one package and one line: what one brings along, and what errors become in each."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import msgspec
import orjson
import pytest

from dovetail.core import errors as domain
from dovetail.core.errors import DovetailError
from dovetail.ledger import LedgerBusy
from dovetail.rest.doors import DOORS
from dovetail.rest.openapi.operations import TEXT, DoorDescription, Operation, an_object, ref
from dovetail.rest.server.door import Door, by_prefix, door_at
from dovetail.rest.server.errors import HttpError, RefusedRequest, bad_request
from dovetail.rest.server.http import Call, Reply, Version
from dovetail.rest.server.routing import Endpoint
from tests.rest.client import Client
from tests.rest.conftest import Make

# -- a toy door ----------------------------------------------------------------------------------


class ToyVersions:
    header: str | None = "toy-version"
    latest: str = "9"
    dated_since: Version = 99

    def negotiate(self, header: str | None) -> Version:
        if header is not None and not header.isdecimal():
            raise bad_request("a toy's version is a number")
        return int(header or 1)

    def answer(self, version: Version) -> str:
        return f"v{version}"

    def text(self, version: Version) -> str:
        return f"toy {version}"


async def shout(error: HttpError, request: RefusedRequest) -> Reply:
    body = orjson.dumps({"oops": error.message.upper(), "toy": request.version})
    return Reply(error.status, body, error.headers, content_type="application/toy+json")


class HeavyToy:
    """What the work for a request has in its hands."""


WEIGHTS: list[weakref.ref[HeavyToy]] = []


async def show(call: Call) -> Reply:
    """A toy."""
    if call.params["toy"] == "broken":
        raise domain.ProviderInUse
    if call.params["toy"] == "heavy":
        weight = HeavyToy()
        WEIGHTS.append(weakref.ref(weight))
        try:
            raise domain.ProviderInUse
        except domain.ProviderInUse as error:
            raise bad_request("too heavy") from error
    return call.json({"toy": call.params["toy"], "part": call.params.get("part")})


def describe() -> DoorDescription:
    return DoorDescription(
        about="toys",
        operations={
            ("GET", "/toys/{toy}"): Operation(summary="One toy.", answers={200: ref("Toy")})
        },
        schemas={"Toy": an_object({"toy": TEXT})},
        errors={"application/toy+json": {"schema": an_object({"oops": TEXT})}},
        path_parameters={"toy": TEXT, "part": TEXT},
        header_parameters=({"name": "toy-version", "in": "header", "schema": TEXT},),
    )


TOYS = Door(
    "/box/of",
    {
        "/toys/{toy}": {"GET": Endpoint(show, "toys:show", since=1)},
        "/toys/{toy}/{part}": {"GET": Endpoint(show, "toys:show", since=2)},
    },
    ToyVersions(),
    shout,
    describe,
    headers={"cache-control": "max-age=60"},
)


@pytest.fixture
def client(serve: Make) -> Client:
    return serve(doors=(*DOORS, TOYS))


def test_a_door_has_a_prefix_versions_and_headers_of_its_own(client: Client) -> None:
    reply = client.get("/box/of/toys/bear", toy_version="2")
    assert reply.json() == {"toy": "bear", "part": None}
    assert (reply.headers["toy-version"], reply.headers["vary"]) == ("v2", "toy-version")
    assert reply.headers["cache-control"] == "max-age=60"
    assert "openstack-api-version" not in reply.headers
    assert client.get("/box/of/toys/bear/left%2Fear", toy_version="2").json()["part"] == "left/ear"
    assert client.get("/box/of/toys/bear/ear", toy_version="1").status_code == 404


def test_a_refused_request_leaves_nothing_to_the_garbage_collector(client: Client) -> None:
    """Documents of megabytes would wait for a pass over all objects, and hold it up."""
    gc.disable()
    try:
        assert client.get("/box/of/toys/heavy", toy_version="1").status_code == 400
        assert [weight() for weight in WEIGHTS] == [None]
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("path", "version", "status", "words"),
    [
        ("/box/of/toys/broken", "1", 409, "RESOURCE PROVIDER HAS ALLOCATIONS."),
        ("/box/of/toys/bear", "new", 400, "A TOY'S VERSION IS A NUMBER"),
        ("/box/of/nothing", "1", 404, ""),
        ("/box/of/toys/bear?%00", "1", 400, "NUL CHARACTERS ARE NOT ALLOWED IN AN ADDRESS."),
    ],
)
def test_its_errors_have_a_shape_of_its_own(
    client: Client, path: str, version: str, status: int, words: str
) -> None:
    reply = client.get(path, toy_version=version)
    assert reply.status_code == status
    assert reply.headers["content-type"] == "application/toy+json"
    assert reply.json()["oops"] == words


def test_other_doors_are_as_they_were(client: Client) -> None:
    placement = client.get("/box")
    assert "errors" in placement.json()
    assert placement.headers["openstack-api-version"] == "placement 1.39"
    own = client.get("/dovetail/nothing")
    assert own.headers["content-type"] == "application/problem+json"


def test_the_policy_holds_in_it_too(client: Client) -> None:
    reply = client.get("/box/of/toys/bear", x_auth_token="reader")
    assert (reply.status_code, "TOYS:SHOW" in reply.json()["oops"]) == (403, True)


def test_pages_of_other_origins_may_send_its_version(serve: Make) -> None:
    client = serve(doors=(*DOORS, TOYS), cors_origin="https://toys.example")
    reply = client.call("OPTIONS", "/box/of/toys/bear", origin="https://toys.example")
    assert "toy-version" in reply.headers["access-control-allow-headers"]
    assert "toy-version" in reply.headers["access-control-expose-headers"]


def test_it_is_in_the_description(client: Client) -> None:
    found = client.get("/dovetail/v1/openapi.json").json()
    assert found["info"]["description"].startswith(
        "OpenStack Placement's API at its newest microversion, Dovetail's own, "
        "hardware intents over many clusters, and toys."
    )
    toy = found["paths"]["/box/of/toys/{toy}"]["get"]
    assert toy["responses"]["404"]["content"].keys() == {"application/toy+json"}
    assert [one["name"] for one in toy["parameters"]] == ["toy", "toy-version"]
    assert toy["tags"] == ["toys"]
    assert found["components"]["schemas"]["Toy"]["required"] == ["toy"]
    assert found["paths"]["/box/of/toys/{toy}/{part}"]["get"]["summary"] == "A toy."


def test_a_server_may_have_no_other_door(serve: Make) -> None:
    alone = serve(doors=[TOYS])
    assert alone.get("/box/of/toys/bear").status_code == 200
    assert alone.get("/livez").text == "ok\n"
    refused = alone.get("/resource_providers")
    assert (refused.status_code, refused.json()["status"]) == (404, 404)
    assert alone.get("/dovetail/v1/openapi.json").json()["paths"].keys() >= {"/livez"}


def test_a_path_leads_to_the_door_with_the_longest_prefix() -> None:
    short, long = (msgspec.structs.replace(TOYS, prefix=prefix) for prefix in ("/box", "/box/of"))
    doors = by_prefix((*DOORS, short, long))
    assert door_at(doors, "/box/of/toys") is long
    assert door_at(doors, "/box/off") is short
    assert door_at(doors, "/boxes") is DOORS[0]


def test_routes_may_be_there_without_the_prefix_too(serve: Make) -> None:
    door = msgspec.structs.replace(TOYS, aliases=("/toys",))
    client = serve(doors=(*DOORS, door))
    for path in ("/toys/bear", "/box/of/toys/bear"):
        assert client.get(path, toy_version="2").json()["toy"] == "bear"
    refused = client.get("/toys/broken", toy_version="1")
    assert (refused.status_code, refused.headers["content-type"]) == (409, "application/toy+json")
    # What only begins alike is another door's.
    assert client.get("/toyshop").headers["content-type"] == "application/json"


# -- errors of the domain in each door -----------------------------------------------------------

MADE_WITH: dict[type[DovetailError], tuple[Any, ...]] = {
    domain.ProviderNotFound: ("some",),
    domain.ClassNotFound: ("VCPU",),
    domain.TraitNotFound: (["HW_A"],),
    domain.InventoryNotFound: ("VCPU",),
    domain.ProviderExists: ({"name": "host"},),
    domain.ClassExists: ("VCPU",),
    domain.InventoryInUse: (["VCPU"], "host"),
    domain.TraitInUse: ("HW_A",),
    domain.ClassInUse: ("VCPU",),
    domain.Refused: ("VCPU", "host"),
    domain.NoInventory: ("VCPU", "host"),
    domain.UnitsViolated: ("VCPU", "host"),
    domain.CapacityExceeded: ("VCPU", "host"),
    domain.BadFleet: (1, "$", "wrong"),
}


def tree(root: type[DovetailError]) -> Iterator[type[DovetailError]]:
    """All of core/errors below it."""
    for kind in root.__subclasses__():
        if kind.__module__ == domain.__name__:
            yield kind
        yield from tree(kind)


def raised(kind: type[DovetailError]) -> DovetailError:
    if kind is domain.BadCapacity:
        return domain.BadCapacity("VCPU", "host", equal_is_bad=True)
    return kind(*MADE_WITH.get(kind, ()))


ERRORS = sorted(set(tree(DovetailError)), key=lambda kind: kind.__name__)
SHAPES = {
    "": "application/json",
    "/dovetail": "application/problem+json",
    "/v2": "application/problem+json",
    "/console": "application/problem+json",
}


def with_route(door: Door, error: Exception) -> Door:
    async def fail(_call: Call) -> Reply:
        raise error

    routes = {**door.routes, "/v1/failing": {"GET": Endpoint(fail, gives_json=True)}}
    return msgspec.structs.replace(door, routes=routes)


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_of_the_domain_is_answered_in_every_door(
    serve: Make, kind: type[DovetailError]
) -> None:
    error = raised(kind)
    client = serve(doors=[with_route(door, error) for door in DOORS])
    for door in DOORS:
        reply = client.get(f"{door.prefix}/v1/failing")
        assert 400 <= reply.status_code < 500, kind
        assert reply.headers["content-type"] == SHAPES[door.prefix]
        told = reply.json()
        detail = told["errors"][0]["detail"] if "errors" in told else told["detail"]
        assert str(error) in detail


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (domain.StaleGeneration("old"), "placement.concurrent_update"),
        (domain.ProviderInUse(), "placement.resource_provider.inuse"),
        (domain.ProviderIsParent(), "placement.resource_provider.cannot_delete_parent"),
        (domain.InventoryInUse(["VCPU"], "host"), "placement.inventory.inuse"),
        (domain.ProviderExists({"name": "host"}), "placement.duplicate_name"),
        (domain.UnitsViolated("VCPU", "host"), "placement.undefined_code"),
    ],
)
def test_placement_has_codes_for_them(serve: Make, error: DovetailError, code: str) -> None:
    client = serve(doors=[with_route(DOORS[0], error)])
    (told,) = client.get("/v1/failing").json()["errors"]
    assert (told["status"], told["code"]) == (409, code)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.prefix)
@pytest.mark.parametrize(
    ("error", "status"), [(LedgerBusy("away"), 503), (RuntimeError("bug"), 500)]
)
def test_what_is_our_fault_is_told_as_such(
    serve: Make, door: Door, error: Exception, status: int
) -> None:
    reply = serve(doors=[with_route(door, error)]).get(f"{door.prefix}/v1/failing")
    assert reply.status_code == status
    assert str(error) not in reply.text
