"""Whatever is long in a request or an answer is handled in steps, with others served in between."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from dovetail.aio.pace import Pace
from tests.rest.client import Client
from tests.rest.fleets import load, tree, uid

HOSTS = 300
MANY = 3_000


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Grows with every step after which others may have their turn."""
    taken: list[None] = []
    give_way = Pace.give_way

    async def counted(pace: Pace) -> None:
        taken.append(None)
        await give_way(pace)

    monkeypatch.setattr(Pace, "give_way", counted)
    return taken


@pytest.fixture
def fleet(client: Client) -> Client:
    load(
        client,
        *(tree(f"h{n}", inventories={"VCPU": 8}, traits=[f"CUSTOM_{n}"]) for n in range(HOSTS)),
    )
    return client


CANDIDATES = "/allocation_candidates?resources=VCPU:1"


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("/resource_providers", "1.39"),
        ("/traits", "1.39"),
        (CANDIDATES, "1.39"),
        (CANDIDATES, "1.17"),
        (f"{CANDIDATES}&rank=spread&scores=1", "1.39"),
    ],
)
def test_lists(fleet: Client, steps: list[None], path: str, version: str) -> None:
    assert fleet.get(path, version=version).status_code == 200
    assert len(steps) >= HOSTS


def test_names_and_questions(fleet: Client, steps: list[None]) -> None:
    names = {"providers": [f"h{n}" for n in range(HOSTS)]}
    reply = fleet.call("POST", "/dovetail/v1/names", names)
    assert len(reply.json()["providers"]) == HOSTS
    assert len(steps) >= HOSTS
    steps.clear()
    reply = fleet.call("POST", "/dovetail/v1/whatif", {"query": "resources=VCPU:1"})
    assert len(reply.json()["provider_summaries"]) == HOSTS
    assert len(steps) >= HOSTS


def claim(count: int) -> dict[str, Any]:
    return {
        "allocations": {uid(str(n)): {"resources": {"VCPU": 1}} for n in range(count)},
        "project_id": "p",
        "user_id": "u",
        "consumer_type": "INSTANCE",
        "consumer_generation": None,
    }


def stock(count: int) -> dict[str, Any]:
    return {
        "resource_provider_generation": 0,
        "inventories": {f"CUSTOM_{n}": {"total": 1} for n in range(count)},
    }


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", f"/allocations/{uid('c')}", claim(MANY)),
        ("POST", "/allocations", {uid(str(n)): claim(1) for n in range(MANY)}),
        ("PUT", f"/resource_providers/{uid('h0')}/inventories", stock(MANY)),
        ("POST", "/reshaper", {"inventories": {uid("h0"): stock(MANY)}, "allocations": {}}),
    ],
    ids=["claim", "claims", "inventories", "reshaping"],
)
def test_bodies(fleet: Client, steps: list[None], method: str, path: str, body: Any) -> None:
    assert fleet.call(method, path, body).status_code < 500
    assert len(steps) >= MANY


def test_long_answers_have_their_length_and_come_in_pieces(fleet: Client) -> None:
    many = tree("pool", *(tree(f"d{n}", inventories={"VGPU": 1}) for n in range(MANY)))
    load(fleet, many)
    reply = fleet.get("/resource_providers")
    assert int(reply.headers["content-length"]) == len(reply.content)
    assert len(reply.content) > 10 * 128 * 2**10
    assert len(reply.json()["resource_providers"]) == HOSTS + MANY + 1
    assert orjson.loads(reply.content) == reply.json()
