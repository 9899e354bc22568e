"""Starts and stops the two servers, each with an SQLite database in a directory of its own."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support import server
from tests.support.paths import DOVETAIL, ROOT
from tests.support.processes import reserved_port

from .client import Client

REFERENCE_PYTHON = ROOT / ".venv-reference" / "bin" / "python"
REFERENCE_WORKERS = 2
START_SECONDS = 300

REFERENCE_CONFIG = """\
[DEFAULT]
log_file = {directory}/placement.log
use_stderr = false
[api]
auth_strategy = noauth2
[placement]
randomize_allocation_candidates = true
[placement_database]
connection = sqlite:///{directory}/placement.db
sync_on_startup = true
"""


class Server(server.Server):
    def client(self) -> Client:
        return Client(self.port)

    def resident_bytes(self) -> int:
        """Resident memory of the server's process and of all its descendants."""
        return sum(_resident(pid) for pid in _family(self.pid))

    def cpu_seconds(self) -> float:
        """Processor time, in user and kernel mode, of the process and of all its descendants."""
        return sum(_ticks(pid) for pid in _family(self.pid)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def reference(directory: Path) -> Iterator[Server]:
    """Serve the database of the directory, which is made when it is not there yet."""
    directory.mkdir(exist_ok=True)
    directory.joinpath("placement.conf").write_text(REFERENCE_CONFIG.format(directory=directory))
    environment = {"OS_PLACEMENT_CONFIG_DIR": str(directory)}
    # Importing the application makes the schema; two workers doing so at once would collide.
    subprocess.run(
        [REFERENCE_PYTHON, "-c", "import placement.wsgi.api"],
        env=os.environ | environment,
        check=True,
    )
    with reserved_port() as port:
        command = [
            *(str(REFERENCE_PYTHON), "-m", "gunicorn"),
            *("--workers", str(REFERENCE_WORKERS), "--timeout", "900"),
            *("--bind", f"127.0.0.1:{port}", "--log-level", "warning"),
            "placement.wsgi.api:application",
        ]
        with _server("placement", command, port, directory, environment) as started:
            yield started


@contextmanager
def dovetail(directory: Path, *options: str) -> Iterator[Server]:
    """Serve the database of the directory, which is made when it is not there yet."""
    directory.mkdir(exist_ok=True)
    with reserved_port() as port:
        command = [
            *(str(DOVETAIL), "serve", "--host", "127.0.0.1", "--port", str(port)),
            *("--database", f"sqlite:///{directory / 'dovetail.db'}", "--auth", "noauth2"),
            *options,
        ]
        with _server("dovetail", command, port, directory) as started:
            yield started


def _server(
    name: str,
    command: list[str],
    port: int,
    directory: Path,
    environment: Mapping[str, str] | None = None,
) -> Server:
    (directory / "server.log").unlink(missing_ok=True)
    return Server(
        command,
        port,
        directory / "server.log",
        name=name,
        environment=environment,
        cwd=directory,
        start_seconds=START_SECONDS,
    )


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


def _ticks(pid: int) -> int:
    """What the kernel has counted of its processor time; its name may hold spaces."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
