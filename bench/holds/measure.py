"""Asks for everything, one request after another, and tells how long each kept the event loop."""

import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import orjson
from tests.support.paths import ROOT
from tests.support.processes import reserved_port

from ..client import TIMEOUT
from ..loading import load_in_bulk
from ..report import progress, table
from ..servers import START_SECONDS, Server
from .probes import Probe, headers_of, probes
from .ticking_server import LONGEST_HOLD

BAR_SECONDS = 0.1
"""No request may keep the event loop for longer, in processor time."""
SETTLE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Hold:
    probe: Probe
    status: int
    answer_bytes: int
    seconds: float
    cpu_seconds: float
    wall_seconds: float
    gc_seconds: float


def measure(hosts: int, only: str = "") -> list[Hold]:
    with ticking() as server:
        progress(f"loading {hosts:,} hosts")
        load_in_bulk(server, hosts)
        client = HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)
        ask(client, Probe("/readyz", "GET", "/readyz"))
        found = []
        for probe in probes():
            if re.search(only, f"{probe.method} {probe.route} {probe.what}"):
                found.append(ask(client, probe))
        return found


@contextmanager
def ticking() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="dovetail-holds-") as name, reserved_port() as port:
        directory = Path(name)
        command = [
            *(sys.executable, "-m", "bench.holds.ticking_server"),
            *(f"sqlite:///{directory / 'dovetail.db'}", str(port)),
        ]
        log = directory / "server.log"
        with Server(command, port, log, cwd=ROOT, start_seconds=START_SECONDS) as server:
            yield server


def ask(client: HTTPConnection, probe: Probe) -> Hold:
    body = None if probe.body is None else probe.body()
    exchange(client, "GET", LONGEST_HOLD)
    start = time.perf_counter()
    status, answer = exchange(client, probe.method, probe.path, body, headers_of(probe))
    seconds = time.perf_counter() - start
    # A hold at the end of the answer is told by the tick after it.
    time.sleep(SETTLE_SECONDS)
    _, told = exchange(client, "GET", LONGEST_HOLD)
    longest = orjson.loads(told)
    return Hold(probe, status, len(answer), seconds, longest["cpu"], longest["wall"], longest["gc"])


def exchange(
    client: HTTPConnection,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, bytes]:
    client.request(method, path, body, headers or {})
    response = client.getresponse()
    return response.status, response.read()


def report(holds: Sequence[Hold], over_milliseconds: float) -> str:
    shown = sorted(
        (hold for hold in holds if hold.cpu_seconds * 1000 >= over_milliseconds),
        key=lambda hold: -hold.cpu_seconds,
    )
    rows = [
        (
            f"{hold.probe.method} {hold.probe.route} {hold.probe.what}".strip(),
            str(hold.status),
            f"{hold.answer_bytes:,}",
            f"{hold.seconds * 1000:,.0f} ms",
            f"{hold.wall_seconds * 1000:,.0f} ms",
            f"{hold.gc_seconds * 1000:,.0f} ms",
            f"{hold.cpu_seconds * 1000:,.0f} ms",
        )
        for hold in shown
    ]
    columns = (
        "request",
        "status",
        "bytes",
        "answered in",
        "lag",
        "longest gc",
        "longest hold (CPU)",
    )
    failed = [hold for hold in holds if hold.status >= 500]
    above = [hold for hold in holds if hold.cpu_seconds > BAR_SECONDS]
    summary = (
        f"{len(holds)} requests; {len(above)} hold it for more than {BAR_SECONDS * 1000:.0f} ms, "
        f"{len(failed)} end in 5xx"
    )
    return "\n".join(
        [
            table("Longest holds of the event loop", columns, rows),
            summary,
            *(f"5xx: {hold.probe.method} {hold.probe.route} {hold.probe.what}" for hold in failed),
        ]
    )
