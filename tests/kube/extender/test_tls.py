"""The extender's files are read again: whom it trusts and what it shows need no restart."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from dovetail.kube.extender.certificates import certificates_text
from dovetail.kube.extender.tls import CERTIFICATE_ENDS, ExtenderTls
from dovetail.kube.manifests.installation import Installation
from dovetail.kube.runtime.serving import BadListening
from dovetail.kube.scheduler.settings import ExtenderSettings
from tests.support.loops import eventually

HOST = "127.0.0.1"
NAME = "dovetail-extender.dovetail.svc"
KEYS = ("tls.crt", "tls.key", "ca.crt")


class Sides:
    """A directory for each Secret, as kubelets mount them."""

    def __init__(self, directory: Path) -> None:
        self.server, self.client = directory / "server", directory / "client"
        self.renew()

    def renew(self) -> None:
        written = yaml.safe_load_all(certificates_text(Installation(), datetime.now(UTC)))
        for secret, where in zip(written, (self.server, self.client), strict=True):
            where.mkdir(exist_ok=True)
            for key, value in secret["data"].items():
                (where / key).write_bytes(base64.b64decode(value))

    def tls(self) -> ExtenderTls:
        cert, key, authority = (str(self.server / each) for each in KEYS)
        made = ExtenderTls.of(ExtenderSettings("any", cert, key, authority))
        assert made is not None
        return made

    def calling(self) -> ssl.SSLContext:
        """As kube-scheduler, with the files that it has now."""
        context = ssl.create_default_context(cafile=str(self.client / "ca.crt"))
        context.load_cert_chain(self.client / "tls.crt", self.client / "tls.key")
        return context


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    return Sides(tmp_path)


@asynccontextmanager
async def listening(tls: ExtenderTls) -> AsyncIterator[int]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(echo, HOST, 0, ssl=tls.context) as server:
        yield server.sockets[0].getsockname()[1]


async def is_answered(port: int, context: ssl.SSLContext, name: str = NAME) -> bool:
    try:
        reader, writer = await asyncio.open_connection(
            HOST, port, ssl=context, server_hostname=name
        )
    except (ssl.SSLError, ConnectionError):
        return False
    try:
        # With TLS 1.3 it is told only now that a certificate was not believed.
        writer.write(b"hello\n")
        return await reader.readline() == b"hello\n"
    except (ssl.SSLError, ConnectionError):
        return False
    finally:
        writer.close()


async def test_both_sides_believe_each_other_and_nobody_else(sides: Sides) -> None:
    async with listening(sides.tls()) as port:
        assert await is_answered(port, sides.calling())
        assert not await is_answered(port, sides.calling(), "other.dovetail.svc")
        anonymous = ssl.create_default_context(cafile=str(sides.client / "ca.crt"))
        assert not await is_answered(port, anonymous)
        server_as_client = ssl.create_default_context(cafile=str(sides.client / "ca.crt"))
        server_as_client.load_cert_chain(sides.server / "tls.crt", sides.server / "tls.key")
        assert not await is_answered(port, server_as_client)


async def test_what_was_trusted_before_is_not_any_more(sides: Sides) -> None:
    tls, before = sides.tls(), sides.calling()
    ends = CERTIFICATE_ENDS._value.get()
    async with listening(tls) as port:
        following = asyncio.create_task(tls.follow(0.01))
        assert await is_answered(port, before)
        await asyncio.sleep(1.1 - datetime.now(UTC).microsecond / 1e6)
        sides.renew()

        await eventually(lambda: CERTIFICATE_ENDS._value.get() > ends)
        assert await is_answered(port, sides.calling())
        assert not await is_answered(port, before)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def test_files_that_do_not_go_together_change_nothing(sides: Sides) -> None:
    tls, calling = sides.tls(), sides.calling()
    kept = (sides.server / "tls.key").read_bytes()
    async with listening(tls) as port:
        (sides.server / "tls.key").write_text("half")
        with pytest.raises(BadListening):
            tls.look()
        (sides.server / "ca.crt").unlink()
        with pytest.raises(BadListening):
            tls.look()
        assert await is_answered(port, calling)
        (sides.server / "tls.key").write_bytes(kept)
        (sides.server / "ca.crt").write_bytes((sides.client / "ca.crt").read_bytes())
        tls.look()
        assert await is_answered(port, calling)


def test_without_files_it_speaks_without(sides: Sides) -> None:
    assert ExtenderTls.of(ExtenderSettings()) is None
    with pytest.raises(BadListening, match="both a certificate and its key"):
        ExtenderTls.of(ExtenderSettings(cert=str(sides.server / "tls.crt")))
    with pytest.raises(BadListening, match=r"none\.crt"):
        ExtenderTls.of(ExtenderSettings(cert="none.crt", key="none.key"))
