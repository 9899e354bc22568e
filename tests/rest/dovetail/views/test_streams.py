"""Streams of a server process: they are read as they come, and nobody waits for them at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.rest.fleets import NDJSON
from tests.support import server

HEADERS = {"x-auth-token": "admin"}


@pytest.fixture
def started(tmp_path: Path) -> Iterator[server.Server]:
    with server.dovetail(f"sqlite:///{tmp_path}/ledger.db", tmp_path / "server.log") as one:
        yield one


def test_events_come_as_they_happen_until_the_server_stops(started: server.Server) -> None:
    url = f"{started.url}/dovetail/v1/map/events"
    with httpx2.stream("GET", url, headers=HEADERS, timeout=60) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        lines = stream.iter_lines()
        assert next(lines) == "event: hello"
        line = b'{"name": "h", "inventories": {"VCPU": 1}}'
        media = {**HEADERS, "content-type": NDJSON}
        httpx2.post(f"{started.url}/dovetail/v1/fleet", content=line, headers=media)
        assert next(line for line in lines if line.startswith("event")) == "event: reload"
        started.stop()
        with pytest.raises(httpx2.RemoteProtocolError):
            list(lines)
    assert "Cancel" not in started.log.read_text(encoding="utf-8")


def test_whoever_is_gone_is_not_told(started: server.Server) -> None:
    url = f"{started.url}/dovetail/v1/map/events"
    with httpx2.stream("GET", url, headers=HEADERS, timeout=60) as stream:
        next(stream.iter_lines())
    # The line is written when the stream has ended.
    started.await_ready(lambda: "/dovetail/v1/map/events" in started.log.read_text(), 60)
