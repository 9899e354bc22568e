"""POST /dovetail/v1/claims and the record of decisions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from dovetail.ledger import decisions as record
from dovetail.ledger.database import idempotency
from dovetail.rest.server.settings import RequestLimits
from dovetail.service import asking as candidates
from dovetail.service import explanations
from tests.rest.client import Client
from tests.rest.conftest import Make
from tests.rest.fleets import load, tree, uid

CLAIMS, DECISIONS = "/dovetail/v1/claims", "/dovetail/v1/decisions"
OWNER = {"project_id": "blue", "user_id": "me"}


@pytest.fixture
def fleet(client: Client) -> Client:
    load(client, *(tree(f"host{n}", inventories={"VCPU": 8}) for n in (1, 2)))
    return client


def claim(client: Client, query: str, **more: Any) -> Any:
    return client.call("POST", CLAIMS, {"query": query, **OWNER, **more})


def endless(*_: object) -> Iterator[None]:
    """Work that only a budget of time ends."""
    while True:
        yield


def decided(client: Client, more: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"{DECISIONS}{more}").json()["decisions"]
    return found


def test_one_call_finds_and_claims(fleet: Client) -> None:
    reply = claim(fleet, "resources=VCPU:6", consumer=uid("vm"), consumer_type="INSTANCE")
    assert reply.status_code == 201
    placed = reply.json()
    assert placed["allocations"] == {uid("host1"): {"name": "host1", "resources": {"VCPU": 6}}}
    held = fleet.get(f"/allocations/{placed['consumer']}").json()
    assert held["allocations"][uid("host1")]["resources"] == {"VCPU": 6}
    assert (held["project_id"], held["consumer_type"]) == ("blue", "INSTANCE")


def test_the_caller_owns_what_nobody_else_is_named_for(fleet: Client) -> None:
    reply = fleet.call("POST", CLAIMS, {"query": "resources=VCPU:1", "consumer": uid("vm")})
    assert reply.status_code == 201
    held = fleet.get(f"/allocations/{uid('vm')}").json()
    assert (held["project_id"], held["user_id"]) == ("admin", "admin")


def test_what_fits_nowhere_is_refused_with_the_reason(fleet: Client) -> None:
    reply = claim(fleet, "resources=VCPU:9")
    assert reply.status_code == 409
    problem = reply.json()
    assert problem["detail"] == problem["explanation"]["summary"]
    assert problem["explanation"]["relaxations"][0]["words"] == "2 hosts fit if VCPU:9 becomes 8"


def test_a_refusal_does_not_wait_for_a_long_explanation(
    fleet: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explanations, "relaxations_in", endless)
    reply = claim(fleet, "resources=VCPU:9")
    assert reply.status_code == 409
    explanation = reply.json()["explanation"]
    assert explanation["cut_short"] is True
    assert explanation["summary"] == reply.json()["detail"]


def test_a_refusal_comes_even_if_there_is_no_time_to_explain_it(
    fleet: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explanations, "funnel", endless)
    reply = claim(fleet, "resources=VCPU:9")
    assert (reply.status_code, reply.json()["detail"]) == (409, "Nothing fits.")
    assert decided(fleet) == []


def test_a_consumer_that_holds_something_is_left_alone(fleet: Client) -> None:
    assert claim(fleet, "resources=VCPU:1", consumer=uid("vm")).status_code == 201
    reply = claim(fleet, "resources=VCPU:1", consumer=uid("vm"))
    assert reply.status_code == 409
    assert "holds something already" in reply.json()["detail"]


@pytest.mark.parametrize(
    ("document", "word"),
    [
        ({"query": "resources=VCPU"}, "resources"),
        ({"query": "resources=VCPU:1", "consumer": "x"}, "consumer"),
        ({"query": "resources=CUSTOM_NONE:1"}, "CUSTOM_NONE"),
        ({"query": "resources=VCPU:1", "consumers": 1}, "consumers"),
        ({"query": "resources=VCPU:1", "project_id": "a\0b"}, "NUL"),
    ],
)
def test_claims_that_are_none(fleet: Client, document: dict[str, Any], word: str) -> None:
    reply = fleet.call("POST", CLAIMS, {**OWNER, **document})
    assert reply.status_code == 400
    assert word in reply.json()["detail"]


async def taken(client: Client) -> None:
    document = {
        "allocations": {uid("host1"): {"resources": {"VCPU": 8}}},
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
        **OWNER,
    }
    reply = await client.send("PUT", f"/allocations/{uid('other')}", document)
    assert reply.status_code == 204


async def taken_away(client: Client) -> None:
    reply = await client.send("DELETE", f"/resource_providers/{uid('host1')}")
    assert reply.status_code == 204


@pytest.mark.parametrize("happens", [taken, taken_away])
def test_where_somebody_was_faster_the_next_best_place_is_claimed(
    fleet: Client,
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[[Client], Coroutine[Any, Any, None]],
) -> None:
    find = candidates.find_for
    looked: list[Any] = []

    async def meanwhile(*args: Any, **more: Any) -> Any:
        found = await find(*args, **more)
        if not looked:
            await happens(fleet)
        looked.append(found)
        return found

    monkeypatch.setattr(candidates, "find_for", meanwhile)
    reply = claim(fleet, "resources=VCPU:6")
    assert reply.status_code == 201
    assert list(reply.json()["allocations"]) == [uid("host2")]
    assert len(looked) == 1, "the next of the candidates that were found"


def test_who_is_outrun_every_time_is_not_refused(
    serve: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve(limits=RequestLimits(search_seconds=0.1))
    load(client, tree("host1", inventories={"VCPU": 8}))
    find = candidates.find_for
    first: list[Any] = []

    async def out_of_date(*args: Any, **more: Any) -> Any:
        if not first:
            first.append(await find(*args, **more))
            await taken(client)
        return first[0]

    monkeypatch.setattr(candidates, "find_for", out_of_date)
    reply = claim(client, "resources=VCPU:8")
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
    assert "others were faster" in reply.json()["detail"]


def test_nobody_is_refused_while_units_are_free(client: Client) -> None:
    load(client, *(tree(f"host{n:03}", inventories={"FPGA": 1}) for n in range(60)))
    body = {"query": "resources=FPGA:1", **OWNER}

    async def claims() -> list[int]:
        return [(await client.send("POST", CLAIMS, body)).status_code for _ in range(3)]

    async def clients() -> list[list[int]]:
        return await asyncio.gather(*(claims() for _ in range(16)))

    assert client.run(clients()) == [[201] * 3] * 16
    left = client.get("/allocation_candidates?resources=FPGA:1").json()["allocation_requests"]
    assert len(left) == 60 - 48


def test_a_decision_tells_what_was_chosen_and_passed_over(fleet: Client) -> None:
    claim(fleet, "resources=VCPU:6", consumer=uid("vm"))
    (decision,) = decided(fleet)
    assert decision["query"] == "resources=VCPU:6"
    assert (decision["consumer"], decision["outcome"]) == (uid("vm"), "claimed")
    assert decision["words"] == "Took candidate 1 of 2."
    assert decision["chosen"]["allocations"][uid("host1")]["name"] == "host1"
    (other,) = decision["passed_over"]
    assert (other["position"], list(other["allocations"])) == (2, [uid("host2")])


def put(client: Client, consumer: str, candidate: dict[str, Any]) -> int:
    reply = client.call(
        "PUT",
        f"/allocations/{consumer}",
        {
            "allocations": candidate["allocations"],
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
            **OWNER,
        },
    )
    status: int = reply.status_code
    return status


def test_candidates_and_a_claim_in_two_calls_make_a_decision_too(fleet: Client) -> None:
    query = "resources=VCPU:6&limit=5"
    found = fleet.get(f"/allocation_candidates?{query}").json()["allocation_requests"]
    assert put(fleet, uid("vm1"), found[1]) == 204
    assert put(fleet, uid("vm2"), found[1]) == 409
    # Nobody waits for the record of a refusal; what is written later is read later.
    claim(fleet, "resources=VCPU:1", consumer=uid("vm3"))
    _, refused, claimed = decided(fleet)
    assert (claimed["query"], claimed["chosen"]["position"]) == (query, 2)
    assert (refused["outcome"], refused["consumer"]) == ("refused", uid("vm2"))
    assert "VCPU" in refused["words"]


def test_a_claim_of_what_nobody_asked_for_is_no_decision(fleet: Client) -> None:
    fleet.get("/allocation_candidates?resources=VCPU:6")
    own = {"allocations": {uid("host1"): {"resources": {"VCPU": 5}}}}
    assert put(fleet, uid("vm"), own) == 204
    assert decided(fleet) == []


def test_decisions_are_listed_newest_first_in_pages(fleet: Client) -> None:
    consumers = [uid(f"vm{n}") for n in range(5)]
    for consumer in consumers:
        claim(fleet, "resources=VCPU:1", consumer=consumer)
    page = decided(fleet, "?limit=2")
    assert [one["consumer"] for one in page] == [consumers[4], consumers[3]]
    rest = decided(fleet, f"?before={page[-1]['id']}")
    assert [one["consumer"] for one in rest] == consumers[2::-1]
    (one,) = decided(fleet, f"?consumer={consumers[2]}")
    assert one["consumer"] == consumers[2]


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=1001", "before=-1", "since=1"])
def test_pages_that_are_none(fleet: Client, query: str) -> None:
    assert fleet.get(f"{DECISIONS}?{query}").status_code == 400


def test_the_record_is_bounded(fleet: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "KEPT", 2)
    for number in range(4):
        claim(fleet, "resources=VCPU:1", consumer=uid(f"vm{number}"))
    assert [one["consumer"] for one in decided(fleet)] == [uid("vm3"), uid("vm2")]


def claim_once(client: Client, key: str, query: str = "resources=VCPU:1", **more: Any) -> Any:
    body = {"query": query, **OWNER, **more}
    return client.call("POST", CLAIMS, body, idempotency_key=key)


def used(client: Client) -> int:
    summaries = client.get("/allocation_candidates?resources=VCPU:1").json()["provider_summaries"]
    return sum(one["resources"]["VCPU"]["used"] for one in summaries.values())


def test_a_claim_that_is_sent_again_with_its_key_gets_the_first_answer(fleet: Client) -> None:
    first, second = claim_once(fleet, "k1"), claim_once(fleet, "k1")
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert used(fleet) == 1
    assert claim_once(fleet, "k2").json()["consumer"] != first.json()["consumer"]
    assert used(fleet) == 2


def test_a_key_is_of_one_request_and_of_one_caller(fleet: Client) -> None:
    first = claim_once(fleet, "k1").json()
    reused = claim_once(fleet, "k1", "resources=VCPU:2")
    assert reused.status_code == 422
    assert "'k1'" in reused.json()["detail"]
    body = {"query": "resources=VCPU:1", **OWNER}
    other = fleet.call("POST", CLAIMS, body, idempotency_key="k1", x_auth_token="admin:other")
    assert other.status_code == 201
    assert other.json()["consumer"] != first["consumer"]
    assert used(fleet) == 2


def test_the_same_claim_sent_at_once_holds_once(fleet: Client) -> None:
    body = {"query": "resources=VCPU:1", **OWNER}

    async def at_once() -> list[Any]:
        sent = (fleet.send("POST", CLAIMS, body, idempotency_key="k1") for _ in range(8))
        return await asyncio.gather(*sent)

    replies = fleet.run(at_once())
    assert {reply.status_code for reply in replies} == {201}
    assert len({reply.content for reply in replies}) == 1
    assert used(fleet) == 1


def test_what_was_refused_may_be_tried_again_with_its_key(fleet: Client) -> None:
    for name in ("a", "b"):
        assert claim(fleet, "resources=VCPU:8", consumer=uid(name)).status_code == 201
    assert claim_once(fleet, "k1").status_code == 409
    assert fleet.call("DELETE", f"/allocations/{uid('a')}").status_code == 204
    assert claim_once(fleet, "k1").status_code == 201


def test_a_key_is_forgotten_after_a_day(fleet: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    claim_once(fleet, "k1")
    monkeypatch.setattr(idempotency, "KEPT_SECONDS", 0)
    claim_once(fleet, "k1")
    assert used(fleet) == 2


@pytest.mark.parametrize("key", ["x" * 201, "a\tb"])
def test_keys_that_are_none(fleet: Client, key: str) -> None:
    reply = claim_once(fleet, key)
    assert reply.status_code == 400
    assert "idempotency-key" in reply.json()["detail"]
    assert used(fleet) == 0
