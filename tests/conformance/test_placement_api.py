"""Dovetail passes OpenStack Placement's own API tests and those of its command-line client.

The runners need the packages of .venv-reference, so they are called as programs of their own.
"""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".venv-reference" / "bin" / "python"

pytestmark = pytest.mark.timeout(1800)


def run(script: str, database: str = "") -> list[str]:
    """Run a script on SQLite, or on PostgreSQL at the URL; the lines it printed."""
    if not PYTHON.exists():
        pytest.fail("the real Placement is not installed: run `make reference`")
    process = subprocess.Popen(
        [PYTHON, HERE / script],
        env={**os.environ, "DOVETAIL_CONFORMANCE_DATABASE": database},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate()
    finally:
        # After a timeout the servers in the script's process group have to go, too.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    print(output)
    return output.splitlines()


def test_placement_suite_on_sqlite() -> None:
    assert run("gabbits.py")[-1] == "1315 passed, 0 failed, 1 left out"


def test_placement_suite_on_postgresql(postgres: str) -> None:
    assert run("gabbits.py", postgres)[-1] == "1315 passed, 0 failed, 1 left out"


def test_openstack_client() -> None:
    assert run("client.py")[-1] == "12 passed, 0 failed, 0 left out"
