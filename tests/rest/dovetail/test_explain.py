"""GET /dovetail/v1/explain over HTTP."""

from __future__ import annotations

import pytest

from tests.rest.client import Client
from tests.rest.conftest import Make
from tests.rest.fleets import load, tree

EXPLAIN = "/dovetail/v1/explain"


@pytest.fixture
def hosts(serve: Make) -> Client:
    """Two hosts of two halves each; the card is beside the half that has less left."""
    client = serve()
    for number in (1, 2):
        host = f"host{number}"
        load(
            client,
            tree(
                host,
                tree(f"{host}_numa0", inventories={"VCPU": 8}),
                tree(
                    f"{host}_numa1",
                    tree(f"{host}_fpga", inventories={"FPGA": 1}),
                    inventories={"VCPU": 4},
                ),
                inventories={"DISK_GB": 100},
            ),
        )
    return client


NEAR_THE_CARD = "resources_VM=VCPU:{}&resources_ACC=FPGA:1&same_subtree=_VM,_ACC"


def test_a_request_that_fits(hosts: Client) -> None:
    answer = hosts.get(f"{EXPLAIN}?{NEAR_THE_CARD.format(4)}").json()
    assert answer["verdict"] == "fits"
    assert answer["summary"] == "2 of 2 hosts fit."
    assert [step["left"] for step in answer["funnel"]] == [2, 2, 2]
    assert answer["nearest"] == answer["relaxations"] == []


def test_why_nothing_fits_and_what_would(hosts: Client) -> None:
    answer = hosts.get(f"{EXPLAIN}?{NEAR_THE_CARD.format(6)}").json()
    assert answer["verdict"] == "never"
    assert [(step["reason"], step["constraint"], step["left"]) for step in answer["funnel"]] == [
        ("amount", "VCPU:6", 2),
        ("amount", "FPGA:1", 2),
        ("same_subtree", "_ACC,_VM", 0),
    ]
    assert [one["words"] for one in answer["relaxations"]] == [
        "2 hosts fit if VCPU:6 (group _VM) becomes 4",
        "2 hosts fit if FPGA:1 is not asked for (group _ACC)",
        "2 hosts fit if _ACC,_VM need not be in one subtree",
    ]
    assert [host["name"] for host in answer["nearest"]] == ["host1", "host2"]


def test_each_relaxation_is_a_query_that_gives_candidates(hosts: Client) -> None:
    for change in hosts.get(f"{EXPLAIN}?{NEAR_THE_CARD.format(6)}").json()["relaxations"]:
        found = hosts.get(f"/allocation_candidates?{change['query']}").json()
        assert found["allocation_requests"]


def test_a_host_by_name_with_its_shortfall(hosts: Client) -> None:
    answer = hosts.get(f"{EXPLAIN}?resources_VM=VCPU:10&host=host2").json()
    (host,) = answer["nearest"]
    (finding,) = host["findings"]
    assert (host["name"], host["fits"]) == ("host2", False)
    assert finding["words"] == "VCPU on host2_numa0 (group _VM): wants 10, free 8 of 8, 2 short"
    assert (finding["wanted"], finding["free"], finding["short"]) == (10, 8, 2)


def test_not_now_is_not_never(hosts: Client) -> None:
    found = hosts.get("/allocation_candidates?resources=DISK_GB:60").json()
    for number, candidate in enumerate(found["allocation_requests"]):
        hosts.call(
            "PUT",
            f"/allocations/{number:032}",
            {
                "allocations": candidate["allocations"],
                "project_id": "p",
                "user_id": "u",
                "consumer_generation": None,
                "consumer_type": "INSTANCE",
            },
        )
    answer = hosts.get(f"{EXPLAIN}?resources=DISK_GB:60").json()
    assert answer["verdict"] == "not_now"
    assert answer["summary"] == (
        "No host fits now; 2 hosts would if nothing were in use. "
        "None is left after: room for DISK_GB:60."
    )
    assert answer["nearest"][0]["findings"][0]["ever"] is True


def test_a_host_that_is_not_there(hosts: Client) -> None:
    reply = hosts.get(f"{EXPLAIN}?resources=VCPU:1&host=nowhere")
    assert reply.status_code == 404
    assert "nowhere" in reply.json()["detail"]


def test_a_query_that_is_no_query(hosts: Client) -> None:
    reply = hosts.get(f"{EXPLAIN}?resources=VCPU")
    assert reply.status_code == 400
    assert reply.headers["content-type"] == "application/problem+json"
