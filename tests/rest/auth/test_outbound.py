"""Asking other services: how long they may take, and who is on the way."""

from __future__ import annotations

import asyncio

import pytest

from dovetail.rest.auth.identity import AuthServiceUnreachable
from dovetail.rest.auth.outbound import Outbound
from tests.rest.auth.local_server import LocalServer

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n"


async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """An answer that goes on and on, never silent for long."""
    writer.write(HEAD)
    try:
        for _ in range(1000):
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.05)
    except ConnectionError:
        pass
    finally:
        writer.close()


async def test_an_answer_that_never_ends_is_given_up() -> None:
    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    outbound = Outbound("The issuer", None, timeout_seconds=0.3)
    try:
        with pytest.raises(AuthServiceUnreachable, match="cannot be reached: TimeoutError"):
            await outbound.get(f"http://127.0.0.1:{port}/")
    finally:
        await outbound.close()
        server.close()


async def test_plain_http_goes_past_the_proxies_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A proxy would see every token on the way to a Keystone on this machine."""
    seen: list[str] = []

    def proxy(_method: str, path: str, *_: object) -> tuple[int, dict[str, str], object]:
        seen.append(path)
        return 200, {}, {"from": "proxy"}

    asked, between = LocalServer(lambda *_: (200, {}, {"from": "server"})), LocalServer(proxy)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, between.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    async def ask() -> object:
        outbound = Outbound("Keystone", None, timeout_seconds=5)
        try:
            return await outbound.get(f"{asked.url}/v3")
        finally:
            await outbound.close()

    try:
        assert await ask() == {"from": "server"}
        assert seen == []
    finally:
        asked.stop()
        between.stop()
