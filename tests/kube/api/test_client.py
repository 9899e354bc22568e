"""The client when things go wrong: what the server says and what the network does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from dovetail.kube.api import session
from dovetail.kube.api.client import KubeClient, connect
from dovetail.kube.api.http1 import HttpConnection
from dovetail.kube.api.limits import DEFAULT_LIMITS, ClientLimits
from dovetail.kube.api.port import (
    ApiConflict,
    ApiError,
    ApiGone,
    ApiNotFound,
    ApiUnreachable,
    WatchEvent,
)
from dovetail.podfit.objects import Node, Pod
from tests.support.kube.scripted import (
    Answer,
    Script,
    ScriptedServer,
    client_of,
    kubeconfig,
    no,
    ok,
    streamed,
)

NODE = {"metadata": {"name": "n", "resourceVersion": "7"}}


@asynccontextmanager
async def connected(
    directory: Path, script: Script, limits: ClientLimits = DEFAULT_LIMITS, **user: Any
) -> AsyncIterator[tuple[KubeClient, ScriptedServer]]:
    async with (
        asyncio.timeout(60),
        client_of(directory, script, user, limits) as (client, server),
    ):
        yield client, server


def in_turn(*answers: Answer) -> Script:
    left = iter(answers)
    return lambda asked: next(left)


async def watched(client: KubeClient) -> list[tuple[str, str]]:
    found = []
    async with aclosing(client.watch(Node, "5")) as changes:
        async for each in changes:
            found.append((each.type, each.version))
    return found


def line(kind: str, version: str) -> bytes:
    return json.dumps(
        {"type": kind, "object": {"metadata": {"name": "n", "resourceVersion": version}}}
    ).encode()


@pytest.mark.parametrize(
    ("code", "error"),
    [(400, ApiError), (403, ApiError), (404, ApiNotFound), (409, ApiConflict), (410, ApiGone)],
)
async def test_a_refusal_says_what_the_server_said(
    tmp_path: Path, code: int, error: type[ApiError]
) -> None:
    async with connected(tmp_path, lambda asked: no(code, "Because", "so it is")) as (
        client,
        _server,
    ):
        with pytest.raises(error, match="so it is") as refused:
            await client.get(Node, "n")
        assert type(refused.value) is error
        assert (refused.value.code, refused.value.reason) == (code, "Because")


async def test_a_refusal_by_something_that_is_no_api_server_is_told_too(tmp_path: Path) -> None:
    async with connected(tmp_path, lambda asked: ok(b"<html>bad gateway", "502 Bad Gateway")) as (
        client,
        _server,
    ):
        with pytest.raises(ApiError, match="<html>") as refused:
            await client.get(Node, "n")
        assert refused.value.code == 502


async def test_told_to_wait_it_waits_and_asks_again(tmp_path: Path) -> None:
    busy = no(429, Retry_After="0")
    async with connected(tmp_path, in_turn(busy, busy, ok(NODE))) as (client, server):
        assert (await client.get(Node, "n")).metadata.resource_version == "7"
        assert len(server.asked) == 3


async def test_told_to_wait_for_ever_it_gives_up(tmp_path: Path) -> None:
    async with connected(tmp_path, lambda asked: no(429, Retry_After="0")) as (client, server):
        with pytest.raises(ApiError) as refused:
            await client.get(Node, "n")
        assert refused.value.code == 429
        assert len(server.asked) == DEFAULT_LIMITS.retries + 1


@pytest.mark.parametrize(
    ("early", "later"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\n", b""),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", b""),
        (b"", b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"),
    ],
    ids=["100", "103", "408 after the answer"],
)
async def test_only_the_answer_to_a_request_answers_it(
    tmp_path: Path, early: bytes, later: bytes
) -> None:
    async with connected(tmp_path, lambda asked: early + ok(NODE) + later) as (client, _server):
        for _ in range(3):
            assert (await client.get(Node, "n")).metadata.resource_version == "7"


@pytest.mark.parametrize(
    ("limit", "answer"),
    [
        ("body_bytes", ok(b" " * 2000)),
        ("head_bytes", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2000),
        ("head_bytes", b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500),
    ],
    ids=["body", "header", "headers"],
)
async def test_an_answer_without_end_is_not_read_to_the_end(
    tmp_path: Path, limit: str, answer: bytes
) -> None:
    async with connected(tmp_path, lambda asked: answer, ClientLimits(**{limit: 1000})) as (
        client,
        _server,
    ):
        with pytest.raises(ApiUnreachable, match="more than 1000 bytes"):
            await client.get(Node, "n")


async def test_a_line_without_end_is_not_read_to_the_end(tmp_path: Path) -> None:
    answer = streamed(b"x" * 600, b"x" * 600, whole=False)
    async with connected(tmp_path, lambda asked: answer, ClientLimits(line_bytes=1000)) as (
        client,
        _server,
    ):
        with pytest.raises(ApiError, match="more than 1000 bytes"):
            await watched(client)


async def test_a_connection_whose_answer_was_not_read_is_not_used_again(tmp_path: Path) -> None:
    async with connected(tmp_path, lambda asked: ok(NODE)) as (client, _server):
        pool = client._session._pool
        async with pool.exchange() as connection:
            await connection.ask(b"GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
            assert connection._is_whole
        assert not pool._idle


async def test_connections_are_used_again_but_not_when_they_are_closed(tmp_path: Path) -> None:
    async with connected(tmp_path, lambda asked: ok(NODE)) as (client, server):
        for _ in range(5):
            await client.get(Node, "n")
        assert len(server.connections) == 1
        server.connections[0].close()
        await asyncio.sleep(0.05)
        await client.get(Node, "n")
        assert len(server.connections) == 2
        await asyncio.gather(*(client.get(Node, "n") for _ in range(200)))
        assert len(server.connections) <= 65


@pytest.mark.parametrize(
    "answer",
    [None, b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{"],
    ids=["closed", "not HTTP", "cut short"],
)
async def test_no_whole_answer_is_none(tmp_path: Path, answer: Answer) -> None:
    closing = answer is not None

    async with connected(tmp_path, lambda asked: answer) as (client, server):
        asking = asyncio.create_task(client.get(Node, "n"))
        if closing:
            while not server.asked:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            server.connections[0].close()
        with pytest.raises(ApiUnreachable):
            await asking


async def test_nobody_there_is_unreachable(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(json.dumps(kubeconfig("http://127.0.0.1:1", {})))

    async with connect(str(file)) as client:
        with pytest.raises(ApiUnreachable, match=r"127\.0\.0\.1:1"):
            await client.get(Node, "n")


async def test_an_answer_that_does_not_come_is_waited_for_only_so_long(tmp_path: Path) -> None:
    limits = ClientLimits(answer_seconds=0.05, silence_seconds=0.05)
    quiet = streamed(line("ADDED", "6") + b"\n", whole=False)

    async with connected(
        tmp_path, lambda asked: quiet if "watch" in asked.target else b"", limits
    ) as (client, _server):
        with pytest.raises(ApiUnreachable, match="no answer"):
            await client.get(Node, "n")
        with pytest.raises(ApiUnreachable, match="no word"):
            await watched(client)


async def test_a_watch_does_not_wait_for_the_rest_of_a_refusal(tmp_path: Path) -> None:
    half = b"HTTP/1.1 500 Oh\r\nContent-Length: 500\r\n\r\n{"

    async with connected(tmp_path, lambda asked: half, ClientLimits(answer_seconds=0.05)) as (
        client,
        _server,
    ):
        with pytest.raises(ApiUnreachable, match="no answer"):
            await watched(client)


async def test_a_watch_asks_for_what_comes_after_a_version_and_for_bookmarks(
    tmp_path: Path,
) -> None:
    text = b"\n".join([line("ADDED", "6"), line("MODIFIED", "7"), line("BOOKMARK", "9"), b""])

    async with connected(tmp_path, lambda asked: streamed(text)) as (client, server):
        assert await watched(client) == [("ADDED", "6"), ("MODIFIED", "7"), ("BOOKMARK", "9")]
        target = server.asked[0].target
        assert target.startswith("/base/api/v1/nodes?")
        assert "resourceVersion=5" in target
        assert "allowWatchBookmarks=true" in target
        assert "timeoutSeconds=" in target


class Parts:
    """A connection on which a text comes in parts."""

    def __init__(self, text: bytes, size: int) -> None:
        self._text, self._size = text, size

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        for at in range(0, len(self._text), self._size):
            yield self._text[at : at + self._size]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
async def test_lines_are_whole_however_they_come(size: int) -> None:
    parts = cast("HttpConnection", Parts(b"first\nsecond\n\nlast\ncut o", size))
    found = [each async for each in session.lines(parts)]
    assert found == [b"first", b"second", b"", b"last"]


async def test_who_reads_slowly_holds_up_the_server_and_gets_everything(tmp_path: Path) -> None:
    # More than the kernel takes off the server's hands.
    padding = b" " * 20_000
    many = [line("ADDED", str(n)) + padding + b"\n" for n in range(10, 1000)]

    async with connected(tmp_path, lambda asked: streamed(b"".join(many))) as (client, server):
        found = 0
        async with aclosing(client.watch(Node, "5")) as changes:
            async for each in changes:
                assert int(each.version) == 10 + found
                found += 1
                if found == 1:
                    await asyncio.sleep(0.3)
                    held = server.connections[0].transport.get_write_buffer_size()
        assert found == len(many)
        assert held > 0


async def test_a_bookmark_of_pods_is_an_empty_shell(tmp_path: Path) -> None:
    shell = {
        "metadata": {"resourceVersion": "9", "creationTimestamp": None},
        "spec": {"containers": None},
        "status": {},
    }
    told = json.dumps({"type": "BOOKMARK", "object": shell}).encode() + b"\n"

    async with (
        connected(tmp_path, lambda asked: streamed(told)) as (client, _server),
        aclosing(client.watch(Pod, "5")) as changes,
    ):
        assert [each async for each in changes] == [WatchEvent("BOOKMARK", "9")]


@pytest.mark.parametrize("told", [b"{", b"[]", b'{"metadata": {"name": 5}}'])
async def test_what_cannot_be_read_is_an_error_of_the_api(tmp_path: Path, told: bytes) -> None:
    async with connected(tmp_path, lambda asked: ok(told)) as (client, _server):
        with pytest.raises(ApiError, match="Node") as refused:
            await client.get(Node, "n")
        assert refused.value.reason == "Unreadable"


@pytest.mark.parametrize("way", ["in the stream", "at once"])
async def test_a_version_that_is_too_old_is_gone(tmp_path: Path, way: str) -> None:
    status = {"code": 410, "reason": "Expired", "message": "too old resource version"}
    told = json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
    answer = streamed(told) if way == "in the stream" else no(410, "Expired", "too old resource")

    async with connected(tmp_path, lambda asked: answer) as (client, _server):
        with pytest.raises(ApiGone, match="too old resource"):
            await watched(client)


async def test_a_watch_that_is_cut_is_not_one_that_ended(tmp_path: Path) -> None:
    async with (
        connected(tmp_path, lambda asked: streamed(line("ADDED", "6") + b"\n", whole=False)) as (
            client,
            server,
        ),
        aclosing(client.watch(Node, "5")) as changes,
    ):
        assert (await anext(changes)).type == "ADDED"
        server.connections[0].close()
        with pytest.raises(ApiUnreachable):
            await anext(changes)


def page(names: str, following: str = "") -> bytes:
    items = [{"metadata": {"name": name}} for name in names]
    return ok({"metadata": {"resourceVersion": "9", "continue": following}, "items": items})


async def test_pages_that_expire_are_asked_for_anew_and_at_once(tmp_path: Path) -> None:
    async with connected(
        tmp_path, in_turn(page("ab", "next/1"), no(410, "Expired"), page("abcd"))
    ) as (client, server):
        listing = await client.list(Pod, namespace="here", labels="a=b", fields="c=d")
        assert [each.metadata.name for each in listing.items] == ["a", "b", "c", "d"]
        assert listing.resource_version == "9"
        first, second, third = (asked.target for asked in server.asked)
        where = "/base/api/v1/namespaces/here/pods?labelSelector=a%3Db&fieldSelector=c%3Dd"
        assert first == f"{where}&limit=500"
        assert second == f"{where}&limit=500&continue=next%2F1"
        assert third == where


async def test_no_items_are_no_items(tmp_path: Path) -> None:
    async with connected(
        tmp_path, lambda asked: ok({"metadata": {"resourceVersion": "1"}, "items": None})
    ) as (client, _server):
        assert (await client.list(Node)).items == []


async def test_an_answer_larger_than_what_is_buffered_comes_whole(tmp_path: Path) -> None:
    large = {"metadata": {"name": "n", "annotations": {"x": "y" * 5_000_000}}}

    async with connected(tmp_path, lambda asked: ok(large)) as (client, _server):
        node = await client.get(Node, "n")
        assert len(node.metadata.annotations["x"]) == 5_000_000


async def test_who_gives_up_waiting_does_not_leave_half_an_answer_to_the_next(
    tmp_path: Path,
) -> None:
    async with connected(tmp_path, lambda asked: b"" if "slow" in asked.target else ok(NODE)) as (
        client,
        server,
    ):
        asking = asyncio.create_task(client.get(Node, "slow"))
        while not server.asked:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.wait([asking])
        assert (await client.get(Node, "n")).metadata.resource_version == "7"
        assert len(server.connections) == 2
