"""Dovetail passes OpenStack Placement's own API tests and those of its command-line client.

The runners need the packages of .venv-reference, so they are called as programs of their own.
"""

from pathlib import Path

import pytest

from tests.support import databases, reference
from tests.support.paths import ROOT
from tests.support.processes import Process

WHOLE_SUITE = "1315 passed, 0 failed, 1 left out"

TIMEOUT_SECONDS = 1800

pytestmark = pytest.mark.timeout(TIMEOUT_SECONDS)


def run(runner: str, folder: Path, *options: str) -> list[str]:
    """The lines that a runner prints."""
    command = [reference.python(), "-m", f"tests.conformance.{runner}", *options]
    # After a timeout the servers in the runner's process group have to go, too.
    process = Process(command, folder / "log", cwd=ROOT, own_group=True)
    process.start()
    try:
        process.wait(TIMEOUT_SECONDS)
    finally:
        process.kill()
        print(process.output)
    return process.output.splitlines()


def test_placement_suite_on_sqlite(tmp_path: Path) -> None:
    assert run("gabbits", tmp_path)[-1] == WHOLE_SUITE


def test_placement_suite_on_postgresql(tmp_path: Path, postgres: str) -> None:
    assert run("gabbits", tmp_path, "--database", databases.empty(postgres))[-1] == WHOLE_SUITE


def test_openstack_client(tmp_path: Path) -> None:
    assert run("client", tmp_path)[-1] == "12 passed, 0 failed, 0 left out"
