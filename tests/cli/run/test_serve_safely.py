"""The server process with everything that guards it: TLS, tokens, rate limit, audit log."""

from __future__ import annotations

import json
import signal
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner

from dovetail.cli.main import main
from dovetail.rest.auth.tokens import fingerprint
from tests.rest.certificates import Authority
from tests.support.paths import DOVETAIL
from tests.support.processes import Process, reserved_port

ADMIN = {"x-auth-token": "secret"}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "authority")


@pytest.fixture
def server(tmp_path: Path, authority: Authority) -> Iterator[tuple[Process, httpx2.Client]]:
    authority.sign("first", "server")
    (tmp_path / "tokens.toml").write_text(
        f"[[tokens]]\nuser = 'ops'\nroles = ['admin']\nsha256 = '{fingerprint('secret')}'"
    )
    options = (
        "--tls-cert server.crt --tls-key server.key --tokens tokens.toml --audit-log audit.jsonl "
        "--rate-limit 1000/s"
    )
    trust = ssl.create_default_context(cafile=str(authority.file))
    with reserved_port() as port:
        command = [DOVETAIL, "serve", "--port", str(port), *options.split()]
        process = Process(command, tmp_path / "log", cwd=tmp_path, own_group=True)
        with process, httpx2.Client(base_url=f"https://127.0.0.1:{port}", verify=trust) as client:
            until(lambda: client.get("/livez").status_code == 200)
            yield process, client


def until(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        with suppress(httpx2.TransportError):
            if condition():
                return
        time.sleep(0.1)
    pytest.fail("waited for a minute")


def audited(path: Path) -> list[str]:
    return [json.loads(line)["path"] for line in path.read_text().splitlines()]


def test_a_guarded_server_and_what_is_changed_while_it_serves(
    server: tuple[Process, httpx2.Client], tmp_path: Path, authority: Authority
) -> None:
    process, client = server
    log, moved = tmp_path / "audit.jsonl", tmp_path / "audit.1"
    assert client.post("/resource_providers", json={"name": "a"}, headers=ADMIN).is_success
    log.rename(moved)
    process.send_signal(signal.SIGHUP)
    until(log.exists)
    assert client.delete("/traits/CUSTOM_X", headers=ADMIN).status_code == 404
    assert (audited(moved), audited(log)) == (["/resource_providers"], ["/traits/CUSTOM_X"])
    other = Authority(tmp_path, "other")
    other.sign("second", "server")
    with httpx2.Client(verify=ssl.create_default_context(cafile=str(other.file))) as newcomer:
        assert newcomer.get(f"{client.base_url}/livez").status_code == 200
    (tmp_path / "tokens.toml").write_text("")
    # The open connection goes on with the certificate it began with, but not with the token.
    assert client.get("/resource_providers", headers=ADMIN).status_code == 401
    assert process.is_running


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--auth noauth2 --tls-cert x.pem", "needs both --tls-cert and --tls-key"),
        ("--auth noauth2 --tls-cert x.pem --tls-key y.pem", "x.pem, y.pem: [Errno 2]"),
        ("--auth noauth2 --audit-log nowhere/audit.jsonl", "nowhere/audit.jsonl: No such file"),
        ("--auth noauth2 --rate-limit 10", "--rate-limit: '10' is not text of the form"),
        ("--auth noauth2,tokens", "noauth2 believes every caller"),
        ("--auth tokens,oidc --tokens t.toml --oidc-issuer https://i.example", "token file t.toml"),
        ("--auth oidc --oidc-issuer https://i.example", "needs --oidc-issuer URL and"),
        ("--auth oidc --oidc-algorithms HS256", "--oidc-algorithms: ['HS256'] is not a list"),
        ("--auth keystone", "needs --keystone-url URL"),
        ("--auth magic", "--auth: ['magic'] is not a list, each one of keystone, noauth2"),
    ],
)
def test_what_it_refuses_to_guard_itself_with(
    options: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["serve", *options.split()])
    assert result.exit_code != 0
    assert complaint in result.output
