"""What a hundred open consoles cost: candidate queries with and without them, turn by turn.

In every turn the fleet changes all the time: a claim, some queries, a claim, until the time of the
turn is over, so there is something to tell the consoles twice a second. Queries are compared by the
processor time of the server for each of them, streams included, and by how long they took. What a
console costs by itself is seen on a server that does nothing but a few claims a second.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.paths import ROOT

from ..growth import Claims, ask, cpu_seconds
from ..queries import FULL_VM, Query
from ..servers import Server

CONSOLES = 100
TURNS = 5
TURN_SECONDS = 4.0
CALM_CLAIMS = 12
CALM_SECONDS = 0.25
"""Between two of them, on a server that does nothing else."""
QUERY = Query("NUMA", FULL_VM, 10)
QUERIES_PER_CLAIM = 10


@dataclass(slots=True)
class Turns:
    """What was measured in all turns of a kind."""

    query_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    """Of the server, for each query, the claims and everything else included; by turn."""
    calm_cpu: list[float] = field(default_factory=list)
    """Seconds of processor time in a second with a few claims, by turn."""
    seconds: float = 0.0

    @property
    def median_ms(self) -> float:
        return statistics.median(self.query_ms)

    @property
    def median_cpu_ms(self) -> float:
        return statistics.median(self.cpu_ms)


@dataclass(frozen=True, slots=True)
class ConsoleLoad:
    consoles: int
    alone: Turns
    watched: Turns
    bytes_per_second: float
    """To one console."""
    changes_per_second: float

    @property
    def slower(self) -> float:
        """The share by which a query costs more while the consoles are open."""
        return self.watched.median_cpu_ms / self.alone.median_cpu_ms - 1

    @property
    def later(self) -> float:
        """The share by which its answer takes longer."""
        return self.watched.median_ms / self.alone.median_ms - 1

    @property
    def console_cpu_ms(self) -> float:
        """Of processor time that one open console costs the server in a second."""
        more = statistics.median(self.watched.calm_cpu) - statistics.median(self.alone.calm_cpu)
        return more * 1000 / self.consoles


def measure(server: Server, claims: Claims, consoles: int = CONSOLES) -> ConsoleLoad:
    alone, watched = Turns(), Turns()
    turn(server, claims, Turns())
    heard = Heard()
    for _ in range(TURNS):
        turn(server, claims, alone)
        with listening(server.port, consoles, heard):
            turn(server, claims, watched)
    per_console = consoles * watched.seconds
    return ConsoleLoad(
        consoles, alone, watched, heard.size / per_console, heard.changes / per_console
    )


def turn(server: Server, claims: Claims, into: Turns) -> None:
    client = server.client()
    began, before, asked = time.perf_counter(), cpu_seconds(server), 0
    while time.perf_counter() - began < TURN_SECONDS:
        claims.claim()
        for _ in range(QUERIES_PER_CLAIM):
            start = time.perf_counter()
            ask(client, QUERY.path)
            into.query_ms.append((time.perf_counter() - start) * 1000)
            asked += 1
    used = cpu_seconds(server) - before
    into.cpu_ms.append(used * 1000 / asked)
    into.calm_cpu.append(calm(server, claims))
    into.seconds += time.perf_counter() - began
    client.close()


def calm(server: Server, claims: Claims) -> float:
    began, before = time.perf_counter(), cpu_seconds(server)
    for _ in range(CALM_CLAIMS):
        claims.claim()
        time.sleep(CALM_SECONDS)
    return (cpu_seconds(server) - before) / (time.perf_counter() - began)


@dataclass(slots=True)
class Heard:
    size: int = 0
    changes: int = 0


@contextmanager
def listening(port: int, count: int, heard: Heard) -> Iterator[None]:
    """So many consoles, which all stay open to the end."""
    command = [sys.executable, "-m", "bench.console.listeners", str(port), str(count)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=Path(ROOT), stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield
        process.stdin.write("end\n")
        process.stdin.flush()
        size, changes, ended = map(int, process.stdout.readline().split())
        assert not ended, f"{ended} of {count} streams were cut"
        heard.size += size
        heard.changes += changes
