"""The two servers of a comparison: started on loopback with empty databases, stopped at the end.

`reference` needs .venv-reference (`make reference`), `dovetail` the environment this runs in.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2

ROOT = Path(__file__).resolve().parents[2]
REFERENCE_PYTHON = ROOT / ".venv-reference" / "bin" / "python"
STARTUP_SECONDS = 60
STOP_SECONDS = 10


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def reference(folder: Path, hash_seed: int = 0) -> Iterator[str]:
    """The real Placement; the hash seed is fixed because its defect 1 depends on it."""
    port = free_port()
    script = str(Path(__file__).with_name("reference_app.py"))
    command = [str(REFERENCE_PYTHON), script, "--port", str(port), "--folder", str(folder)]
    with _running(command, port, "/", folder, hash_seed) as url:
        yield url


@contextmanager
def dovetail(folder: Path) -> Iterator[str]:
    port = free_port()
    program = str(Path(sys.executable).with_name("dovetail"))
    database = f"sqlite:///{(folder / 'dovetail.db').resolve()}"
    place = ["--host", "127.0.0.1", "--port", str(port), "--database", database]
    command = [program, "serve", *place, "--auth", "noauth2", "--policy", "legacy"]
    with _running(command, port, "/livez", folder) as url:
        yield url


@contextmanager
def _running(
    command: Sequence[str], port: int, probe: str, folder: Path, hash_seed: int = 0
) -> Iterator[str]:
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    url = f"http://127.0.0.1:{port}"
    with (folder / "output.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=folder
        )
        try:
            _await(process, url + probe, folder)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await(process: subprocess.Popen[bytes], url: str, folder: Path) -> None:
    deadline = time.monotonic() + STARTUP_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx2.get(url).status_code == 200:
                return
        except httpx2.TransportError:
            time.sleep(0.1)
    tail = (folder / "output.log").read_text(errors="replace")[-2000:]
    raise RuntimeError(f"{process.args!r} did not come up:\n{tail}")
