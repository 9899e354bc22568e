"""A ranking that is out of time answers with the best so far and says how much it left out."""

from __future__ import annotations

import httpx2
import pytest

from dovetail.engine.rank import best_per_tree
from dovetail.service import asking
from dovetail.service.time_budget import OutOfTime, TimeBudget
from tests.rest.client import Client
from tests.rest.fleets import load, tree, uid

HOSTS = 9
HEADER = "dovetail-unranked-trees"
RANKED = "resources=VCPU:1&rank=spread&limit=3"


class StepBudget(TimeBudget):
    """Over after some steps of a search, however fast the machine is."""

    most = 4
    _steps = 0

    async def yield_if_due(self) -> None:
        self._steps += 1
        if self._steps > self.most:
            raise OutOfTime
        await super().yield_if_due()


@pytest.fixture
def hurried(client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A server whose searches are out of time after some steps, each of which ranks two hosts."""
    load(client, *(tree(f"host{at:02}", inventories={"VCPU": 2 + at}) for at in range(HOSTS)))
    monkeypatch.setattr(best_per_tree, "CELLS_PER_STEP", 2)
    monkeypatch.setattr(asking, "TimeBudget", StepBudget)
    return client


def chosen(reply: httpx2.Response) -> list[str]:
    assert reply.status_code == 200, reply.text
    return [uuid for each in reply.json()["allocation_requests"] for uuid in each["allocations"]]


def largest_of(hosts: int) -> list[str]:
    """Spread prefers the hosts that stay emptiest, which are the largest."""
    return [uid(f"host{at:02}") for at in range(hosts - 1, hosts - 4, -1)]


def test_the_best_of_those_ranked_and_how_many_were_not(hurried: Client) -> None:
    reply = hurried.get(f"/allocation_candidates?{RANKED}")
    unranked = int(reply.headers[HEADER])
    assert 0 < unranked < HOSTS
    assert chosen(reply) == largest_of(HOSTS - unranked)


def test_the_next_goes_on_from_there_until_nothing_is_left_out(hurried: Client) -> None:
    left = [HOSTS]
    for _ in range(HOSTS):
        reply = hurried.get(f"/allocation_candidates?{RANKED}")
        left.append(int(reply.headers.get(HEADER, 0)))
        assert left[-1] < left[-2], "each looks at some that were not looked at"
        if not left[-1]:
            break
    assert HEADER not in reply.headers
    assert chosen(reply) == largest_of(HOSTS)


def test_what_if_says_so_too(hurried: Client) -> None:
    body = {"query": RANKED}
    reply = hurried.call("POST", "/dovetail/v1/whatif", body)
    unranked = int(reply.headers[HEADER])
    assert 0 < unranked < HOSTS
    assert chosen(reply) == largest_of(HOSTS - unranked)


def test_without_a_limit_there_is_no_best_so_far(
    hurried: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All candidates are sorted: some of them would be no answer."""
    monkeypatch.setattr(StepBudget, "most", 2)
    reply = hurried.get("/allocation_candidates?resources=VCPU:1&rank=spread")
    assert reply.status_code == 400
    assert "ask for fewer with `limit`" in reply.json()["errors"][0]["detail"]
    assert HEADER not in reply.headers


def test_an_answer_with_all_trees_ranked_does_not_speak_of_it(client: Client) -> None:
    load(client, tree("host", inventories={"VCPU": 2}))
    for query in (RANKED, "resources=VCPU:1"):
        assert HEADER not in client.get(f"/allocation_candidates?{query}").headers


def test_the_header_is_described(client: Client) -> None:
    paths = client.get("/dovetail/v1/openapi.json").json()["paths"]
    for answers in (
        paths["/allocation_candidates"]["get"]["responses"],
        paths["/dovetail/v1/whatif"]["post"]["responses"],
    ):
        assert [name.lower() for name in answers["200"]["headers"]] == [HEADER]
