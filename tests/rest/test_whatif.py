"""POST /dovetail/v1/whatif: another fleet, and the real one untouched."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rest.client import Client
from tests.rest.fleets import load, tree, uid

WHATIF = "/dovetail/v1/whatif"
CONSUMER = uid("consumer")


@pytest.fixture
def fleet(client: Client) -> Client:
    """Three hosts; the first is full."""
    load(
        client,
        *(tree(f"host{n}", inventories={"VCPU": 8}, traits=["HW_NUMA_ROOT"]) for n in (1, 2, 3)),
        {"consumer": CONSUMER, "allocations": {"host1": {"VCPU": 8}}},
    )
    return client


def ask(client: Client, **question: Any) -> dict[str, Any]:
    reply = client.call("POST", WHATIF, {"query": "resources=VCPU:8", **question})
    assert reply.status_code == 200, reply.text
    answer: dict[str, Any] = reply.json()
    return answer


def counts(answer: dict[str, Any]) -> tuple[int, int]:
    assert len(answer["allocation_requests"]) == answer["after"]["hosts"]
    return answer["before"]["hosts"], answer["after"]["hosts"]


def test_a_drained_host(fleet: Client) -> None:
    assert counts(ask(fleet, drain=["host2"])) == (2, 1)
    assert counts(ask(fleet, drain=["host2", uid("host3")])) == (2, 0)


def test_a_consumer_that_is_gone(fleet: Client) -> None:
    answer = ask(fleet, release=[CONSUMER])
    assert counts(answer) == (2, 3)
    summary = answer["provider_summaries"][uid("host1")]
    assert summary["resources"]["VCPU"] == {"capacity": 8, "used": 0}


def test_a_consumer_named_twice_gives_back_once(fleet: Client) -> None:
    answer = ask(fleet, release=[CONSUMER] * 2000)
    summary = answer["provider_summaries"][uid("host1")]
    assert summary["resources"]["VCPU"] == {"capacity": 8, "used": 0}


def test_hosts_that_were_bought(fleet: Client) -> None:
    new = tree("host4", tree("host4_card", inventories={"CUSTOM_CARD": 1}), inventories={"VCPU": 8})
    assert counts(ask(fleet, add=[new])) == (2, 3)
    question = "resources=VCPU:8&resources_C=CUSTOM_CARD:1"
    assert counts(ask(fleet, query=question, add=[new])) == (0, 1)


def test_all_at_once_and_why(fleet: Client) -> None:
    answer = ask(
        fleet,
        query="resources=VCPU:9",
        drain=["host2"],
        release=[CONSUMER],
        add=[tree("host4", inventories={"VCPU": 4})],
    )
    explanation = answer["explanation"]
    assert explanation["verdict"] == "never"
    assert explanation["hosts"] == 3
    assert {host["name"] for host in explanation["nearest"]} == {"host1", "host3", "host4"}
    assert explanation["relaxations"][0]["words"] == "2 hosts fit if VCPU:9 becomes 8"


def test_nothing_is_written(fleet: Client) -> None:
    before = fleet.get("/resource_providers").json()
    ask(fleet, drain=["host2"], release=[CONSUMER], add=[tree("host4", inventories={"VCPU": 8})])
    assert fleet.get("/resource_providers").json() == before
    assert fleet.get(f"/allocations/{CONSUMER}").json()["allocations"]
    found = fleet.get("/allocation_candidates?resources=VCPU:8").json()
    assert len(found["allocation_requests"]) == 2


@pytest.mark.parametrize(
    ("question", "status", "word"),
    [
        ({"drain": ["nowhere"]}, 404, "nowhere"),
        ({"release": [uid("nobody")]}, 404, "No consumer"),
        ({"add": [{"name": "host1"}]}, 409, "host1 is in the fleet already"),
        ({"add": [{"name": "x", "inventories": {"VCPU": -1}}]}, 400, "`add`: line 1"),
        ({"query": "resources=VCPU:x"}, 400, "VCPU expected positive integer"),
        ({"query": "resources=CUSTOM_NONE:1"}, 400, "CUSTOM_NONE"),
        ({"drained": []}, 400, "drained"),
        ({"query": 7}, 400, "query"),
    ],
)
def test_questions_that_are_not(
    fleet: Client, question: dict[str, Any], status: int, word: str
) -> None:
    reply = fleet.call("POST", WHATIF, {"query": "resources=VCPU:1", **question})
    assert reply.status_code == status, reply.text
    assert word in reply.json()["detail"]
