"""The certificate that is served changes for new connections, and never for a worse one."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from dovetail.kube.machines.webhook.certificates import (
    LEAF,
    LEAF_KEY,
    KeyedCertificate,
    Secret,
    new_authority,
    new_leaf,
    pem_bundle,
    pem_key,
)
from dovetail.kube.machines.webhook.tls import ServedCertificate
from dovetail.kube.runtime.serving import BadListening
from tests.support.loops import eventually

HOST = "127.0.0.1"
DAY = timedelta(days=1)
NOW = datetime.now(UTC).replace(microsecond=0)
AUTHORITY = new_authority(NOW, DAY)


def leaf() -> KeyedCertificate:
    return new_leaf(AUTHORITY, [HOST], NOW, DAY)


def pem(found: KeyedCertificate) -> tuple[bytes, bytes]:
    return pem_bundle([found.certificate]), pem_key(found.key)


@asynccontextmanager
async def listening(served: ServedCertificate) -> AsyncIterator[int]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(echo, HOST, 0, ssl=served.context) as server:
        yield server.sockets[0].getsockname()[1]


async def connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """As an API server that trusts the authority."""
    trusting = ssl.create_default_context(cadata=pem_bundle([AUTHORITY.certificate]).decode())
    return await asyncio.open_connection(HOST, port, ssl=trusting)


def shown(writer: asyncio.StreamWriter) -> bytes:
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    return found


async def seen(port: int) -> bytes:
    _, writer = await connected(port)
    try:
        return shown(writer)
    finally:
        writer.close()
        await writer.wait_closed()


def der(found: KeyedCertificate) -> bytes:
    return found.certificate.public_bytes(Encoding.DER)


async def test_new_connections_get_the_new_certificate_and_open_ones_go_on() -> None:
    served, first, second = ServedCertificate(), leaf(), leaf()
    served.load(*pem(first))
    async with listening(served) as port:
        reader, writer = await connected(port)
        assert shown(writer) == der(first)
        served.load(*pem(second))
        assert await seen(port) == der(second)
        writer.write(b"still there\n")
        assert await reader.readline() == b"still there\n"
        writer.close()
        await writer.wait_closed()


async def test_a_pair_that_does_not_go_together_changes_nothing() -> None:
    served, first, second = ServedCertificate(), leaf(), leaf()
    served.load(*pem(first))
    mixed = (pem(second)[0], pem(first)[1])
    for chain, key in (mixed, (b"", b""), (pem(second)[0], b""), (b"nonsense", pem(second)[1])):
        with pytest.raises(BadListening):
            served.load(chain, key)
    async with listening(served) as port:
        assert await seen(port) == der(first)


def secret(data: dict[str, bytes]) -> Secret:
    return msgspec.structs.replace(Secret(), data=data)


async def test_what_the_secret_says_is_served_and_an_empty_one_changes_nothing() -> None:
    served, found = ServedCertificate(), leaf()
    served.on_secret(None, secret({}))
    assert not served.is_loaded
    chain, key = pem(found)
    full = secret({LEAF: chain, LEAF_KEY: key})
    served.on_secret(secret({}), full)
    await served.until_loaded()
    for worse in (None, secret({}), secret({LEAF: chain}), secret({LEAF: b"", LEAF_KEY: key})):
        served.on_secret(full, worse)
    async with listening(served) as port:
        assert await seen(port) == der(found)


async def test_files_are_read_again_when_they_change(tmp_path: Path) -> None:
    served, first, second = ServedCertificate(), leaf(), leaf()
    cert, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    with pytest.raises(BadListening, match=r"tls\.crt"):
        served.load_files(cert, key)
    write(cert, key, first)
    served.load_files(cert, key)
    following = asyncio.create_task(served.follow_files(cert, key, 0.01))
    async with listening(served) as port:
        assert await seen(port) == der(first)
        # One after the other: what is between them must not be served.
        cert.write_bytes(pem(second)[0])
        await asyncio.sleep(0.05)
        assert await seen(port) == der(first)
        key.write_bytes(pem(second)[1])
        await eventually(lambda: served.pem.startswith(pem(second)[0]))
        assert await seen(port) == der(second)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


def write(cert: Path, key: Path, found: KeyedCertificate) -> None:
    chain, secret_key = pem(found)
    cert.write_bytes(chain)
    key.write_bytes(secret_key)
