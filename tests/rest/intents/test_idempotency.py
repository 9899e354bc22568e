"""Idempotency keys: the same request gets the same answer, whatever happened in between."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from dovetail.ledger import Ledger, open_ledger
from dovetail.rest.auth.noauth import NoAuth
from dovetail.rest.doors import DOORS
from dovetail.rest.server.app import Application
from dovetail.rest.server.backend import ServerBackend
from dovetail.rest.server.policy import RULE_SETS
from dovetail.service.snapshots import SnapshotKeeper
from tests.rest.client import Client
from tests.rest.intents.client import APPS, IntentsClient, make_group, named


def test_the_same_request_is_answered_as_before(intents: IntentsClient) -> None:
    first = intents.post("projects", named("p"), idempotency_key="one")
    again = intents.post("projects", named("p"), idempotency_key="one")
    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["location"] == first.headers["location"]
    assert intents.get("projects").json() == [named("p")]
    assert intents.post("projects", named("p")).status_code == 409


def test_even_if_what_it_made_is_gone(intents: IntentsClient) -> None:
    intents.post("projects", named("p"), idempotency_key="one")
    assert intents.delete("projects/p").status_code == 204
    assert intents.post("projects", named("p"), idempotency_key="one").status_code == 201
    assert intents.get("projects").json() == []


def test_another_request_under_the_same_key_is_refused(intents: IntentsClient) -> None:
    intents.post("projects", named("p"), idempotency_key="one")
    other = intents.post("projects", named("q"), idempotency_key="one")
    assert other.status_code == 422
    elsewhere = intents.post("cluster-providers", named("p"), idempotency_key="one")
    assert elsewhere.status_code == 422
    assert intents.get("cluster-providers").json() == []


def test_keys_are_each_callers_own(intents: IntentsClient) -> None:
    intents.post("projects", named("p"), idempotency_key="one", x_auth_token="admin:a")
    other = intents.post("projects", named("q"), idempotency_key="one", x_auth_token="admin:b")
    assert other.status_code == 201


def test_what_was_refused_is_not_remembered(intents: IntentsClient) -> None:
    body = named("c", compositeAppVersion="v1")
    path = "projects/p/composite-apps"
    assert intents.post(path, body, idempotency_key="one").status_code == 404
    intents.made("projects", named("p"))
    assert intents.post(path, body, idempotency_key="one").status_code == 201


def test_a_form_is_the_same_whatever_its_boundary(intents: IntentsClient) -> None:
    make_group(intents)
    pod = b"apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n"
    replies = [
        intents.form("POST", APPS, named("a"), file, idempotency_key="one")
        for file in (pod, pod, pod + b"#")
    ]
    assert [each.status_code for each in replies] == [201, 201, 422]


@pytest.mark.parametrize("key", ["x" * 201, "a\tb"])
def test_keys_that_are_none(intents: IntentsClient, key: str) -> None:
    assert intents.post("projects", named("p"), idempotency_key=key).status_code == 400
    assert intents.get("projects").json() == []


def test_the_same_request_twice_at_once_is_answered_twice_the_same(
    ledger: Ledger, database_url: str
) -> None:
    """On both databases, over two servers."""
    other = open_ledger(database_url)
    clients = [IntentsClient(client_of(each)) for each in (ledger, other)]
    clients[0].made("projects", named("p"))
    try:
        for number in range(12):
            gate = threading.Barrier(2)
            with ThreadPoolExecutor(2) as pool:
                sent = [pool.submit(send_at, gate, each, f"v{number}") for each in clients]
            assert [each.result() for each in sent] == [201, 201]
    finally:
        for client in clients:
            client.http.close()
        other.close()


def send_at(gate: threading.Barrier, client: IntentsClient, version: str) -> int:
    gate.wait()
    body = named("c", compositeAppVersion=version)
    reply = client.post("projects/p/composite-apps", body, idempotency_key=version)
    return reply.status_code


def client_of(ledger: Ledger) -> Client:
    backend = ServerBackend(
        ledger=ledger,
        keeper=SnapshotKeeper(ledger),
        authenticator=NoAuth(),
        rules=RULE_SETS["legacy"],
    )
    return Client(Application(backend, DOORS))
