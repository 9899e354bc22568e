"""The starter of test processes: what it keeps, how it waits and what it leaves behind."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.processes import Process, ProcessError, reserved_port

SAY = "import sys, time; print('ready', flush=True); print('oh', file=sys.stderr, flush=True);"
STAY = SAY + "time.sleep(60)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + STAY
ECHO = "import sys\nfor line in sys.stdin: print(line.strip().upper(), flush=True)"
PARENT = (
    "import subprocess, sys;"
    "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    "print(p.pid, flush=True); p.wait()"
)


def python(code: str, folder: Path, **options: object) -> Process:
    return Process([sys.executable, "-c", code], folder / "log", **options)  # type: ignore[arg-type]


def test_it_is_started_waited_for_ended_and_started_again(tmp_path: Path) -> None:
    with python(STAY, tmp_path) as process:
        process.await_ready(lambda: "ready" in process.output)
        first = process.pid
        process.restart()
        assert process.pid != first
        process.check()
        process.await_ready(lambda: process.output.count("ready") == 2)
        assert process.stop()
        assert not process.is_running
    with pytest.raises(ProcessError, match="was not started"):
        _ = process.pid


def test_standard_error_has_a_log_of_its_own_if_asked_for(tmp_path: Path) -> None:
    process = python(SAY, tmp_path, errors=tmp_path / "errors")
    process.start()
    assert process.wait() == 0
    assert (process.output, (tmp_path / "errors").read_text()) == ("ready\n", "oh\n")


def test_one_that_does_not_come_up_is_told_with_its_last_words(tmp_path: Path) -> None:
    with (
        python("raise SystemExit('no such thing')", tmp_path) as process,
        pytest.raises(ProcessError, match="ended: no such thing"),
    ):
        process.await_ready(lambda: False)
    with (
        python(STAY, tmp_path) as process,
        pytest.raises(ProcessError, match="was not ready within 0 s"),
    ):
        process.await_ready(lambda: False, seconds=0.1)


def test_one_that_will_not_end_is_killed(tmp_path: Path) -> None:
    process = python(DEAF, tmp_path)
    process.start()
    process.await_ready(lambda: "ready" in process.output)
    with pytest.raises(ProcessError, match="was still there"):
        process.wait(0.1)
    assert not process.stop(0.1)
    assert not process.is_running


def test_a_group_of_its_own_goes_as_a_whole(tmp_path: Path) -> None:
    with python(PARENT, tmp_path, own_group=True) as process:
        process.await_ready(lambda: process.output.endswith("\n"))
        child = int(process.output)
        assert os.getpgid(child) == process.pid
        process.signal_group(signal.SIGTERM)
        assert process.wait() == -signal.SIGTERM


def test_it_can_be_asked(tmp_path: Path) -> None:
    with python(ECHO, tmp_path, pipes=True) as process:
        assert process.ask(b"one") == b"ONE\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.ask(b"two") == b""


def test_a_reserved_port_is_given_once() -> None:
    with reserved_port() as one, reserved_port() as other:
        assert one != other
