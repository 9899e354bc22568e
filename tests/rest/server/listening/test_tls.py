"""TLS with certificates that are replaced while it serves."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import uvloop

from dovetail.rest.server.listening.tls import BadTls, Certificates, tls_factory
from dovetail.rest.server.settings import TlsSettings
from tests.rest.certificates import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "authority")


class Echo(asyncio.Protocol):
    """Says back what it is told, on the transport that uvicorn uses."""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)


@contextmanager
def serving(settings: TlsSettings) -> Iterator[int]:
    """A TLS server on uvloop, in a thread; gives its port."""
    loop = uvloop.new_event_loop()
    listening = loop.create_server(Echo, "127.0.0.1", 0, ssl=Certificates(settings).context)
    server: Any = loop.run_until_complete(listening)
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.file))


@contextmanager
def connected(
    port: int, context: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> Iterator[ssl.SSLSocket]:
    with (
        socket.create_connection(("127.0.0.1", port), timeout=30) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as secure,
    ):
        yield secure


def said_back(connection: ssl.SSLSocket) -> bytes:
    connection.sendall(b"hello")
    return connection.recv(100)


def shown_name(connection: ssl.SSLSocket) -> str:
    certificate = connection.getpeercert()
    assert certificate is not None
    subject: Any = certificate["subject"]
    return str(dict(part[0] for part in subject)["commonName"])


def name_at(port: int, context: ssl.SSLContext) -> str:
    with connected(port, context) as connection:
        assert said_back(connection) == b"hello"
        return shown_name(connection)


def settings_of(chain: Path, key: Path, client_ca: Path | None = None) -> TlsSettings:
    ca = str(client_ca) if client_ca else None
    return TlsSettings(cert=str(chain), key=str(key), client_ca=ca)


def test_new_connections_get_the_new_certificate_and_old_ones_go_on(authority: Authority) -> None:
    context = trusting(authority)
    with serving(settings_of(*authority.sign("first", "server"))) as port:
        with connected(port, context) as old:
            assert (shown_name(old), said_back(old)) == ("first", b"hello")
            authority.sign("second", "server")
            assert name_at(port, context) == "second"
            assert said_back(old) == b"hello"
        authority.sign("third", "server")
        assert name_at(port, context) == "third"


def test_a_certificate_without_its_key_yet_is_not_taken(authority: Authority) -> None:
    chain, key = authority.sign("first", "server")
    new_chain, new_key = authority.sign("second", "new")
    context = trusting(authority)
    with serving(settings_of(chain, key)) as port:
        new_chain.replace(chain)
        assert name_at(port, context) == "first"
        new_key.replace(key)
        assert name_at(port, context) == "second"
        key.unlink()
        assert name_at(port, context) == "second"


def test_callers_need_a_certificate_of_the_authority_in_force(
    authority: Authority, tmp_path: Path
) -> None:
    first, second = Authority(tmp_path, "clients"), Authority(tmp_path, "others")
    anonymous, jo, al = (trusting(authority) for _ in range(3))
    jo.load_cert_chain(*first.sign("jo"))
    al.load_cert_chain(*second.sign("al"))
    with serving(settings_of(*authority.sign("server"), first.file)) as port:
        assert name_at(port, jo) == "server"
        for context in (anonymous, al):
            assert not gets_in(port, context)
        second.file.replace(first.file)
        assert gets_in(port, al)
        assert not gets_in(port, jo)


def test_a_session_begun_before_does_not_pass_by_the_authority_in_force(
    authority: Authority, tmp_path: Path
) -> None:
    first, second = Authority(tmp_path, "clients"), Authority(tmp_path, "others")
    jo = trusting(authority)
    jo.load_cert_chain(*first.sign("jo"))
    with serving(settings_of(*authority.sign("server"), first.file)) as port:
        with connected(port, jo) as connection:
            assert said_back(connection) == b"hello"
            session = connection.session
        second.file.replace(first.file)
        assert not gets_in(port, jo, session)


def test_certificates_of_callers_need_tls_1_3_and_others_1_2(authority: Authority) -> None:
    """Sessions of TLS 1.2 could be taken up again by callers whose authority is gone."""
    older = trusting(authority)
    older.maximum_version = ssl.TLSVersion.TLSv1_2
    older.load_cert_chain(*authority.sign("jo"))
    chain, key = authority.sign("server")
    with serving(settings_of(chain, key, authority.file)) as port:
        assert not gets_in(port, older)
    with serving(settings_of(chain, key)) as port:
        assert gets_in(port, older)


def gets_in(port: int, context: ssl.SSLContext, session: ssl.SSLSession | None = None) -> bool:
    with (
        suppress(ssl.SSLError, ConnectionError),
        connected(port, context, session) as connection,
    ):
        return said_back(connection) == b"hello"
    return False


def test_nothing_older_than_tls_1_2(authority: Authority) -> None:
    context = trusting(authority)
    with pytest.warns(DeprecationWarning, match="TLSv1 is deprecated"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with serving(settings_of(*authority.sign("server"))) as port:
        assert not gets_in(port, context)
        assert gets_in(port, trusting(authority))


def test_what_cannot_be_used_is_told(authority: Authority, tmp_path: Path) -> None:
    chain, key = authority.sign("server")
    _, other_key = authority.sign("other")
    (tmp_path / "noise.pem").write_text("noise")
    for settings in (
        TlsSettings(cert=str(chain)),
        TlsSettings(key=str(key)),
        TlsSettings(client_ca=str(authority.file)),
        settings_of(chain, tmp_path / "missing.key"),
        settings_of(chain, other_key),
        settings_of(tmp_path / "noise.pem", key),
        settings_of(chain, key, tmp_path / "noise.pem"),
    ):
        with pytest.raises(BadTls, match="TLS"):
            tls_factory(settings)
    assert tls_factory(TlsSettings()) is None
