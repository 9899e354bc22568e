"""Dovetail passes OpenStack Placement's own API tests and those of its command-line client.

The runners need the packages of .venv-reference, so they are called as programs of their own.
"""

import os
import signal
import subprocess
from contextlib import suppress

import pytest

from tests.support import databases, reference
from tests.support.paths import ROOT

WHOLE_SUITE = "1315 passed, 0 failed, 1 left out"

pytestmark = pytest.mark.timeout(1800)


def run(runner: str, *options: str) -> list[str]:
    """The lines that a runner prints."""
    process = subprocess.Popen(
        [reference.python(), "-m", f"tests.conformance.{runner}", *options],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate()
    finally:
        # After a timeout the servers in the runner's process group have to go, too.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    print(output)
    return output.splitlines()


def test_placement_suite_on_sqlite() -> None:
    assert run("gabbits")[-1] == WHOLE_SUITE


def test_placement_suite_on_postgresql(postgres: str) -> None:
    assert run("gabbits", "--database", databases.empty(postgres))[-1] == WHOLE_SUITE


def test_openstack_client() -> None:
    assert run("client")[-1] == "12 passed, 0 failed, 0 left out"
