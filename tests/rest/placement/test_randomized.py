"""max.randomize_allocation_candidates: equals come in another order each time, if asked for."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.rest.server.settings import RequestLimits
from tests.rest.client import Client
from tests.rest.conftest import Make
from tests.rest.fleets import load, tree, uid

HOSTS = 30
PATH = "/allocation_candidates?resources=VCPU:1"
RANDOM = RequestLimits(randomize_allocation_candidates=True)


@pytest.fixture
def random_client(serve: Make) -> Client:
    client = serve(limits=RANDOM)
    load(client, *(tree(f"host{n:02}", inventories={"VCPU": 1 + n // 15}) for n in range(HOSTS)))
    return client


def listed(client: Client, more: str = "") -> list[str]:
    found = client.get(PATH + more).json()["allocation_requests"]
    return [uuid for each in found for uuid in each["allocations"]]


def test_the_order_is_fixed_unless_it_is_set(random_client: Client, serve: Make) -> None:
    usual = serve()
    in_order = [uid(f"host{n:02}") for n in range(HOSTS)]
    assert listed(usual) == listed(usual) == in_order
    asked = [listed(random_client) for _ in range(3)]
    assert sorted(asked[0]) == sorted(in_order)
    assert len({tuple(each) for each in asked}) == 3


def test_a_limit_keeps_any_of_them(random_client: Client) -> None:
    seen = {uuid for _ in range(20) for uuid in listed(random_client, "&limit=3")}
    assert len(seen) > HOSTS / 2


def test_scores_go_with_their_candidates(random_client: Client) -> None:
    def scored(client: Client) -> list[tuple[int, str]]:
        reply: dict[str, Any] = client.get(f"{PATH}&rank=pack&scores=1").json()
        return [
            (each["scores"]["total"], uuid)
            for each in reply["allocation_requests"]
            for uuid in each["allocations"]
        ]

    first, second = scored(random_client), scored(random_client)
    assert first != second
    assert sorted(first) == sorted(second)
    assert [total for total, _ in first] == sorted((t for t, _ in first), reverse=True)
    assert len({total for total, _ in first}) == 2
