"""Limits on what one request may cost."""

from __future__ import annotations

import httpx2
import pytest

from dovetail.rest.server.settings import RequestLimits
from dovetail.service import asking as candidates
from tests.rest.client import Client
from tests.rest.conftest import Make
from tests.rest.fleets import NDJSON, load, tree, uid


def test_a_body_that_is_too_large(serve: Make) -> None:
    client = serve(limits=RequestLimits(body_bytes=100))
    reply = client.call("POST", "/resource_providers", {"name": "x" * 150})
    assert reply.status_code == 413
    assert "100 bytes" in reply.json()["errors"][0]["detail"]


def test_a_fleet_that_is_too_large(serve: Make) -> None:
    client = serve(limits=RequestLimits(fleet_bytes=10))
    reply = client.call("POST", "/dovetail/v1/fleet", b'{"name": "some host"}', content_type=NDJSON)
    assert reply.status_code == 413
    assert reply.headers["content-type"] == "application/problem+json"


def test_a_query_that_is_too_long(serve: Make) -> None:
    client = serve(limits=RequestLimits(query_bytes=50))
    assert client.get(f"/resource_providers?name={'x' * 60}").status_code == 414


def test_an_answer_that_is_too_large(serve: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time alone does not bound memory: a second of answers is a hundred megabytes."""
    monkeypatch.setattr(candidates, "MOST_CANDIDATES", 500)
    client = serve()
    load(client, tree("host", *(tree(f"gpu{n}", inventories={"VGPU": 8}) for n in range(32))))
    query = "/allocation_candidates?resources1=VGPU:1&resources2=VGPU:1"
    reply = client.get(query)
    assert reply.status_code == 400
    assert "more than 500 allocation candidates" in reply.json()["errors"][0]["detail"]
    assert len(client.get(f"{query}&limit=400").json()["allocation_requests"]) == 400


def test_an_answer_that_takes_too_long(serve: Make) -> None:
    """Eight groups on sixteen equal devices have half a billion answers."""
    client = serve(limits=RequestLimits(search_seconds=0.1))
    devices = [tree(f"gpu{n}", inventories={"VGPU": 8}) for n in range(16)]
    load(client, tree("host", *devices))
    query = "&".join(f"resources{n}=VGPU:1" for n in range(1, 9))
    reply = client.get(f"/allocation_candidates?{query}&group_policy=isolate")
    assert reply.status_code == 400
    assert "ask for fewer with `limit`" in reply.json()["errors"][0]["detail"]
    limited = client.get(f"/allocation_candidates?{query}&group_policy=isolate&limit=5")
    assert len(limited.json()["allocation_requests"]) == 5


def groups(count: int) -> str:
    return "&".join(f"resources{n}=VCPU:1" for n in range(1, count + 1)) + "&group_policy=none"


def detail(reply: httpx2.Response) -> str:
    """The message, in the words of either door."""
    body = reply.json()
    return str(body["errors"][0]["detail"] if "errors" in body else body["detail"])


def asked_everywhere(client: Client, query: str) -> dict[str, httpx2.Response]:
    """The answers of all that take such queries."""
    return {
        "candidates": client.get(f"/allocation_candidates?{query}"),
        "explain": client.get(f"/dovetail/v1/explain?{query}"),
        "whatif": client.call("POST", "/dovetail/v1/whatif", {"query": query}),
        "claims": client.call("POST", "/dovetail/v1/claims", {"query": query}),
    }


@pytest.fixture
def with_a_host(serve: Make) -> Client:
    client = serve()
    load(client, tree("host", inventories={"VCPU": 2000}))
    return client


def test_more_groups_than_are_answered(with_a_host: Client) -> None:
    for door, reply in asked_everywhere(with_a_host, groups(1400)).items():
        assert reply.status_code == 400, door
        assert "more than 100 groups" in detail(reply), door
        assert "`resources101`" in detail(reply), door
        assert "max.groups" in detail(reply), door
    refused = with_a_host.get(f"/allocation_candidates?{groups(101)}").json()["errors"][0]
    assert refused["code"] == "placement.query.bad_value"


def test_as_many_groups_as_are_answered(with_a_host: Client) -> None:
    for door, reply in asked_everywhere(with_a_host, f"{groups(100)}&limit=1").items():
        assert reply.status_code in {200, 201}, (door, reply.text)


def test_how_many_groups_are_answered_is_set(serve: Make) -> None:
    client = serve(limits=RequestLimits(groups=2))
    load(client, tree("host", inventories={"VCPU": 8}))
    assert client.get(f"/allocation_candidates?{groups(2)}").status_code == 200
    for reply in asked_everywhere(client, groups(3)).values():
        assert reply.status_code == 400
        assert "more than 2 groups" in detail(reply)


def test_a_group_is_counted_once_however_much_is_said_of_it(serve: Make) -> None:
    client = serve(limits=RequestLimits(groups=2))
    load(client, tree("host", inventories={"VCPU": 8}, traits=["HW_NUMA_ROOT"]))
    query = f"resources=VCPU:1&required=HW_NUMA_ROOT&in_tree={uid('host')}&resources_A=VCPU:1"
    assert client.get(f"/allocation_candidates?{query}").status_code == 200


def test_more_affinities_than_are_answered(with_a_host: Client) -> None:
    query = "resources_A=VCPU:1&resources_B=VCPU:1&" + "&".join(["same_subtree=_A,_B"] * 101)
    for reply in asked_everywhere(with_a_host, query).values():
        assert reply.status_code == 400
        assert "more than 100 `same_subtree`" in detail(reply)


@pytest.mark.parametrize(
    "path", ["/allocation_candidates?resources=VCPU:1&", "/resource_providers?"]
)
def test_more_demands_on_one_group_than_are_answered(with_a_host: Client, path: str) -> None:
    """SQLite refuses statements with a thousand conditions; that was a 500."""
    names = [f"CUSTOM_{n}" for n in range(2400)]
    load(with_a_host, tree("other", inventories={"VCPU": 1}, traits=names))
    for many in (
        f"required={','.join(names)}",
        "&".join(f"member_of={uid(str(n))}" for n in range(600)),
    ):
        reply = with_a_host.get(f"{path}{many}")
        assert reply.status_code == 400
        assert "at most 100 are answered" in detail(reply)
    # What is said twice, and alternatives, are no further demands.
    again = f"required={','.join(['CUSTOM_1'] * 2400)}"
    assert with_a_host.get(f"{path}{again}").status_code == 200
    assert with_a_host.get(f"{path}required=in:{','.join(names)}").status_code == 200


def test_more_resource_classes_than_are_answered(with_a_host: Client) -> None:
    many = ",".join(f"CUSTOM_{n}:1" for n in range(2000))
    for path in (
        f"/allocation_candidates?resources={many}",
        f"/resource_providers?resources={many}",
    ):
        reply = with_a_host.get(path)
        assert reply.status_code == 400
        assert "`resources` demands 2000 things at once" in detail(reply)


def test_a_query_in_a_body_is_no_longer_than_one_in_an_address(with_a_host: Client) -> None:
    query = "resources=VCPU:1&" * 2000
    for path in ("/dovetail/v1/whatif", "/dovetail/v1/claims"):
        reply = with_a_host.call("POST", path, {"query": query})
        assert reply.status_code == 400
        assert "`query` has 34000 characters; at most 32768 are read" in detail(reply)


def test_what_is_too_long_to_be_good_is_refused_before_it_is_looked_at(client: Client) -> None:
    load(client, tree("host"))
    attributes = {"attributes": {"k": "v" * 3_000_000}, "resource_provider_generation": 0}
    path = f"/dovetail/v1/providers/{uid('host')}/attributes"
    assert client.call("PUT", path, attributes).status_code == 413
    of_class = {"spec": {"resourceSelector": ["x" * 300_000]}}
    assert client.call("PUT", "/dovetail/v1/classes/c", of_class).status_code == 413
    line = b'{"name": "%s"}' % (b"x" * (9 * 2**20))
    reply = client.call("POST", "/dovetail/v1/fleet", line, content_type=NDJSON)
    assert reply.status_code == 400
    assert reply.json()["detail"].startswith("line 1: is longer than 4194304 bytes")


NESTED = b'{"a":' * 2000 + b"1" + b"}" * 2000
BOMBS = {
    "nested": NESTED,
    "nested and long": NESTED + b" " * 100_000,
    "huge number": b'{"query":1e400,"name":%s}' % (b"9" * 5000),
    "one key again and again": b'{%s"a":1}' % (b'"a":1,' * 50_000),
    "no JSON": b"\x1f\x8b\x08" + b"\0" * 1000,
    "half a character": b'{"name":"\xc3"}',
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/resource_providers"),
        ("PUT", f"/resource_providers/{uid('host')}/inventories"),
        ("PUT", f"/resource_providers/{uid('host')}/aggregates"),
        ("PUT", f"/resource_providers/{uid('host')}/traits"),
        ("PUT", f"/allocations/{uid('c')}"),
        ("POST", "/allocations"),
        ("POST", "/reshaper"),
        ("POST", "/dovetail/v1/whatif"),
        ("POST", "/dovetail/v1/claims"),
        ("POST", "/dovetail/v1/names"),
        ("PUT", f"/dovetail/v1/providers/{uid('host')}/attributes"),
        ("PUT", "/dovetail/v1/classes/c"),
        ("POST", "/v2/projects"),
    ],
)
def test_bodies_that_break_parsers_are_refused(
    client: Client, method: str, path: str, bomb: str
) -> None:
    load(client, tree("host"))
    reply = client.call(method, path, BOMBS[bomb], content_type="application/json")
    assert reply.status_code in {400, 413, 422}, reply.text
    zipped = client.call(
        method, path, BOMBS["no JSON"], content_type="application/json", content_encoding="gzip"
    )
    assert zipped.status_code in {400, 415, 422}, zipped.text


def test_more_traits_than_a_statement_takes_parameters(with_a_host: Client) -> None:
    """SQLite takes 250,000 at most, and a body of 8 MB names more."""
    (host,) = with_a_host.get("/resource_providers").json()["resource_providers"]
    names = [f"CUSTOM_{n}" for n in range(260_000)]
    reply = with_a_host.call(
        "PUT",
        f"/resource_providers/{host['uuid']}/traits",
        {"resource_provider_generation": host["generation"], "traits": names},
    )
    assert reply.status_code == 400
    assert "No such trait" in detail(reply)
