"""Dovetail's own listings (fleet, names, totals, audit) and who may see them."""

from __future__ import annotations

import json

import pytest

from tests.rest.client import Client
from tests.rest.conftest import Make
from tests.rest.fleets import load, numa_hosts, uid

CONSUMER = {
    "consumer": uid("vm"),
    "project_id": "blue",
    "user_id": "me",
    "allocations": {"h0n0": {"VCPU": 2}},
}


def test_the_fleet_comes_as_it_was_loaded(client: Client) -> None:
    load(client, *numa_hosts(3), CONSUMER)
    reply = client.get("/dovetail/v1/fleet")
    assert reply.headers["content-type"] == "application/x-ndjson"
    assert int(reply.headers["content-length"]) == len(reply.content)
    *hosts, consumer = map(json.loads, reply.text.splitlines())
    assert [host["name"] for host in hosts] == ["h0", "h1", "h2"]
    assert consumer == CONSUMER
    some = client.get(f"/dovetail/v1/fleet?tree=h2&tree={uid('h1n0')}").text.splitlines()
    assert [json.loads(line)["name"] for line in some] == ["h1", "h2"]


def test_an_empty_ledger_is_an_empty_fleet(client: Client) -> None:
    reply = client.get("/dovetail/v1/fleet")
    assert (reply.status_code, reply.content) == (200, b"")


def test_names_are_found_by_name_and_by_uuid(client: Client) -> None:
    load(client, *numa_hosts(1))
    asked = ["h0n0", uid("h0"), "nowhere"]
    found = client.call("POST", "/dovetail/v1/names", {"providers": asked}).json()["providers"]
    assert found == {
        "h0n0": {"name": "h0n0", "uuid": uid("h0n0"), "host": "h0", "host_uuid": uid("h0")},
        uid("h0"): {"name": "h0", "uuid": uid("h0"), "host": "h0", "host_uuid": uid("h0")},
    }


def test_totals_of_the_fleet_and_of_a_host(client: Client) -> None:
    load(client, *numa_hosts(3), CONSUMER)
    vcpu = client.get("/dovetail/v1/usage").json()["classes"]["VCPU"]
    assert vcpu == {"providers": 6, "capacity": 48, "used": 2, "free": 46, "largest": 8}
    host = client.get("/dovetail/v1/usage?tree=h0").json()["classes"]["VCPU"]
    assert host == {"providers": 2, "capacity": 16, "used": 2, "free": 14, "largest": 8}


def test_an_audit_of_a_sound_ledger(client: Client) -> None:
    load(client, *numa_hosts(1), CONSUMER)
    counts = {"providers": 11, "inventories": 11, "consumers": 1, "allocations": 1}
    assert client.get("/dovetail/v1/audit").json() == {"checked": counts, "faults": []}
    healed = client.call("POST", "/dovetail/v1/audit")
    assert healed.json() == {"checked": counts, "healed": [], "faults": []}


@pytest.mark.parametrize(
    ("path", "body", "status", "complaint"),
    [
        ("fleet?tree=nowhere", None, 404, "'nowhere'"),
        ("fleet?host=h0", None, 400, "no parameter 'host'"),
        ("usage?tree=nowhere", None, 404, "'nowhere'"),
        ("usage?x=1", None, 400, "no parameter 'x'"),
        ("names", {"provider": ["x"]}, 400, "provider"),
        ("names", {"providers": [1]}, 400, "$.providers[0]"),
        ("audit?fix=1", None, 400, "no parameter 'fix'"),
    ],
)
def test_what_is_not_understood_is_told(
    client: Client, path: str, body: object, status: int, complaint: str
) -> None:
    reply = client.call("GET" if body is None else "POST", f"/dovetail/v1/{path}", body)
    assert reply.status_code == status
    assert reply.headers["content-type"] == "application/problem+json"
    assert complaint in reply.json()["detail"]


@pytest.mark.parametrize(
    ("roles", "may_look", "may_heal"),
    [("admin", True, True), ("service", True, False), ("reader", False, False)],
)
def test_who_may_look_and_who_may_heal(
    serve: Make, roles: str, may_look: bool, may_heal: bool
) -> None:
    client = serve("secure")
    for path in ("fleet", "usage", "audit"):
        looked = client.get(f"/dovetail/v1/{path}", x_roles=roles)
        assert looked.status_code == (200 if may_look else 403)
    healed = client.call("POST", "/dovetail/v1/audit", x_roles=roles)
    assert healed.status_code == (200 if may_heal else 403)
