"""POST /dovetail/v1/whatif: another fleet, and the real one untouched."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from dovetail.core.fleet import FleetReader
from dovetail.rest.dovetail import whatif
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


def grown(provider: str, amount: int, resource_class: str = "VCPU") -> dict[str, Any]:
    return {"provider": provider, "resource_class": resource_class, "amount": amount}


def test_a_provider_that_has_more(fleet: Client) -> None:
    """So much more that somebody who holds something stays, on what there is."""
    assert counts(ask(fleet, grow=[grown("host1", 7)])) == (2, 2)
    assert counts(ask(fleet, grow=[grown("host1", 8)])) == (2, 3)
    assert counts(ask(fleet, grow=[grown("host1", 4), grown(uid("host1"), 4)])) == (2, 3)
    assert counts(ask(fleet, grow=[grown("host1", 8)], release=[CONSUMER])) == (2, 3)
    assert counts(ask(fleet, grow=[grown("host1", 8)], drain=["host1"])) == (2, 2)


def test_a_provider_that_has_what_it_had_none_of(fleet: Client) -> None:
    both = "resources=VCPU:4,DISK_GB:10"
    assert counts(ask(fleet, query=both, grow=[grown("host2", 10, "DISK_GB")])) == (0, 1)
    assert counts(ask(fleet, query=both, grow=[grown("host2", 9, "DISK_GB")])) == (0, 0)


def test_capacity_grows_by_what_is_said(client: Client) -> None:
    """Whatever is reserved, and however often a unit is handed out."""
    inventory = {"total": 10, "reserved": 3, "allocation_ratio": 0.7}
    load(client, tree("odd", inventories={"VCPU": inventory}))
    capacity = int(7 * 0.7)
    for more in range(1, 40):
        wanted = f"resources=VCPU:{capacity + more}"
        assert counts(ask(client, query=wanted, grow=[grown("odd", more)])) == (0, 1)
        if more > 3:
            assert counts(ask(client, query=wanted, grow=[grown("odd", more - 3)])) == (0, 0)


def test_what_an_explanation_says_to_add_is_enough(fleet: Client) -> None:
    query = "resources=VCPU:12"
    told = fleet.get(f"/dovetail/v1/explain?{query}").json()["additions"]
    assert told
    for each in told:
        more = [
            grown(one["provider_uuid"], one["amount"], one["resource_class"])
            for one in each["added"]
        ]
        assert counts(ask(fleet, query=query, grow=more)) == (0, 1)


@pytest.mark.parametrize(
    ("more", "status"),
    [
        (grown("nobody", 1), 404),
        (grown("host1", 1, "CUSTOM_NOTHING"), 404),
        (grown("host1", 0), 400),
        (grown("host1", 2**31), 400),
    ],
)
def test_more_of_what_is_not_there_is_refused(
    fleet: Client, more: dict[str, Any], status: int
) -> None:
    question = {"query": "resources=VCPU:8", "grow": [more]}
    assert fleet.call("POST", WHATIF, question).status_code == status


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


def test_scores_of_the_fleet_as_it_would_be(fleet: Client) -> None:
    """Without its consumer the first host is as empty as the others."""
    ranked = "resources=VCPU:4&rank=pack:2,spread&limit=1"
    for query, scores in (
        (f"{ranked}&scores=1", {"total": 150, "pack": 50, "spread": 50}),
        (ranked, None),
    ):
        (found,) = ask(fleet, query=query, release=[CONSUMER])["allocation_requests"]
        assert found.get("scores") == scores


def test_the_best_of_the_fleet_as_it_would_be_comes_first(fleet: Client) -> None:
    new = tree("host0", inventories={"VCPU": 9})
    found = ask(fleet, query="resources=VCPU:8&rank=pack&limit=1", add=[new], drain=["host3"])
    (best,) = found["allocation_requests"]
    assert list(best["allocations"]) == [uid("host2")]


def test_reading_a_large_question_holds_up_nobody(
    fleet: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of trees take seconds, and the event loop answers everybody."""
    threads: list[int] = []

    def noting(work: Any) -> Any:
        def noted(*args: Any) -> Any:
            threads.append(threading.get_ident())
            return work(*args)

        return noted

    monkeypatch.setattr(FleetReader, "feed", noting(FleetReader.feed))
    monkeypatch.setattr(whatif, "change", noting(whatif.change))
    ask(fleet, add=[tree("host4", inventories={"VCPU": 8})])
    assert len(threads) == 2
    assert threading.get_ident() not in threads


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
        ({"add": [{"name": "x", "inventories": {"VCPU": 2**64}}]}, 400, "`add`: line 1"),
        ({"add": [{"name": "x", "children": json.loads("[" * 300 + "]" * 300)}]}, 400, "line 1"),
        ({"add": [{"name": "x"}, 7]}, 400, "`add`: line 2"),
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


def test_a_question_that_is_nested_without_end(fleet: Client) -> None:
    depth = 100_000
    body = b'{"query": "resources=VCPU:1", "add": [' + b"[" * depth + b"]" * depth + b"]}"
    reply = fleet.call("POST", WHATIF, body, content_type="application/json")
    assert reply.status_code == 400


def test_trees_may_be_written_over_several_lines(fleet: Client) -> None:
    body = b"""{"query": "resources=VCPU:8", "add": [
        {"name": "host4",
         "inventories": {"VCPU": 8}}
    ]}"""
    reply = fleet.call("POST", WHATIF, body, content_type="application/json")
    assert counts(reply.json()) == (2, 3)
