"""Documents of intents gone wrong: bodies, forms, addresses; refused in form, without a trace."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dovetail.intents.documents.kinds import KINDS, DocumentKind
from dovetail.rest.intents.multipart import FormPart, write_form
from tests.fuzz.conftest import SHARES
from tests.fuzz.examiner import SCALE
from tests.fuzz.json_noise import encoded, noisy
from tests.fuzz.message import Message, Reply, exchange
from tests.fuzz.names import NAMES
from tests.rest.intents.client import named
from tests.rest.intents.story import body_of, collection_of, one_of, parents_story
from tests.support import databases, server

JSON, PROBLEM = b"application/json", "application/problem+json"
TOKEN = (b"X-Auth-Token", b"admin")
RICH: dict[str, list[dict[str, Any]]] = {
    "app": [named("new", manifests="kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\n")],
    "app-intent": [
        named(
            "new",
            app="a",
            count=2,
            intent={
                "allOf": [
                    {"clusterProvider": "n", "cluster": "n"},
                    {"anyOf": [{"clusterProvider": "n", "clusterLabel": "n"}]},
                ]
            },
            preference=[[{"clusterProvider": "n", "cluster": "n"}]],
        )
    ],
    "cluster": [
        named("new", snapshot={"kind": "List", "apiVersion": "v1", "items": []}),
        named("new", kubeconfigRef="some", unreachable="lastKnown"),
    ],
    "controller": [
        named("new", host="h", port=1, type="placement", priority=1, contract="dovetail")
    ],
    "hpa-consumer": [named("new", consumer={"kind": "Job", "name": "j", "container-name": "x"})],
    "hpa-requirement": [
        named("new", allocatable=True, name="memory", requests=2, limits="3Gi", weight=3),
        named("new", allocatable=False, resource={"key": "k", "operator": "In", "values": ["v"]}),
        named(
            "new",
            allocatable=True,
            resource={
                "requests": 1,
                "selector": {
                    "resourceSelector": [
                        {"matchExpressions": [{"key": "Kind", "operator": "In", "values": ["g"]}]}
                    ]
                },
            },
        ),
    ],
}


class IntentsWorld:
    """A document of every kind, which have to be there after every request as they were."""

    def __init__(self, port: int, share: float) -> None:
        self.port, self.share = port, share
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        for method, path, body in parents_story():
            status, answer = self.call(method, f"/v2/{path}", body)
            assert status == 201, answer
        self.pristine = self.state()

    def close(self) -> None:
        self._connection.close()

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"x-auth-token": "admin", "content-type": "application/json"}
        payload = None if body is None else json.dumps(body)
        self._connection.request(method, path, payload, headers)
        response = self._connection.getresponse()
        content = response.read()
        return response.status, json.loads(content) if content else None

    def state(self) -> dict[str, Any]:
        return {kind.name: self.listed(kind) for kind in KINDS.values()}

    def listed(self, kind: DocumentKind) -> Any:
        status, found = self.call("GET", f"/v2/{collection_of(kind)}")
        assert status == 200, found
        return found

    def examples(self, count: int) -> settings:
        return settings(
            max_examples=max(1, int(count * self.share * (SCALE or 1))),
            derandomize=not SCALE,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )

    def examine(self, kind: DocumentKind, message: Message) -> Reply:
        """Sends it, judges the answer, and makes good what was let through."""
        reply = exchange(self.port, message.encoded(), message.method.decode())
        told = (message.encoded()[:2000], reply and (reply.status, reply.body[:1000]))
        assert reply is not None, told
        assert reply.status < 500, told
        if reply.status >= 400:
            assert reply.headers["content-type"] == PROBLEM, told
            assert json.loads(reply.body)["status"] == reply.status
        elif message.method == b"POST":
            status, answer = self.call("DELETE", reply.headers["location"])
            assert status == 204, (told, answer)
        elif message.method == b"PUT":
            status, answer = self.call("PUT", f"/v2/{one_of(kind)}", body_of(kind))
            assert status == 200, (told, answer)
        assert self.listed(kind) == self.pristine[kind.name], told
        return reply


@pytest.fixture(scope="module", params=SHARES)
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IntentsWorld]:
    directory: Path = tmp_path_factory.mktemp("fuzz_intents")
    model = request.getfixturevalue(f"{request.param}_with_tables")
    database = databases.copied(model, directory / "ledger.db")
    with server.dovetail(database, directory / "server.log") as examined:
        made = IntentsWorld(examined.port, SHARES[request.param])
        with closing(made):
            yield made


def sendable(kind: DocumentKind) -> list[dict[str, Any]]:
    """Documents that can be made beside the one that is there."""
    plain = body_of(kind)
    if kind.name == "cluster-label":
        return [{"clusterLabel": "new"}]
    if kind.name == "profile":
        plain = named("new", app="another")
    return [{**plain, "metadata": {"name": "new", "userData1": "x"}}, *RICH.get(kind.name, [])]


def posted(kind: DocumentKind, body: bytes, media: bytes = JSON) -> Message:
    target = f"/v2/{collection_of(kind)}".encode()
    return Message(b"POST", target, (TOKEN, (b"Content-Type", media)), body)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_requests_are_valid_before_they_are_bent(world: IntentsWorld, kind: DocumentKind) -> None:
    for body in sendable(kind):
        reply = world.examine(kind, posted(kind, encoded(body)))
        assert reply.status == 201, reply


def test_bent_documents(world: IntentsWorld) -> None:
    kinds = st.sampled_from([*KINDS.values()])

    @world.examples(900)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        kind = data.draw(kinds)
        body = data.draw(noisy(data.draw(st.sampled_from(sendable(kind)))))
        world.examine(kind, posted(kind, encoded(body)))

    check()
    assert world.state() == world.pristine


def test_bent_replacements(world: IntentsWorld) -> None:
    kinds = [kind for kind in KINDS.values() if not kind.is_settled_by_children]

    @world.examples(300)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        kind = data.draw(st.sampled_from(kinds))
        body = encoded(data.draw(noisy(body_of(kind))))
        message = posted(kind, body)._replace(method=b"PUT", target=f"/v2/{one_of(kind)}".encode())
        world.examine(kind, message)

    check()
    assert world.state() == world.pristine


def test_bent_forms(world: IntentsWorld) -> None:
    kinds = [KINDS["app"], KINDS["profile"], KINDS["cluster"]]
    file = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"

    @world.examples(300)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        kind = data.draw(st.sampled_from(kinds))
        document = encoded(sendable(kind)[0])
        media, form = write_form(
            [FormPart(name="metadata", content=document), FormPart(name="file", content=file)]
        )
        raw = bytearray(form)
        for _ in range(data.draw(st.integers(1, 4))):
            at = data.draw(st.integers(0, len(raw) - 1))
            till = at + data.draw(st.integers(0, 40))
            raw[at:till] = data.draw(
                st.one_of(st.binary(max_size=9), st.just(bytes(raw[at:till] * 2)))
            )
            raw = raw or bytearray(b"-")
        world.examine(kind, posted(kind, bytes(raw), media.encode()))

    check()
    assert world.state() == world.pristine


def test_bent_addresses(world: IntentsWorld) -> None:
    odd = st.one_of(st.sampled_from(NAMES), st.text(max_size=8))

    @world.examples(500)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        kind = data.draw(st.sampled_from([*KINDS.values()]))
        segments = f"v2/{one_of(kind)}".split("/")
        at = data.draw(st.integers(1, len(segments) - 1))
        name = data.draw(odd).encode("utf-8", "surrogatepass")
        segments[at] = quote(name, safe=data.draw(st.sampled_from(["", "/"])))
        query = data.draw(
            st.sampled_from(["", "?intent=%00", "?limit=x", "?after=1&limit=1", "?a"])
        )
        method = data.draw(st.sampled_from([b"GET", b"PUT", b"DELETE", b"POST"]))
        body = None if method in (b"GET", b"DELETE") else encoded(body_of(kind))
        headers = (TOKEN, *(((b"Content-Type", JSON),) if body is not None else ()))
        target = f"/{'/'.join(segments)}{query}".encode()
        reply = exchange(
            world.port, Message(method, target, headers, body).encoded(), method.decode()
        )
        assert reply is not None, target
        assert reply.status < 500 or (reply.status == 503 and b"deploys nothing" in reply.body), (
            target,
            reply,
        )
        if method != b"GET":
            assert world.listed(kind) == world.pristine[kind.name], (target, reply)

    check()
    assert world.state() == world.pristine
