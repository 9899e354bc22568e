"""GET /allocation_candidates with `rank` and `scores`."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.engine.rank import POLICIES
from tests.rest.client import Client
from tests.rest.fleets import load, numa_hosts, tree, uid

SMALL, LARGE, USED = uid("small"), uid("large"), uid("used")
QUERY = "/allocation_candidates?resources=VCPU:2"


@pytest.fixture
def hosts(client: Client) -> Client:
    """A small host, a large one, and one of the same size that is half full."""
    held = {"used": {"VCPU": 16}}
    load(
        client,
        tree("large", inventories={"VCPU": 32}),
        tree("small", inventories={"VCPU": 8}),
        tree("used", inventories={"VCPU": 32}),
        {"consumer": uid("vm"), "project_id": "p", "user_id": "u", "allocations": held},
    )
    return client


def answer(client: Client, more: str) -> dict[str, Any]:
    reply = client.get(QUERY + more)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def order(client: Client, more: str) -> list[str]:
    return [next(iter(each["allocations"])) for each in answer(client, more)["allocation_requests"]]


@pytest.mark.parametrize(
    ("rank", "expected"),
    [
        ("first-fit", [LARGE, SMALL, USED]),
        ("best-fit", [SMALL, USED, LARGE]),
        ("spread", [LARGE, SMALL, USED]),
        ("pack", [USED, SMALL, LARGE]),
        ("spread:1,best-fit:3", [SMALL, USED, LARGE]),
    ],
)
def test_policies_decide_the_order(hosts: Client, rank: str, expected: list[str]) -> None:
    assert order(hosts, f"&rank={rank}") == expected
    assert order(hosts, f"&rank={rank}&limit=2") == expected[:2]
    assert order(hosts, f"&rank={rank}&limit=1") == expected[:1]


def test_scores_tell_the_total_and_its_parts(hosts: Client) -> None:
    found = answer(hosts, "&rank=pack:2,spread:1&scores=1")["allocation_requests"]
    assert [each["scores"] for each in found] == [
        {"total": 155, "pack": 56, "spread": 43},
        {"total": 125, "pack": 25, "spread": 75},
        {"total": 105, "pack": 6, "spread": 93},
    ]


def test_without_scores_the_answer_has_none(hosts: Client) -> None:
    ranked = answer(hosts, "&rank=pack")
    assert all(set(each) == {"allocations", "mappings"} for each in ranked["allocation_requests"])
    plain = hosts.get(QUERY).content
    assert hosts.get(f"{QUERY}&rank=first-fit").content == plain
    assert hosts.get(f"{QUERY}&scores=0").content == plain


def test_scores_without_a_rank_are_those_of_the_default(hosts: Client) -> None:
    scored = answer(hosts, "&scores=1")
    for each in scored["allocation_requests"]:
        assert each.pop("scores") == {"total": 0, "first-fit": 0}
    assert scored == answer(hosts, "")


def test_scores_go_with_candidates_of_different_layouts(client: Client) -> None:
    load(client, *numa_hosts(2))
    query = "/allocation_candidates?resources_A=VCPU:1&resources_B=VCPU:1&rank=spread"
    plain = client.get(query).json()
    scored = client.get(f"{query}&scores=1").json()
    for each in scored["allocation_requests"]:
        assert each.pop("scores") == {"total": 87, "spread": 87}
    assert scored == plain


def test_nothing_found_is_no_error(hosts: Client) -> None:
    found = answer(hosts, "000&rank=fragmentation&scores=1")
    assert found == {"allocation_requests": [], "provider_summaries": {}}


def test_fragmentation_learns_from_requests(client: Client) -> None:
    """Half a device is taken where it leaves no device that only looks free."""
    halves = {"half": {"CUSTOM_GPU": 500}}
    load(
        client,
        tree("whole", inventories={"CUSTOM_GPU": 1000}),
        tree("half", inventories={"CUSTOM_GPU": 1000}),
        {"consumer": uid("task"), "project_id": "p", "user_id": "u", "allocations": halves},
    )
    path = "/allocation_candidates?resources_G=CUSTOM_GPU:"
    for _ in range(3):
        client.get(f"{path}1000")
    found = client.get(f"{path}500&rank=fragmentation&limit=1").json()["allocation_requests"]
    assert list(found[0]["allocations"]) == [uid("half")]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("&rank=best", "No such policy: 'best'."),
        ("&rank=", "No such policy: ''."),
        ("&rank=pack,", "No such policy: ''."),
        ("&rank=pack:0", "from 1 to 1000"),
        ("&rank=pack:x", "from 1 to 1000"),
        ("&rank=pack:", "from 1 to 1000"),
        ("&rank=pack:-1", "from 1 to 1000"),
        ("&rank=pack:1001", "from 1 to 1000"),
        ("&rank=pack:²", "from 1 to 1000"),
    ],
)
def test_what_cannot_be_ranked_by_is_refused_with_a_list(
    hosts: Client, more: str, says: str
) -> None:
    reply = hosts.get(QUERY + more)
    assert reply.status_code == 400
    detail = reply.json()["errors"][0]["detail"]
    assert says in detail
    assert ", ".join(POLICIES) in detail


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("&rank=pack&rank=spread", "only once"),
        ("&rank=pack,pack:2", "only once"),
        ("&scores=yes", "scores"),
    ],
)
def test_contradictions_are_refused(hosts: Client, more: str, says: str) -> None:
    reply = hosts.get(QUERY + more)
    assert reply.status_code == 400
    assert says in reply.json()["errors"][0]["detail"]


@pytest.mark.parametrize("more", ["&rank=pack", "&scores=1"])
def test_older_versions_know_nothing_of_it(hosts: Client, more: str) -> None:
    assert hosts.get(QUERY + more, version="1.35").status_code == 400
    assert hosts.get(QUERY + more, version="1.36").status_code == 200
