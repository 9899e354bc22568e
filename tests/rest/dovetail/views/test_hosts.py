"""A host: its tree with all that is known of it, and who holds how much of each unit."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from dovetail.rest.dovetail.views import hosts
from tests.rest.client import Client
from tests.rest.dovetail.views.test_holders import claim
from tests.rest.fleets import load, numa_hosts, tree, uid

HOSTS = "/dovetail/v1/hosts"
HOSTILE = "a/b?c#<script>\u202e\U0001f600"


@pytest.fixture
def fleet(client: Client) -> Client:
    load(client, *numa_hosts(2))
    return client


def test_the_tree_comes_root_first_and_each_above_its_children(fleet: Client) -> None:
    found = fleet.get(f"{HOSTS}/{uid('h0')}").json()
    assert (found["uuid"], found["name"]) == (uid("h0"), "h0")
    assert [(each["name"], each["depth"]) for each in found["providers"][:6]] == [
        ("h0", 0),
        ("h0n0", 1),
        ("h0n0fpga", 2),
        ("h0n0nic", 2),
        ("h0n0pf0", 3),
        ("h0n0pf1", 3),
    ]
    node = found["providers"][1]
    assert node["parent"] == uid("h0")
    assert node["traits"] == ["HW_NUMA_ROOT"]
    assert found["providers"][0]["aggregates"] == [uid("rack0")]
    assert node["inventories"]["VCPU"] == {
        "total": 8,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": 2**31 - 1,
        "step_size": 1,
        "allocation_ratio": 1.0,
        "capacity": 8,
        "used": 0,
    }


def test_each_unit_has_its_holders(fleet: Client) -> None:
    claim(fleet, "a", {"h0n0": {"VCPU": 4, "MEMORY_MB": 64}, "h1n0": {"VCPU": 1}})
    claim(fleet, "b", {"h0n0": {"VCPU": 1}}, project="web", user="joe", kind="POD")
    node = fleet.get(f"{HOSTS}/h0").json()["providers"][1]
    assert [(each["consumer"], each["resources"]) for each in node["holders"]] == [
        (uid("a"), {"VCPU": 4, "MEMORY_MB": 64}),
        (uid("b"), {"VCPU": 1}),
    ]
    assert node["inventories"]["VCPU"]["used"] == 5
    second = node["holders"][1]
    assert (second["type"], second["project"], second["user"]) == ("POD", "web", "joe")


def test_any_provider_of_the_tree_leads_to_it(fleet: Client) -> None:
    by_uuid = fleet.get(f"{HOSTS}/{uid('h1n0pf1')}").json()
    assert by_uuid["name"] == "h1"
    assert fleet.get(f"{HOSTS}/h1n0").json() == by_uuid


def test_names_may_hold_anything(client: Client) -> None:
    load(client, tree(HOSTILE, inventories={"VCPU": 1}))
    assert client.get(f"{HOSTS}/{quote(HOSTILE, safe='')}").json()["name"] == HOSTILE


def test_decisions_about_the_host_are_with_it(fleet: Client) -> None:
    body = {
        "query": "resources=FPGA:1&in_tree=" + uid("h1"),
        "consumer": uid("x"),
        "consumer_type": "INSTANCE",
    }
    answer = fleet.call("POST", "/dovetail/v1/claims", body)
    assert answer.status_code == 201, answer.text
    (decision,) = fleet.get(f"{HOSTS}/h1").json()["decisions"]
    assert decision["consumer"] == uid("x")
    assert fleet.get(f"{HOSTS}/h0").json()["decisions"] == []


def test_what_is_not_there_is_not_found(fleet: Client) -> None:
    assert fleet.get(f"{HOSTS}/nowhere").status_code == 404
    assert fleet.get(f"{HOSTS}/h0?x=1").status_code == 400
    assert fleet.get(f"{HOSTS}/h0", x_auth_token="mia").status_code == 403


def test_of_decisions_the_newest_are_shown_however_long_ago_they_were(
    fleet: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are looked for among all that are kept, some at a time."""
    monkeypatch.setattr(hosts, "AT_ONCE", 2)
    monkeypatch.setattr(hosts, "SHOWN_DECISIONS", 2)
    for number, host in enumerate(("h1", "h1", "h1", "h0", "h0", "h0", "h0", "h0")):
        query = f"resources=SRIOV_NET_VF:1&in_tree={uid(host)}"
        body = {"query": query, "consumer": uid(f"c{number}"), "consumer_type": "INSTANCE"}
        assert fleet.call("POST", "/dovetail/v1/claims", body).status_code == 201
    shown = fleet.get(f"{HOSTS}/h1").json()["decisions"]
    assert [one["consumer"] for one in shown] == [uid("c2"), uid("c1")]
