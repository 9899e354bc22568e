"""The server process itself: how it starts, whom it refuses to serve, how it ends."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner

from dovetail.cli.main import main
from tests.support import server
from tests.support.paths import DOVETAIL
from tests.support.server import Server


@contextmanager
def running(*options: str, cwd: Path) -> Iterator[Server]:
    """Leads a process group; what it says on standard error is in the file "errors"."""
    command = [DOVETAIL, "serve", *options]
    errors = cwd / "errors"
    with server.running(command, cwd / "log", cwd=cwd, errors=errors, own_group=True) as started:
        yield started


def test_tokens_made_by_the_command_open_the_door(tmp_path: Path) -> None:
    made = subprocess.run(
        [DOVETAIL, "token", "ops", "--role", "admin"], text=True, capture_output=True, check=True
    )
    (tmp_path / "tokens.toml").write_text(made.stdout)
    token = made.stderr.split()[-1]
    assert token not in made.stdout
    with running("--tokens", "tokens.toml", cwd=tmp_path) as serving:
        url = serving.url
        listing = f"{url}/resource_providers"
        assert httpx2.get(listing).status_code == 401
        assert httpx2.get(listing, headers={"x-auth-token": "admin"}).status_code == 401
        assert httpx2.get(listing, headers={"x-auth-token": token}).status_code == 200
    assert (tmp_path / "dovetail.db").exists()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_sigterm_ends_it_and_what_was_acknowledged_stays(tmp_path: Path, workers: str) -> None:
    options = ("--auth", "noauth2", "--policy", "open", "--workers", workers)
    with running(*options, cwd=tmp_path) as serving:
        url = serving.url
        headers = {"x-auth-token": "admin"}
        made = httpx2.post(f"{url}/resource_providers", json={"name": "host"}, headers=headers)
        assert made.status_code == 201
        serving.send_signal(signal.SIGTERM)
        assert serving.wait(120) in {0, -signal.SIGTERM}
        output = serving.output
    lines = [json.loads(line) for line in output.splitlines()]
    requests = [line for line in lines if line["event"] == "request"]
    assert any(line["path"] == "/resource_providers" for line in requests)
    assert all(line["request_id"].startswith("req-") for line in requests)
    with running(*options, cwd=tmp_path) as serving:
        url = serving.url
        found = httpx2.get(f"{url}/resource_providers", headers=headers).json()
        assert [p["name"] for p in found["resource_providers"]] == ["host"]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_ends_it_without_complaint(tmp_path: Path, workers: str) -> None:
    with running("--auth", "noauth2", "--workers", workers, cwd=tmp_path) as serving:
        url = serving.url
        serving.signal_group(signal.SIGINT)
        code = serving.wait(120)
    errors = (tmp_path / "errors").read_text()
    assert (code, errors) == (0, f"Dovetail listens on {url}\n")


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        options = ["--auth", "noauth2", "--database", f"sqlite:///{tmp_path}/x.db"]
        result = CliRunner().invoke(main, ["serve", "--port", str(port), *options])
    assert result.exit_code == 6
    assert f"cannot listen on 127.0.0.1, port {port}: Address already in use" in result.output


def test_the_demo_fleet_answers_the_commands_it_shows(tmp_path: Path) -> None:
    with running("--auth", "noauth2", "--policy", "open", "--demo", cwd=tmp_path) as serving:
        url = serving.url
        query = "resources_VM=VCPU:8,MEMORY_MB:16384&resources_ACC=FPGA:1&same_subtree=_VM,_ACC"
        found = httpx2.get(
            f"{url}/allocation_candidates?{query}",
            headers={"x-auth-token": "x", "openstack-api-version": "placement 1.39"},
        ).json()
        assert len(found["allocation_requests"]) == 39


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--auth", "noauth2", "--host", "0.0.0.0"], "noauth2-beyond-loopback"),
        ([], "--auth tokens needs --tokens FILE"),
        (["--auth", "noauth2", "--database", "mysql://x"], "is no database URL"),
        (["--auth", "noauth2", "--policy", "lax"], "'lax' is not one of"),
    ],
)
def test_what_it_refuses_to_start_with(options: list[str], complaint: str) -> None:
    result = CliRunner().invoke(main, ["serve", *options])
    assert result.exit_code != 0
    assert complaint in result.output


def test_db_upgrade_and_check(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    before = CliRunner().invoke(main, ["db", "check", "--database", url])
    assert (before.exit_code, "no tables" in before.output) == (1, True)
    assert CliRunner().invoke(main, ["db", "upgrade", "--database", url]).exit_code == 0
    assert CliRunner().invoke(main, ["db", "check", "--database", url]).exit_code == 0
