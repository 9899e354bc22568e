"""Starts and stops the two servers, each with an SQLite database in a directory of its own."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from .client import Client

ROOT = Path(__file__).resolve().parent.parent
REFERENCE_PYTHON = ROOT / ".venv-reference" / "bin" / "python"
DOVETAIL = Path(sys.executable).with_name("dovetail")
REFERENCE_WORKERS = 2
START_SECONDS = 300
STOP_SECONDS = 30

REFERENCE_CONFIG = """\
[DEFAULT]
log_file = {directory}/placement.log
use_stderr = false
[api]
auth_strategy = noauth2
[placement_database]
connection = sqlite:///{directory}/placement.db
sync_on_startup = true
"""


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    port: int
    pid: int

    def client(self) -> Client:
        return Client(self.port)

    def resident_bytes(self) -> int:
        """Resident memory of the server's process and of all its descendants."""
        return sum(_resident(pid) for pid in _family(self.pid))


@contextmanager
def reference(directory: Path) -> Iterator[Server]:
    """Serve the database of the directory, which is made when it is not there yet."""
    directory.mkdir(exist_ok=True)
    directory.joinpath("placement.conf").write_text(REFERENCE_CONFIG.format(directory=directory))
    environment = os.environ | {"OS_PLACEMENT_CONFIG_DIR": str(directory)}
    # Importing the application makes the schema; two workers doing so at once would collide.
    subprocess.run(
        [REFERENCE_PYTHON, "-c", "import placement.wsgi.api"], env=environment, check=True
    )
    port = _free_port()
    command = [
        *(str(REFERENCE_PYTHON), "-m", "gunicorn"),
        *("--workers", str(REFERENCE_WORKERS), "--timeout", "900"),
        *("--bind", f"127.0.0.1:{port}", "--log-level", "warning"),
        "placement.wsgi.api:application",
    ]
    with _running(
        "placement", command, port=port, probe="/", directory=directory, environment=environment
    ) as server:
        yield server


@contextmanager
def dovetail(directory: Path) -> Iterator[Server]:
    """Serve the database of the directory, which is made when it is not there yet."""
    directory.mkdir(exist_ok=True)
    port = _free_port()
    command = [
        *(str(DOVETAIL), "serve", "--host", "127.0.0.1", "--port", str(port)),
        *("--database", f"sqlite:///{directory / 'dovetail.db'}", "--auth", "noauth2"),
    ]
    with _running(
        "dovetail",
        command,
        port=port,
        probe="/livez",
        directory=directory,
        environment=dict(os.environ),
    ) as server:
        yield server


@contextmanager
def _running(
    name: str,
    command: list[str],
    *,
    port: int,
    probe: str,
    directory: Path,
    environment: dict[str, str],
) -> Iterator[Server]:
    log = directory / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, cwd=directory, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        _await_answer(process, port, probe, log)
        yield Server(name, port, process.pid)
    finally:
        _stop(process)


def _await_answer(process: subprocess.Popen[bytes], port: int, probe: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    client = Client(port)
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            if client.get(probe)[0] == 200:
                client.close()
                return
        except (OSError, HTTPException):
            client.close()
        time.sleep(0.02)
    raise RuntimeError(f"{process.args!r} did not come up:\n{log.read_text()[-4000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _family(pid: int) -> Iterator[int]:
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from _family(int(child))


def _resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0
