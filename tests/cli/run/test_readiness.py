"""What systemd and Prometheus see of a started server."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.cli.run.test_serve import running

OPEN = ("--auth", "noauth2", "--policy", "open", "--metrics", "public")


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The end of the notification socket that systemd would read."""
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(address))
        listener.settimeout(60)
        monkeypatch.setitem(os.environ, "NOTIFY_SOCKET", str(address))
        yield listener


@pytest.mark.parametrize("workers", ["1", "2"])
def test_readiness_is_told_and_metrics_are_those_of_all_workers(
    tmp_path: Path, manager: socket.socket, workers: str
) -> None:
    with running(*OPEN, "--workers", workers, cwd=tmp_path) as serving:
        url = serving.url
        assert manager.recv(100) == b"READY=1"
        seen = counted(url)
        for _ in range(10):
            # A connection each, so that every worker gets some.
            httpx2.get(f"{url}/resource_providers", headers={"x-auth-token": "admin"})
        assert counted(url) == seen + 10


def counted(url: str) -> float:
    name = (
        'dovetail_request_duration_seconds_count{method="GET",'
        'route="/resource_providers",status="2xx"} '
    )
    lines = httpx2.get(f"{url}/metrics").text.splitlines()
    return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))
