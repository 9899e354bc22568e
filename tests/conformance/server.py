"""A new Dovetail for every test file or test, each with a copy of one ledger that is prepared.

Dovetail has its own environment, not the one that the runners need.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.paths import ROOT
from tests.support.processes import (
    STOP_SECONDS,
    Process,
    ProcessError,
    await_ready,
    reserved_port,
)
from tests.support.server import answers

PROGRAMS = ROOT / ".venv" / "bin"


@contextmanager
def prepared(database: str | None) -> Iterator[tuple[str, Path]]:
    """The URL of a ledger with its tables, and the socket of a nursery for servers.

    The ledger is in the database given, else in a file for the block.
    """
    with tempfile.TemporaryDirectory(prefix="dovetail-conformance-") as folder:
        url = database or f"sqlite:///{folder}/ledger.db"
        upgrade = [str(PROGRAMS / "dovetail"), "db", "upgrade", "--database", url]
        subprocess.run(upgrade, check=True, stdout=subprocess.DEVNULL)
        nursery = Path(folder) / "nursery"
        module = ["-m", "tests.conformance.serve", "--nursery", str(nursery)]
        program = [str(PROGRAMS / "python"), *module]
        process = Process(program, Path(folder) / "nursery.log", name="the nursery of servers")
        process.start()
        try:
            process.await_ready(nursery.exists)
            yield url, nursery
        finally:
            process.kill()


@contextmanager
def serving(ledger: str, nursery: Path, profile: str) -> Iterator[str]:
    """The address of a server with a copy of the ledger, as the profile says."""
    with (
        tempfile.TemporaryDirectory(prefix="dovetail-conformance-") as folder,
        reserved_port() as port,
    ):
        log = Path(folder) / "log"
        options = ["--ledger", ledger, "--port", str(port), folder, profile]
        pid = _raised(nursery, [str(log), *options])
        try:
            await_ready(
                lambda: answers(port),
                lambda: _alive(pid),
                lambda what: ProcessError(f"the server {what}: {log.read_text()[-3000:]}"),
            )
            yield f"http://127.0.0.1:{port}"
        finally:
            _stop(pid)


def _raised(nursery: Path, line: list[str]) -> int:
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(nursery))
        asking.sendall(shlex.join(line).encode())
        return int(asking.recv(64))


def _stop(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while _alive(pid):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            raise ProcessError(f"the server was still there {STOP_SECONDS:.0f} s after SIGTERM")
        time.sleep(0.01)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
