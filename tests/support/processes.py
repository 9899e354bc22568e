"""Starter of processes: every server, daemon and plugin that tests, demos and benchmarks run.

Needs the standard library only: the runners of tests/conformance have another environment.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Self

START_SECONDS = 60.0
STOP_SECONDS = 30.0


class ProcessError(Exception):
    """A process did not come up, ended by itself, or did not end when it was told to."""


class Process:
    """A program that is started, ended or killed, and started again; as a context it is stopped.

    What it says is kept in `log`, what it says on standard error in `errors` if that is given.
    It stays in the caller's process group, so that ending the group ends it too; with `own_group`
    it leads one, and whatever it started is killed with it. With `pipes` it can be asked line by
    line, and the log has standard error only.
    """

    def __init__(
        self,
        command: Sequence[object],
        log: Path,
        *,
        name: str = "",
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        errors: Path | None = None,
        own_group: bool = False,
        pipes: bool = False,
    ) -> None:
        self.command = [str(word) for word in command]
        self.name = name or Path(self.command[0]).name
        self.log = log
        self._errors = errors
        self._environment = {**os.environ, **(environment or {})}
        self._cwd = cwd
        self._own_group = own_group
        self._pipes = pipes
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        with self.log.open("ab") as log, (self._errors or self.log).open("ab") as errors:
            self._process = subprocess.Popen(
                self.command,
                env=self._environment,
                cwd=self._cwd,
                stdin=subprocess.PIPE if self._pipes else subprocess.DEVNULL,
                stdout=subprocess.PIPE if self._pipes else log,
                stderr=errors,
                start_new_session=self._own_group,
            )

    @property
    def started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ProcessError(f"{self.name} was not started")
        return self._process

    @property
    def pid(self) -> int:
        return self.started.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def send_signal(self, number: int) -> None:
        """To it alone; nothing if it ended."""
        self.started.send_signal(number)

    def signal_group(self, number: int) -> None:
        """To it and all that it started, as a terminal does; only with `own_group`."""
        assert self._own_group, "this would be the group of the tests"
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def wait(self, seconds: float = START_SECONDS) -> int:
        """Its exit code, when it ends by itself or by a signal that it was sent."""
        try:
            return self.started.wait(seconds)
        except subprocess.TimeoutExpired:
            raise self.error(f"was still there after {seconds:.0f} s") from None

    def stop(self, seconds: float = STOP_SECONDS) -> bool:
        """As an operator would: it may finish what it is doing. Whether it had not to be killed."""
        if self._process is None:
            return True
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        else:
            return True
        finally:
            self.kill()

    def kill(self) -> None:
        """As a power cut would: no handler runs, nothing is flushed or answered."""
        if self._process is not None:
            if self._own_group:
                self.signal_group(signal.SIGKILL)
            self._process.kill()
            self._process.wait()
            for pipe in filter(None, (self._process.stdin, self._process.stdout)):
                with suppress(BrokenPipeError):
                    pipe.close()
            self._process = None

    def restart(self) -> None:
        self.kill()
        self.start()

    def check(self) -> None:
        """Fails if it ended by itself."""
        if not self.is_running:
            raise self.error("ended")

    def await_ready(self, is_ready: Callable[[], object], seconds: float = START_SECONDS) -> None:
        await_ready(is_ready, lambda: self.is_running, self.error, seconds)

    async def until_ready(self, is_ready: Callable[[], object]) -> None:
        """The same on an event loop."""
        await asyncio.to_thread(self.await_ready, is_ready)

    async def until_ended(self, seconds: float = START_SECONDS) -> int:
        return await asyncio.to_thread(self.wait, seconds)

    def ask(self, line: bytes) -> bytes:
        """The line that it answers; empty if it is gone. Only with `pipes`."""
        stdin, stdout = self._pipe(self.started.stdin), self._pipe(self.started.stdout)
        with suppress(BrokenPipeError):
            stdin.write(line + b"\n")
            stdin.flush()
        return stdout.readline()

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def last_words(self) -> str:
        """Of its output, other than about requests."""
        lines = [line for line in self.output.splitlines() if '"event":"request"' not in line]
        return "\n".join(line[:3000] for line in lines[-5:])

    def error(self, what: str) -> ProcessError:
        return ProcessError(f"{self.name} {what}: {self.last_words()}\n{' '.join(self.command)}")

    def _pipe(self, pipe: IO[bytes] | None) -> IO[bytes]:
        if pipe is None:
            raise ProcessError(f"{self.name} has no pipes")
        return pipe


def await_ready(
    is_ready: Callable[[], object],
    is_alive: Callable[[], bool],
    error: Callable[[str], ProcessError],
    seconds: float = START_SECONDS,
) -> None:
    """Until a process is; `error` says what became of it, should it not."""
    deadline = time.monotonic() + seconds
    while not is_ready():
        if not is_alive():
            raise error("ended")
        if time.monotonic() > deadline:
            raise error(f"was not ready within {seconds:.0f} s")
        time.sleep(0.03)


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port for servers of this block only, even while none of them is there.

    Without that another test's server, or the near end of a client's connection, could take it.
    """
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        # Linux lets two sockets share a port if both say so and at most one listens. Servers say
        # so; said only now, it lets them in and keeps out others that look for a free port.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        yield holder.getsockname()[1]
