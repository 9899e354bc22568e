"""GET /dovetail/v1/explain over HTTP."""

from __future__ import annotations

import pytest

from dovetail.rest.server.policy import HOLDERS, RuleSet, admin, everybody
from tests.rest.client import Client
from tests.rest.conftest import Make
from tests.rest.fleets import load, tree, uid

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


# -- what else is told -----------------------------------------------------------------------------


def hold(client: Client, consumer: int, **allocations: dict[str, int]) -> str:
    """Let a consumer hold amounts of providers, by name."""
    uuid = f"00000000-0000-0000-0000-{consumer:012}"
    found = client.call("POST", "/dovetail/v1/names", {"providers": list(allocations)}).json()
    reply = client.call(
        "PUT",
        f"/allocations/{uuid}",
        {
            "allocations": {
                found["providers"][name]["uuid"]: {"resources": held}
                for name, held in allocations.items()
            },
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        },
    )
    assert reply.status_code == 204, reply.text
    return uuid


def test_a_device_in_use_is_not_told_as_absent(hosts: Client) -> None:
    hold(hosts, 1, host1_fpga={"FPGA": 1})
    hold(hosts, 2, host2_fpga={"FPGA": 1})
    answer = hosts.get(f"{EXPLAIN}?resources=FPGA:1&host=host1").json()
    assert answer["verdict"] == "not_now"
    (finding,) = answer["nearest"][0]["findings"]
    assert (finding["met"], finding["ever"]) == (False, True)
    assert finding["words"] == "FPGA on host1_fpga: wants 1, free 0 of 1, 1 short"
    assert [place["name"] for place in answer["emptied"]] == ["host1", "host2"]


def test_whom_to_move_and_where_to(hosts: Client) -> None:
    """The half beside the card of host1 is held by one who has room on the other half."""
    held = hold(hosts, 1, host1_numa1={"VCPU": 3})
    hold(hosts, 2, host2_numa1={"VCPU": 2}, host2_fpga={"FPGA": 1})
    asked = f"{EXPLAIN}?{NEAR_THE_CARD.format(4)}"
    assert "moves" not in hosts.get(asked).json()
    plans = hosts.get(f"{asked}&moves=1").json()["moves"]
    (plan,) = [one for one in plans if one["host"]["name"] == "host1"]
    (move,) = plan["moves"]
    assert (move["consumer"], move["from"]["name"], plan["smallest"]) == (held, "host1", True)
    assert move["to"] is not None
    assert plan["words"].startswith(f"host1 fits if you move {held} (VCPU:3) from host1 to ")
    hosts.call("DELETE", f"/allocations/{held}")
    again: dict[str, object] = {
        "allocations": {u: {"resources": r} for u, r in move["allocations"].items()}
    }
    again |= {"project_id": "p", "user_id": "u", "consumer_generation": None}
    assert (
        hosts.call("PUT", f"/allocations/{held}", again | {"consumer_type": "INSTANCE"}).status_code
        == 204
    )
    assert hosts.get(asked).json()["verdict"] == "fits"


def test_moves_are_asked_for_by_0_or_1(hosts: Client) -> None:
    assert hosts.get(f"{EXPLAIN}?resources=VCPU:1&moves=yes").status_code == 400


@pytest.mark.parametrize(("roles", "status"), [("admin", 200), ("reader", 403)])
def test_whom_to_move_is_told_to_those_who_may_see_who_holds_what(
    serve: Make, roles: str, status: int
) -> None:
    client = serve(rules=RuleSet(everybody, {HOLDERS: admin}))
    load(client, tree("host1", inventories={"VCPU": 8}))
    asked, question = f"{EXPLAIN}?resources=VCPU:9", {"query": "resources=VCPU:9", "moves": True}
    for reply in (
        client.get(f"{asked}&moves=1", x_roles=roles),
        client.call("POST", "/dovetail/v1/whatif", question, x_roles=roles),
    ):
        assert reply.status_code == status
        assert ("you may not see who holds what" in reply.text) == (status == 403)
    assert client.get(asked, x_roles=roles).status_code == 200


def test_whom_to_move_in_a_fleet_that_might_be(hosts: Client) -> None:
    held = hold(hosts, 1, host1_numa1={"VCPU": 3})
    question = {"query": NEAR_THE_CARD.format(4), "drain": ["host2"], "moves": True}
    answer = hosts.call("POST", "/dovetail/v1/whatif", question).json()
    (plan,) = answer["explanation"]["moves"]
    assert [move["consumer"] for move in plan["moves"]] == [held]


def test_what_to_add(hosts: Client) -> None:
    answer = hosts.get(f"{EXPLAIN}?{NEAR_THE_CARD.format(6)}").json()
    assert "host1 fits if you add 2 VCPU to host1_numa1" in [
        one["words"] for one in answer["additions"]
    ]


def test_what_vanishes_with_a_group(hosts: Client) -> None:
    query = "resources_VM=VCPU:1&resources_ACC=FPGA:2&required_ACC=HW_NUMA_ROOT"
    changes = hosts.get(f"{EXPLAIN}?{query}").json()["relaxations"]
    assert ["trait HW_NUMA_ROOT (group _ACC)"] in [one["vanishing"] for one in changes]


def test_names_stand_in_for_uuids(hosts: Client) -> None:
    found = hosts.call("POST", "/dovetail/v1/names", {"providers": ["host1"]}).json()
    uuid = found["providers"]["host1"]["uuid"]
    answer = hosts.get(f"{EXPLAIN}?resources=VCPU:99&in_tree={uuid}").json()
    assert "in the tree of host1" in [step["words"] for step in answer["funnel"]]


def test_six_missing_traits_are_found_at_once(serve: Make) -> None:
    """They were not found in five seconds: all sets of up to six constraints were tried."""
    client = serve()
    for number in range(8):
        load(client, tree(f"host{number}", inventories={"VCPU": 64}))
    traits = [f"CUSTOM_T{at}" for at in range(6)]
    for trait in traits:
        client.call("PUT", f"/traits/{trait}", None)
    query = "&".join(f"resources_{at}=VCPU:1&required_{at}={t}" for at, t in enumerate(traits))
    answer = client.get(f"{EXPLAIN}?{query}&group_policy=none").json()
    (change,) = answer["relaxations"]
    assert [one["from"] for one in change["changes"]] == traits
    assert (change["hosts"], change["smallest"], answer["cut_short"]) == (8, True, False)


# -- what consumers asked for ----------------------------------------------------------------------


def place_like(client: Client, query: str) -> tuple[str, str]:
    """Claim with a query, fill the rest, and ask for the room: who has to move, and where to."""
    reply = client.call("POST", "/dovetail/v1/claims", {"query": query})
    assert reply.status_code in (200, 201), reply.text
    consumer: str = reply.json()["consumer"]
    (plan,) = client.get(f"{EXPLAIN}?resources=VCPU:8&moves=1").json()["moves"]
    (move,) = plan["moves"]
    assert move["consumer"] == consumer
    return consumer, move["to"]["name"]


@pytest.fixture
def zones(serve: Make) -> Client:
    client = serve()
    load(
        client,
        tree("host1", inventories={"VCPU": 8}, aggregates=[uid("zone1")]),
        tree("host2", inventories={"VCPU": 4}, aggregates=[uid("zone2")]),
        tree("host3", inventories={"VCPU": 4}, aggregates=[uid("zone1")]),
    )
    return client


IN_ZONE = f"resources=VCPU:4&member_of={uid('zone1')}&in_tree={uid('host1')}"


def test_a_place_is_in_the_aggregate_that_the_consumer_asked_for(zones: Client) -> None:
    """That is on record; and the host that it named it has to leave."""
    assert place_like(zones, IN_ZONE)[1] == "host3"


def test_a_consumer_that_was_resized_is_known_by_what_it_holds(zones: Client) -> None:
    consumer, _ = place_like(zones, IN_ZONE)
    held = zones.get(f"/allocations/{consumer}").json()
    body = {
        "allocations": {uid("host1"): {"resources": {"VCPU": 3}}},
        **{key: held[key] for key in ("project_id", "user_id", "consumer_generation")},
        "consumer_type": "INSTANCE",
    }
    reply = zones.call("PUT", f"/allocations/{consumer}", body)
    assert reply.status_code == 204, reply.text
    (plan,) = zones.get(f"{EXPLAIN}?resources=VCPU:8&moves=1").json()["moves"]
    assert plan["moves"][0]["to"]["name"] == "host2"


def test_additions_say_whether_they_are_the_fewest(hosts: Client) -> None:
    answer = hosts.get(f"{EXPLAIN}?{NEAR_THE_CARD.format(6)}").json()
    assert [(len(one["added"]), one["smallest"]) for one in answer["additions"]] == [(1, True)] * 2
