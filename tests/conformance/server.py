"""A server process for one test file or test: started, waited for, ended.

Used by gabbits.py and client.py. Servers stay in the caller's process group, so that ending
the group ends them too.
"""

import shlex
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

DOVETAIL = f"{shlex.quote(str(Path(__file__).parent / 'serve'))} {{port}} {{dir}} {{profile}}"
"""The start command used when none is given."""

START_SECONDS = 60.0
STOP_SECONDS = 15.0


class ServerError(Exception):
    """The server did not start, or did not end when told to."""


@contextmanager
def running(command: str, profile: str) -> Iterator[str]:
    """Start a server by the command, give its URL, and end it with SIGTERM."""
    with tempfile.TemporaryDirectory(prefix="dovetail-conformance-") as name:
        home = Path(name)
        data = home / "data"
        data.mkdir()
        port = _free_port()
        values = {"port": str(port), "dir": str(data), "profile": profile}
        with (home / "log").open("w+b") as log:
            process = subprocess.Popen(
                [word.format_map(values) for word in shlex.split(command)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            try:
                url = f"http://127.0.0.1:{port}"
                _wait(process, url, home / "log")
                yield url
            finally:
                _end(process)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ServerError(f"exited with status {process.returncode}: {_last_words(log)}")
        if _answers(url):
            return
        time.sleep(0.03)
    raise ServerError(f"no answer within {START_SECONDS:.0f} s: {_last_words(log)}")


def _answers(url: str) -> bool:
    try:
        return bool(httpx.get(f"{url}/", trust_env=False, verify=False).is_success)
    except httpx.TransportError:
        return False


def _last_words(log: Path) -> str:
    """The last line of the log, which says most, and then the end of the whole."""
    text = log.read_text(errors="replace").strip()
    return f"{text.rpartition(chr(10))[2]}\n{text[-2000:]}" if text else "nothing was logged"


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise ServerError(f"still there {STOP_SECONDS:.0f} s after SIGTERM") from None
