"""gRPC servers at a port: plain and with TLS, and alone at it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest

from dovetail.wire.client import (
    EndpointError,
    GrpcEndpoint,
    TlsIdentity,
    TlsOptions,
    ask,
    connected,
)
from dovetail.wire.codec import Message
from dovetail.wire.rpc import Method, Served
from dovetail.wire.serving import CannotListen, serving
from tests.support.kube.pki import Authority


class Text(Message):
    text: Annotated[str, 1] = ""


SAY = Method("test.Echo", "Say", Text, Text)
LOOPBACK = "127.0.0.1"


async def echo(question: Text) -> Text:
    return question


async def said(endpoint: GrpcEndpoint) -> str:
    async with connected(endpoint) as channel:
        return (await ask(channel, SAY, Text("hello"), 30.0)).text


@pytest.mark.parametrize("host", [LOOPBACK, "::1"])
async def test_at_any_free_port(host: str) -> None:
    async with serving(host, 0, [Served(SAY, echo)]) as port:
        assert await said(GrpcEndpoint(host=host, port=port)) == "hello"


async def test_nobody_else_is_at_its_port() -> None:
    async with serving(LOOPBACK, 0, [Served(SAY, echo)]) as port:
        with pytest.raises(CannotListen, match=f"cannot serve at {LOOPBACK}:{port}"):
            async with serving(LOOPBACK, port, []):
                pass


async def test_with_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = (path.read_bytes() for path in authority.issue("controller"))
    identity = TlsIdentity(certificate=certificate, key=key)
    tls = TlsOptions(authority=authority.certificate.read_bytes())
    async with serving(LOOPBACK, 0, [Served(SAY, echo)], identity) as port:
        assert await said(GrpcEndpoint(host=LOOPBACK, port=port, tls=tls)) == "hello"
        with pytest.raises(EndpointError):
            await said(GrpcEndpoint(host=LOOPBACK, port=port))
