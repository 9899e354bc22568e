"""Who holds what: consumers newest first, by page and by filter, and on the map."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rest.client import Client
from tests.rest.fleets import load, numa_hosts, uid

CONSUMERS = "/dovetail/v1/consumers"
HOSTILE = "<b>\u202e\U0001f600" + "y" * 200


def claim(client: Client, name: str, where: dict[str, dict[str, int]], **owner: str) -> None:
    body = {
        "allocations": {uid(each): {"resources": has} for each, has in where.items()},
        "project_id": owner.get("project", "lab"),
        "user_id": owner.get("user", "mia"),
        "consumer_generation": None,
        "consumer_type": owner.get("kind", "INSTANCE"),
    }
    answer = client.call("PUT", f"/allocations/{uid(name)}", body)
    assert answer.status_code == 204, answer.text


@pytest.fixture
def held(client: Client) -> Client:
    load(client, *numa_hosts(2))
    claim(client, "a", {"h0n0": {"VCPU": 4, "MEMORY_MB": 64}, "h0": {"DISK_GB": 5}})
    claim(client, "b", {"h0n1": {"VCPU": 2}}, project="web", user="joe", kind="POD")
    claim(client, "c", {"h1n1": {"VCPU": 2}}, project=HOSTILE, user="100%_")
    return client


def listed(client: Client, **query: Any) -> list[str]:
    text = "&".join(f"{key}={value}" for key, value in query.items())
    answer = client.get(f"{CONSUMERS}?{text}")
    assert answer.status_code == 200, answer.text
    return [each["uuid"] for each in answer.json()["consumers"]]


def test_a_holder_is_told_with_what_it_holds_and_where(held: Client) -> None:
    found = held.get(f"{CONSUMERS}/{uid('a')}").json()
    assert found.pop("since").endswith("Z")
    assert found == {
        "uuid": uid("a"),
        "pod": None,
        "type": "INSTANCE",
        "project": "lab",
        "user": "mia",
        "generation": 1,
        "holds": [
            {
                "provider": uid("h0"),
                "name": "h0",
                "host": "h0",
                "host_uuid": uid("h0"),
                "resources": {"DISK_GB": 5},
            },
            {
                "provider": uid("h0n0"),
                "name": "h0n0",
                "host": "h0",
                "host_uuid": uid("h0"),
                "resources": {"VCPU": 4, "MEMORY_MB": 64},
            },
        ],
    }


def test_the_newest_come_first_and_the_rest_by_page(held: Client) -> None:
    assert listed(held) == [uid("c"), uid("b"), uid("a")]
    first = held.get(f"{CONSUMERS}?limit=2").json()
    assert [each["uuid"] for each in first["consumers"]] == [uid("c"), uid("b")]
    second = held.get(f"{CONSUMERS}?limit=2&after={first['next']}").json()
    assert ([each["uuid"] for each in second["consumers"]], second["next"]) == ([uid("a")], None)


def test_filters(held: Client) -> None:
    assert listed(held, project="web") == [uid("b")]
    assert listed(held, user="mia") == [uid("a")]
    assert listed(held, type="POD") == [uid("b")]
    assert listed(held, project="web", type="INSTANCE") == []
    assert listed(held, q=uid("a")[:12].upper()) == [uid("a")]
    assert listed(held, q="jo") == [uid("b")]
    assert listed(held, q="100%25_") == [uid("c")]
    assert listed(held, q="1_0") == []


def test_what_is_wrong_is_refused(held: Client) -> None:
    assert held.get(f"{CONSUMERS}?limit=5000").status_code == 400
    assert held.get(f"{CONSUMERS}?size=1").status_code == 400
    assert held.get(f"{CONSUMERS}?after=x").status_code == 400
    assert held.get(f"{CONSUMERS}/{uid('nobody')}").status_code == 404
    assert held.get(CONSUMERS, x_auth_token="mia").status_code == 403


def test_the_map_is_coloured_by_who_has_most_there(held: Client) -> None:
    claim(held, "d", {"h0n1": {"VCPU": 1}}, project="web")
    found = held.get("/dovetail/v1/map/holders").json()
    assert found["layout"] == held.get("/dovetail/v1/map").json()["layout"]
    assert [found["projects"][at] for at in found["project"]] == ["web", HOSTILE]
    assert (found["consumers"], found["others"]) == ([2, 1], [1, 0])
