"""Eight clients, tight hardware, and servers that die by SIGKILL every few seconds.

Whatever happens, no inventory is used above its capacity, what was acknowledged is there to the
unit, what was released is gone, and a write that nobody answered happened wholly or not at all.

Clients are answered for DOVETAIL_STRESS_SECONDS by each backend, 12 by default. For the long run,
with its figures:

    DOVETAIL_STRESS_SECONDS=60 .venv/bin/pytest -s tests/stress
"""

from __future__ import annotations

import contextlib
import os
import random
from concurrent.futures import Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.stress import fleet
from tests.stress.audit import audit, outdated, overdrawn
from tests.stress.client import PATIENCE, remember, run
from tests.stress.history import History, merged
from tests.stress.tables import inspect
from tests.stress.wire import LostError, UnreachableError, Wire
from tests.support import databases
from tests.support.server import Server, dovetail

SECONDS = float(os.environ.get("DOVETAIL_STRESS_SECONDS", "12"))
CLIENTS = 8

START_SECONDS = 120.0
"""How long a server may take to start beside eight clients, on a busy machine."""

pytestmark = pytest.mark.timeout(SECONDS + PATIENCE + 3 * START_SECONDS)


def test_two_replicas_on_postgresql(postgres: str, tmp_path: Path) -> None:
    stress(databases.empty(postgres), [tmp_path / "a.log", tmp_path / "b.log"])


def test_one_server_on_sqlite(tmp_path: Path) -> None:
    stress(f"sqlite:///{tmp_path}/ledger.db", [tmp_path / "server.log"])


def stress(database: str, logs: list[Path]) -> None:
    """As many servers as there are logs."""
    with contextlib.ExitStack() as stack:
        replicas = [stack.enter_context(dovetail(database, log, START_SECONDS)) for log in logs]
        ports = [server.port for server in replicas]
        with contextlib.closing(Wire(ports, random.Random())) as wire:
            fleet.load(wire)
        history, kills = fight(replicas)
        faults = []
        for server in replicas:
            with contextlib.closing(Wire([server.port], random.Random())) as wire:
                faults += outdated(wire)
            server.kill()
        replicas[0].start()
        with contextlib.closing(Wire(ports[:1], random.Random())) as wire:
            faults += audit(wire, history) + inspect(database)
    show(history, kills)
    assert faults == []
    assert kills > 0
    assert history.counts["claims"] > 0
    assert history.counts["conflicts"] + history.counts["full"] > 0, "there was no contention"


def fight(replicas: list[Server]) -> tuple[History, int]:
    ports = [server.port for server in replicas]
    context = get_context("spawn")
    line = context.Barrier(CLIENTS + 1)
    with ProcessPoolExecutor(CLIENTS, context, remember, (line,)) as pool:
        clients = [pool.submit(run, f"client-{n}", ports, SECONDS) for n in range(CLIENTS)]
        line.wait(PATIENCE)
        kills, faults = kill_during(clients, replicas)
        history = merged([client.result() for client in clients])
    history.faults += faults
    return history, kills


def kill_during(clients: list[Future[History]], replicas: list[Server]) -> tuple[int, list[str]]:
    """Kills at random, looks for oversubscription between; how many kills, and what was seen."""
    chance = random.Random(0)
    kills = 0
    faults: list[str] = []
    with contextlib.closing(Wire([server.port for server in replicas], chance)) as wire:
        while wait(clients, timeout=chance.uniform(1.5, 3.5)).not_done:
            server = chance.choice(replicas)
            server.kill()
            kills += 1
            faults += look(wire)
            server.start()
            faults += look(wire)
    return kills, faults


def look(wire: Wire) -> list[str]:
    with contextlib.suppress(LostError, UnreachableError):
        return overdrawn(wire)
    return []


def show(history: History, kills: int) -> None:
    figures = ", ".join(f"{count} {what}" for what, count in sorted(history.counts.items()))
    print(f"\n{history.counts['claims'] / SECONDS:.0f} claims/s, {kills} kills: {figures}")
    print(f"{len(history.held)} held at the end, {len(history.doubts)} writes in doubt")
