"""Under which names a server answers that believes every caller, and what HTTP says of Host."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from starlette.requests import Request

from dovetail.rest.auth.hosts import AllowedHosts, refuse_unclear_host
from dovetail.rest.server.errors import HttpError
from tests.rest.conftest import Make
from tests.support import server
from tests.support.paths import DOVETAIL

ALLOWED = AllowedHosts("192.0.2.7", ["dovetail.example", "2001:DB8::7"])


def request(*hosts: str, version: str = "1.1", reached: str = "127.0.0.1") -> Request:
    headers = [(b"host", host.encode("latin-1")) for host in hosts]
    scope = {
        "type": "http",
        "headers": headers,
        "http_version": version,
        "server": (reached, 8778),
    }
    return Request(scope)


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST:8778", "localhost.", "127.0.0.1", "127.0.0.1:1", "[::1]"),
        *("[::1]:8778", "[0:0:0:0:0:0:0:1]", "192.0.2.7:80", "dovetail.example", "[2001:db8::7]"),
        "Dovetail.Example.:443",
    ],
)
def test_own_names_pass_whatever_the_port(host: str) -> None:
    ALLOWED.refuse_foreign(request(host))


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "localhost.evil.example", "evil.example:8778", "127.0.0.1.evil.example"),
        *("", "10.0.0.1", "[::2]", "notlocalhost", "0.0.0.0", "xn--lcalhost-0za"),
    ],
)
def test_foreign_names_are_misdirected(host: str) -> None:
    with pytest.raises(HttpError) as refused:
        ALLOWED.refuse_foreign(request(host))
    assert refused.value.status == 421
    assert "allowed_hosts" in refused.value.message


def test_the_address_that_was_reached_passes() -> None:
    """Probes of Kubernetes know a pod by its address."""
    ALLOWED.refuse_foreign(request("10.244.1.5:8778", reached="10.244.1.5"))
    ALLOWED.refuse_foreign(request("[fd00::5]:8778", reached="fd00::5"))


@pytest.mark.parametrize(
    "host", ["a b", "a@b", "a/b", "[::1", "::1", "localhost:x", "localhost:80:80", "local\\host"]
)
def test_a_host_that_cannot_be_read_is_refused(host: str) -> None:
    with pytest.raises(HttpError) as refused:
        refuse_unclear_host(request(host))
    assert refused.value.status == 400


def test_one_host_is_needed_and_no_two() -> None:
    for hosts, version in (((), "1.1"), (("localhost", "localhost"), "1.1"), (("a", "b"), "1.0")):
        with pytest.raises(HttpError) as refused:
            refuse_unclear_host(request(*hosts, version=version))
        assert refused.value.status == 400
    refuse_unclear_host(request(version="1.0"))


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/resource_providers", "errors"),
        ("/dovetail/v1/usage", "detail"),
        ("/v2/projects", "detail"),
        ("/nothing", "errors"),
    ],
)
def test_every_door_says_it_in_its_own_words(serve: Make, path: str, shape: str) -> None:
    client = serve(allowed_hosts=AllowedHosts("127.0.0.1"))
    reply = client.get(path, host="evil.example")
    assert reply.status_code == 421
    assert shape in reply.json()
    assert client.get(path, host="localhost:1234").status_code != 421


def test_probes_may_use_any_name(serve: Make) -> None:
    client = serve(allowed_hosts=AllowedHosts("127.0.0.1"))
    assert client.get("/livez", host="evil.example").status_code == 200
    assert client.get("/readyz", host="evil.example").status_code == 200


def test_whoever_has_to_show_a_token_may_use_any_name(serve: Make) -> None:
    assert serve().get("/resource_providers", host="evil.example").status_code == 200


def raw(port: int, *lines: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        head = (*lines, "x-auth-token: admin", "connection: close", "", "")
        connection.sendall("\r\n".join(head).encode())
        received = b""
        while part := connection.recv(65536):
            received += part
        return received


def test_a_server_without_authentication(tmp_path: Path) -> None:
    """As it is started: foreign hosts in all places where a request can name one."""
    database = ["--database", f"sqlite:///{tmp_path}/ledger.db"]
    options = ["--auth", "noauth2", "--policy", "open", "--allowed-hosts", "dovetail.example"]
    command = [DOVETAIL, "serve", "--host", "127.0.0.1", *database, *options]
    with server.running(command, tmp_path / "server.log") as running:
        port = running.port
        get = "GET /usages?project_id=p HTTP/1.1"
        version = "openstack-api-version: placement 1.39"
        for host, status in (
            (f"127.0.0.1:{port}", b"200"),
            ("localhost", b"200"),
            ("dovetail.example", b"200"),
            ("evil.example", b"421"),
        ):
            assert raw(port, get, version, f"host: {host}")[9:12] == status, host
        evil = f"GET http://evil.example:{port}/usages?project_id=p HTTP/1.1"
        assert raw(port, evil, version, "host: localhost")[9:12] == b"421"
        sly = "GET http://localhost@evil.example/usages?project_id=p HTTP/1.1"
        assert raw(port, sly, version, "host: localhost")[9:12] == b"421"
        own = f"GET http://localhost:{port}/usages?project_id=p HTTP/1.1"
        assert raw(port, own, version, "host: evil.example")[9:12] == b"200"
        assert raw(port, get, version)[9:12] == b"400"
        assert raw(port, get, version, "host: localhost", "host: evil.example")[9:12] == b"400"
        assert raw(port, "GET /usages?project_id=p HTTP/1.0", version)[9:12] == b"200"
