"""Long documents are checked slice by slice, and it comes out the same."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dovetail.rest.placement import schemas
from dovetail.rest.server.pieces import slices as document_slices
from dovetail.rest.server.pieces.slices import CannotSlice, slices
from dovetail.rest.server.validation import Schema
from tests.rest.client import Client
from tests.rest.fleets import load, tree, uid

NEWEST = 39


def allocations(rng: random.Random, most: int) -> dict[str, Any]:
    return {
        uid(f"{rng.random()}"): {
            "resources": {f"CUSTOM_{n}": n + 1 for n in range(rng.randint(1, most))}
        }
        for _ in range(rng.randint(1, most))
    }


def claim(rng: random.Random, most: int) -> dict[str, Any]:
    return {
        "allocations": allocations(rng, most),
        "project_id": "p",
        "user_id": "u",
        "consumer_type": "INSTANCE",
        "consumer_generation": None,
        "mappings": {"_A": [uid(str(n)) for n in range(rng.randint(1, most))]},
    }


def claims(rng: random.Random, most: int) -> dict[str, Any]:
    return {uid(f"{rng.random()}"): claim(rng, most) for _ in range(rng.randint(1, most))}


def reshaping(rng: random.Random, most: int) -> dict[str, Any]:
    stock = {
        uid(f"{rng.random()}"): {
            "resource_provider_generation": 0,
            "inventories": {f"CUSTOM_{n}": {"total": 1} for n in range(rng.randint(1, most))},
        }
        for _ in range(rng.randint(1, most))
    }
    return {"inventories": stock, "allocations": claims(rng, most)}


CASES = {
    "put": (schemas.PUT_ALLOCATIONS.at(NEWEST), claim),
    "post": (schemas.POST_ALLOCATIONS.at(NEWEST), claims),
    "reshape": (schemas.RESHAPE.at(NEWEST), reshaping),
}


def spoil(rng: random.Random, document: Any) -> None:
    """Change one thing somewhere in it."""
    while True:
        places = list(document) if isinstance(document, dict) else list(range(len(document)))
        at = rng.choice(places)
        below = document[at]
        if not isinstance(below, dict | list) or not below or rng.random() < 0.2:
            break
        document = below
    if isinstance(document, dict) and rng.random() < 0.3:
        del document[at]
    else:
        document[at] = rng.choice([0, -1, "", "x", None, [], {}, {"a": 1}])


@pytest.mark.parametrize("case", CASES)
def test_a_document_is_good_if_and_only_if_all_its_slices_are(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_slices, "MOST_VALUES", 12)
    schema, make = CASES[case]
    rng, outcomes = random.Random(5), set()
    for number in range(150):
        document = make(rng, 20 if number % 3 else 5)
        if number % 2:
            spoil(rng, document)
        good = schema.complaint(document, long=True) is None
        assert good == all_good(schema, document), document
        outcomes.add(good)
    assert outcomes == {True, False}


def all_good(schema: Schema, document: Any) -> bool:
    try:
        return all(schema.complaint(each, long=True) is None for each in slices(document))
    except CannotSlice:
        return False


def test_slices_are_short() -> None:
    held = {uid(str(n)): {"resources": {"VCPU": 1}} for n in range(20_000)}
    document = {"allocations": {uid("a"): {"allocations": held}}, "inventories": held}
    cut = list(slices(document))
    assert len(cut) > 20
    assert max(map(values_in, cut)) <= 2 * document_slices.MOST_VALUES


def values_in(document: Any) -> int:
    if isinstance(document, dict):
        document = list(document.values())
    return 1 + sum(map(values_in, document)) if isinstance(document, list) else 1


def test_long_aggregates_are_unique_over_all_of_them(client: Client) -> None:
    load(client, tree("host"))
    path = f"/resource_providers/{uid('host')}/aggregates"
    many = [uid(str(n)) for n in range(5_000)]
    twice = {"aggregates": [*many, many[0]], "resource_provider_generation": 0}
    refused = client.call("PUT", path, twice)
    assert refused.status_code == 400
    assert "non-unique" in refused.text
    once = {"aggregates": many, "resource_provider_generation": 0}
    assert client.call("PUT", path, once).status_code == 200
    assert sorted(client.get(path).json()["aggregates"]) == sorted(many)


def test_one_bad_element_among_many_is_found_and_named(client: Client) -> None:
    document = claim(random.Random(1), 2) | {
        "allocations": {uid(str(n)): {"resources": {"VCPU": 1}} for n in range(5_000)}
    }
    document["allocations"][uid("4999")]["resources"]["VCPU"] = 0
    reply = client.call("PUT", f"/allocations/{uid('consumer')}", document)
    assert reply.status_code == 400
    assert uid("4999") in reply.text
    assert "less than the minimum" in reply.text
