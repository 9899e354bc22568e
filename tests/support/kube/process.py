"""A program of the test bed: started, killed and started again; what it says is kept in a log."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

STOP_SECONDS = 20.0


class Process:
    def __init__(self, name: str, command: Sequence[str | Path], directory: Path) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def stop(self) -> None:
        """It may finish what it is doing."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """As a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        self.kill()
        self.start()

    def check(self) -> None:
        """Fails if it ended by itself."""
        if self._process is None or self._process.poll() is not None:
            raise ChildProcessError(f"{self.name} is gone: {self.last_words()}")

    def last_words(self) -> str:
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-5:])
