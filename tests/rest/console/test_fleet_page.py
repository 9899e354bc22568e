"""The fleet as a page: which hosts an address shows, and what they amount to."""

from __future__ import annotations

import random
from urllib.parse import urlencode

import pytest

from tests.rest.client import Client
from tests.rest.console.test_pages import PageReader, read
from tests.rest.dovetail.views.test_fleet_map import random_fleet
from tests.rest.dovetail.views.test_holders import claim
from tests.rest.fleets import load, tree, uid


@pytest.fixture
def fleet(client: Client) -> Client:
    """Two racks: free and full, drained and dead."""
    load(
        client,
        tree("r1-free", inventories={"VCPU": 4, "DISK_GB": 9}),
        tree("r1-full", inventories={"VCPU": 4}),
        tree("r2-drained", inventories={"VCPU": {"total": 4, "reserved": 4}}),
        tree("r2-dead"),
    )
    claim(client, "a", {"r1-full": {"VCPU": 4}, "r1-free": {"VCPU": 1}})
    return client


def hosts(page: PageReader) -> list[str]:
    return [row[0] for row in page.rows if len(row) == 6 and row[0] != "Host"]


def at(client: Client, **query: str) -> PageReader:
    return read(client, f"/console?{urlencode(query)}")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["r1-free", "r1-full", "r2-dead", "r2-drained"]),
        ({"state": "free"}, ["r1-free"]),
        ({"state": "full"}, ["r1-full"]),
        ({"state": "full", "class": "DISK_GB"}, []),
        ({"state": "drained"}, ["r2-drained"]),
        ({"state": "dead"}, ["r2-dead"]),
        ({"state": "whatever"}, ["r1-free", "r1-full", "r2-dead", "r2-drained"]),
        ({"in": "r2"}, ["r2-dead", "r2-drained"]),
        ({"in": "r2", "state": "dead"}, ["r2-dead"]),
        ({"in": "r3"}, ["r1-free", "r1-full", "r2-dead", "r2-drained"]),
        ({"q": " FR "}, ["r1-free"]),
        ({"q": uid("r1-full")}, ["r1-full"]),
        ({"q": "nobody"}, []),
    ],
)
def test_an_address_shows_the_hosts_it_asks_for(
    fleet: Client, query: dict[str, str], found: list[str]
) -> None:
    assert sorted(hosts(at(fleet, **query))) == found


def test_the_form_keeps_what_was_asked(fleet: Client) -> None:
    page = fleet.get("/console?state=full&in=r1&class=VCPU&q=full").text
    assert '<option value="full" selected>' in page
    assert 'name="in" value="r1"' in page
    assert 'name="q" value="full"' in page


def test_a_group_leads_to_its_hosts(fleet: Client) -> None:
    page = at(fleet)
    assert page.row("r1") == ["r1", "2", "5", "8", "0"]
    assert page.row("r2") == ["r2", "2", "0", "0", "2"]
    assert "/console?group=rack&class=VCPU&in=r2" in page.links


def test_a_fleet_of_nothing_but_names_is_shown(client: Client) -> None:
    load(client, tree("r1-a"), tree("r1-b"))
    assert hosts(at(client)) == ["r1-a", "r1-b"]


def test_an_empty_ledger_says_how_to_begin(client: Client) -> None:
    page = read(client, "/console")
    assert "There are no hosts in this ledger." in page.text
    for way in ("POST /dovetail/v1/fleet", "--demo", "register clusters"):
        assert way in page.text
    assert "None" not in page.text
    assert page.rows == []


@pytest.mark.parametrize("seed", range(3))
def test_groups_and_hosts_are_those_of_the_map(client: Client, seed: int) -> None:
    load(client, *random_fleet(random.Random(seed)))
    shown = client.get("/dovetail/v1/map").json()
    for grouping, names in shown["groups"].items():
        if not names:
            continue
        page = at(client, group=grouping, **{"class": "VCPU"})
        of_host = shown["hosts"]["group"][grouping]
        for number, name in enumerate(names):
            members = [at for at, one in enumerate(of_host) if one == number]
            used, capacity = (
                sum(shown[key]["VCPU"][at] for at in members) for key in ("used", "capacity")
            )
            out = sum(shown["hosts"]["state"][at] > 0 for at in members)
            assert page.row(name)[1:] == [str(each) for each in (len(members), used, capacity, out)]
        for at_, name in enumerate(shown["hosts"]["name"]):
            rows = [row for row in page.rows if row[0] == name and len(row) == 6]
            assert rows[0][5] == f"{shown['fragmentation'][at_]} %"


def test_it_is_not_made_from_the_whole_document(
    fleet: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a large fleet that is megabytes, which would be encoded and decoded for each who looks."""
    from dovetail.rest.dovetail.views import fleet_map

    monkeypatch.setattr(fleet_map, "encoding", None)
    assert hosts(at(fleet))
