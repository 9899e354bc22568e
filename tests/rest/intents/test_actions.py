"""Actions over HTTP: what they are asked for, and how their ends are answered."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.service.intents.ports import Infeasible, StatusQuery, WrongState
from dovetail.service.intents.settings import IntentSettings
from tests.rest.conftest import Make
from tests.rest.intents.client import GROUP, IntentsClient, named
from tests.rest.intents.fake_actions import FakeActions


@pytest.fixture
def actions() -> FakeActions:
    return FakeActions()


@pytest.fixture
def client(serve: Make, actions: FakeActions) -> IntentsClient:
    return IntentsClient(serve(intents=actions))


@pytest.mark.parametrize("verb", ["approve", "instantiate", "terminate", "stop"])
def test_what_is_accepted_is_told(client: IntentsClient, actions: FakeActions, verb: str) -> None:
    reply = client.call("POST", f"{GROUP}/{verb}")
    assert (reply.status_code, reply.json()) == (202, {"did": verb, "times": 1})
    assert actions.calls == [(verb, GROUP)]


def test_what_actions_are_asked_for(client: IntentsClient, actions: FakeActions) -> None:
    client.call("POST", f"{GROUP}/update")
    client.call("POST", f"{GROUP}/update?replace=true")
    client.post(f"{GROUP}/rollback", {"spec": {"revision": "3"}})
    client.get(f"{GROUP}/plan")
    client.get(f"{GROUP}/explain?app=fwall")
    client.get(f"{GROUP}/explain?app=fwall&cluster=p1%2Bc1")
    client.get(f"{GROUP}/status")
    client.get(f"{GROUP}/status?type=rsync&output=summary&app=a&app=b&cluster=p1%2Bc1")
    assert actions.calls == [
        ("update", GROUP, False),
        ("update", GROUP, True),
        ("rollback", GROUP, 3),
        ("plan", GROUP),
        ("explain", GROUP, "fwall", None),
        ("explain", GROUP, "fwall", "p1+c1"),
        ("status", GROUP, StatusQuery()),
        (
            "status",
            GROUP,
            StatusQuery(kind="deployed", output="summary", apps=("a", "b"), clusters=("p1+c1",)),
        ),
    ]


UNASKED: list[tuple[str, str, Any, int]] = [
    ("POST", f"{GROUP}/update?replace=maybe", None, 400),
    ("POST", f"{GROUP}/rollback", b"", 400),
    ("POST", f"{GROUP}/rollback", {"spec": {}}, 400),
    ("POST", f"{GROUP}/rollback", {"spec": {"revision": 0}}, 400),
    ("POST", f"{GROUP}/rollback", {"spec": {"revision": True}}, 400),
    ("POST", f"{GROUP}/rollback", b"{", 422),
    ("GET", f"{GROUP}/explain", None, 400),
    ("GET", f"{GROUP}/status?type=other", None, 400),
    ("GET", f"{GROUP}/status?output=other", None, 400),
    ("GET", f"{GROUP}/status?cluster=c1", None, 400),
    ("GET", f"{GROUP}/plan?colour=red", None, 400),
    ("POST", f"{GROUP.removesuffix('g')}a%2Fb/approve", None, 404),
]


@pytest.mark.parametrize("asked", UNASKED)
def test_what_cannot_be_asked(
    client: IntentsClient, actions: FakeActions, asked: tuple[str, str, Any, int]
) -> None:
    method, path, body, status = asked
    headers = {"content_type": "application/json"} if isinstance(body, bytes) else {}
    assert client.call(method, path, body, **headers).status_code == status
    assert actions.calls == []


def test_a_state_in_which_it_cannot_be_done(client: IntentsClient, actions: FakeActions) -> None:
    actions.error = WrongState("the group is not approved")
    reply = client.call("POST", f"{GROUP}/instantiate")
    assert (reply.status_code, reply.json()["detail"]) == (409, "the group is not approved")


def test_what_no_choice_of_clusters_serves(client: IntentsClient, actions: FakeActions) -> None:
    reasons = [{"app": "fwall", "cluster": "p1+c3", "reason": "cpu"}]
    actions.error = Infeasible("nowhere", reasons, candidates={"fwall": []})
    reply = client.call("POST", f"{GROUP}/instantiate")
    assert reply.status_code == 422
    assert (reply.json()["reasons"], reply.json()["candidates"]) == (reasons, {"fwall": []})


def test_an_action_is_done_once_under_one_key(client: IntentsClient, actions: FakeActions) -> None:
    replies = [
        client.call("POST", f"{GROUP}/instantiate", idempotency_key="k").json() for _ in range(2)
    ]
    assert replies == [{"did": "instantiate", "times": 1}] * 2
    assert len(actions.calls) == 1
    other = client.call("POST", f"{GROUP}/terminate", idempotency_key="k")
    assert other.status_code == 422


def test_a_server_that_deploys_nothing_says_so(intents: IntentsClient) -> None:
    assert intents.call("POST", f"{GROUP}/approve").status_code == 503
    assert intents.get(f"{GROUP}/plan").status_code == 503


def test_emco_answers_nothing_and_has_one_code_for_what_fails(
    serve: Make, actions: FakeActions
) -> None:
    settings = IntentSettings(emco_status_codes=True)
    client = IntentsClient(serve(intents=actions, intent_settings=settings))
    reply = client.call("POST", f"{GROUP}/approve")
    assert (reply.status_code, reply.content) == (202, b"")
    actions.error = WrongState("not approved")
    reply = client.call("POST", f"{GROUP}/instantiate")
    assert (reply.status_code, reply.text) == (500, "not approved\n")


# -- logical clouds ------------------------------------------------------------------------------

CLOUD = "projects/p/logical-clouds/l"


def test_a_logical_cloud_is_instantiated_and_terminated(intents: IntentsClient) -> None:
    intents.made("projects", named("p"))
    intents.made("projects/p/logical-clouds", named("l", namespace="edge", level="0"))
    assert intents.call("POST", f"{CLOUD}/instantiate").status_code == 400
    reference = named("r", clusterProvider="p1", cluster="c1")
    intents.made(f"{CLOUD}/cluster-references", reference)
    told = {"project": "p", "name": "l", "clusters": ["p1+c1"]}
    assert intents.get(f"{CLOUD}/status").json() == {**told, "state": "Created"}
    assert intents.call("POST", f"{CLOUD}/terminate").status_code == 409
    made = intents.call("POST", f"{CLOUD}/instantiate")
    assert (made.status_code, made.json()) == (202, {**told, "state": "Instantiated"})
    assert intents.call("POST", f"{CLOUD}/instantiate").status_code == 409
    shown = named("l", namespace="edge", level="0")
    assert intents.get(CLOUD).json() == shown
    assert intents.put(CLOUD, shown).status_code == 200
    assert intents.get(f"{CLOUD}/status").json()["state"] == "Instantiated"
    assert intents.delete(f"{CLOUD}/cluster-references/r").status_code == 204
    assert intents.delete(CLOUD).status_code == 409
    assert intents.call("POST", f"{CLOUD}/terminate").status_code == 202
    assert intents.delete(CLOUD).status_code == 204
