"""Attributes over HTTP: written, read, dumped, and asked for in candidates and explanations."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote_plus

import pytest

from tests.rest.client import Client
from tests.rest.fleets import load, tree, uid

OLD, NEW = {"Kind": "gpu", "memory": "16G"}, {"Kind": "gpu", "memory": "80G", "ecc": "on"}


@pytest.fixture
def cards(client: Client) -> Client:
    """Two hosts with a card each, an old one and a new one."""
    load(
        client,
        *(
            tree(
                f"h{n}",
                tree(f"h{n}card", inventories={"CUSTOM_DEVICE": 1}, attributes=card),
                inventories={"VCPU": 8},
            )
            for n, card in enumerate((OLD, NEW))
        ),
    )
    return client


def own(name: str) -> str:
    return f"/dovetail/v1/providers/{uid(name)}/attributes"


def hosts(client: Client, query: str) -> set[str]:
    """The hosts of the candidates."""
    reply = client.get(f"/allocation_candidates?{query}")
    assert reply.status_code == 200, reply.text
    found = {uuid for one in reply.json()["allocation_requests"] for uuid in one["allocations"]}
    return {host for host in ("h0", "h1") if found & {uid(host), uid(f"{host}card")}}


def test_they_are_read_and_written_with_the_generation(cards: Client) -> None:
    found = cards.get(own("h0card")).json()
    assert found == {"attributes": OLD, "resource_provider_generation": 0}
    wanted = {"attributes": {"memory": "32G"}, "resource_provider_generation": 0}
    reply = cards.call("PUT", own("h0card"), wanted)
    assert (reply.status_code, reply.json()) == (200, {**wanted, "resource_provider_generation": 1})
    assert cards.call("PUT", own("h0card"), wanted).status_code == 409
    assert cards.get(own("h0card")).json()["attributes"] == {"memory": "32G"}


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"attributes": {"a": 1}, "resource_provider_generation": 0}, "attributes"),
        ({"attributes": {"": "x"}, "resource_provider_generation": 0}, "length >= 1"),
        ({"attributes": {"a": "x" * 1025}, "resource_provider_generation": 0}, "<= 1024"),
        ({"attributes": {}}, "resource_provider_generation"),
        ({"attributes": {"a": "\0"}, "resource_provider_generation": 0}, "NUL"),
    ],
)
def test_bad_ones_are_refused_and_change_nothing(
    cards: Client, body: dict[str, Any], complaint: str
) -> None:
    reply = cards.call("PUT", own("h0card"), body)
    assert reply.status_code == 400
    assert complaint in reply.json()["detail"]
    assert cards.get(own("h0card")).json()["attributes"] == OLD


def test_a_provider_has_to_be_there(cards: Client) -> None:
    assert cards.get(own("nothing")).status_code == 404
    assert cards.get("/dovetail/v2/providers/x/attributes").status_code == 404
    assert cards.get("/dovetail/v1/providers//attributes").status_code == 404


def test_they_are_in_the_fleet_document(cards: Client) -> None:
    document = cards.get("/dovetail/v1/fleet?tree=h1").json()
    assert document["children"][0]["attributes"] == NEW


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ("memory>=16G", {"h0", "h1"}),
        ("memory>16G", {"h1"}),
        ("memory=80000M", {"h1"}),
        ("ecc", {"h1"}),
        ("!ecc,Kind=gpu", {"h0"}),
        ("ecc in (on,half),memory<1T", {"h1"}),
        ("Kind notin (gpu)", set()),
        ("memory>=1Gbps", set()),
        ('Kind="gpu"', {"h0", "h1"}),
    ],
)
def test_candidates_meet_the_conditions(cards: Client, conditions: str, found: set[str]) -> None:
    query = f"resources_C=CUSTOM_DEVICE:1&attributes_C={quote(conditions)}"
    assert hosts(cards, query) == found


def test_conditions_may_be_repeated_and_are_those_of_the_serving_providers(cards: Client) -> None:
    device = "resources_C=CUSTOM_DEVICE:1&resources=VCPU:1"
    both = f"{device}&attributes_C=ecc&attributes_C=memory%3E1G"
    assert hosts(cards, both) == {"h1"}
    assert hosts(cards, f"{device}&attributes=ecc&attributes_C=ecc") == set()
    assert hosts(cards, "resources=CUSTOM_DEVICE:1&attributes=ecc") == {"h1"}


@pytest.mark.parametrize(
    ("key", "text", "complaint"),
    [
        ("attributes_C", "memory>=much", "`attributes_C`: at character 1: memory>=much: 'much'"),
        ("attributes_C", "ecc mig", "at character 5: expected a comma or the end, got 'mig'"),
        ("attributes_C", "", "expected a key, got the end"),
        ("attributes_C", ",".join(f"k{n}" for n in range(65)), "more than 64 conditions"),
        ("class_C", "nothing", "`class_C`: no resource class 'nothing' is defined."),
    ],
)
def test_a_slip_is_told(cards: Client, key: str, text: str, complaint: str) -> None:
    query = f"resources_C=CUSTOM_DEVICE:1&{key}={quote(text)}"
    reply = cards.get(f"/allocation_candidates?{query}")
    assert reply.status_code == 400
    error = reply.json()["errors"][0]
    assert (error["code"], complaint in error["detail"]) == ("placement.query.bad_value", True)


def test_older_versions_know_neither(cards: Client) -> None:
    for key in ("attributes_C=ecc", "class_C=x"):
        query = f"/allocation_candidates?resources_C=CUSTOM_DEVICE:1&{key}"
        reply = cards.call("GET", query, version="1.35")
        assert reply.status_code == 400
        assert "additionalProperties" in reply.text


def test_an_explanation_counts_and_words_each_condition(cards: Client) -> None:
    asked = quote("Kind=gpu,memory>100G")
    query = f"resources_C=CUSTOM_DEVICE:1&attributes_C={asked}"
    found = cards.get(f"/dovetail/v1/explain?{query}").json()
    assert [(step["reason"], step["words"], step["left"]) for step in found["funnel"]] == [
        ("amount", "room for CUSTOM_DEVICE:1 (group _C)", 2),
        ("attribute", "attribute Kind=gpu (group _C)", 2),
        ("attribute", "attribute memory>100G (group _C)", 0),
    ]
    assert found["verdict"] == "never"
    missed = [one["words"] for one in found["nearest"][0]["findings"] if not one["met"]]
    assert missed == ["attribute memory>100G (group _C): no (h0card)"]
    (offer,) = found["relaxations"]
    assert offer["words"] == "2 hosts fit if attribute memory>100G is not required (group _C)"
    assert unquote_plus(offer["query"]) == ("resources_C=CUSTOM_DEVICE:1&attributes_C=Kind=gpu")
    assert hosts(cards, offer["query"]) == {"h0", "h1"}


def test_a_change_of_attributes_is_seen_at_once(cards: Client) -> None:
    query = "resources_C=CUSTOM_DEVICE:1&attributes_C=ecc"
    assert hosts(cards, query) == {"h1"}
    marked = {"attributes": {"ecc": "on"}, "resource_provider_generation": 0}
    assert cards.call("PUT", own("h0card"), marked).status_code == 200
    assert hosts(cards, query) == {"h0", "h1"}


def test_what_if_knows_the_attributes_of_hosts_that_might_be(cards: Client) -> None:
    added = tree("h2", inventories={"CUSTOM_DEVICE": 1}, attributes={"memory": "200G"})
    query = "resources_C=CUSTOM_DEVICE:1&attributes_C=" + quote("memory>100G")
    reply = cards.call("POST", "/dovetail/v1/whatif", {"query": query, "add": [added]})
    told = reply.json()
    assert (told["before"]["hosts"], told["after"]["hosts"]) == (0, 1)
