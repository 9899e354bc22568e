"""A new Dovetail for every test file or test, each with a copy of one ledger that is prepared.

Dovetail has its own environment, not the one that the runners need.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.server import running

PROGRAMS = Path(__file__).parents[2] / ".venv" / "bin"


@contextmanager
def prepared(database: str | None) -> Iterator[str]:
    """The URL of a ledger with its tables: in the database given, else in a file for the block."""
    with tempfile.TemporaryDirectory(prefix="dovetail-conformance-") as folder:
        url = database or f"sqlite:///{folder}/ledger.db"
        upgrade = [str(PROGRAMS / "dovetail"), "db", "upgrade", "--database", url]
        subprocess.run(upgrade, check=True, stdout=subprocess.DEVNULL)
        yield url


@contextmanager
def serving(ledger: str, profile: str) -> Iterator[str]:
    """The address of a server with a copy of the ledger, as the profile says."""
    with tempfile.TemporaryDirectory(prefix="dovetail-conformance-") as folder:
        program = [str(PROGRAMS / "python"), "-m", "tests.conformance.serve", "--ledger", ledger]
        with running([*program, folder, profile], Path(folder) / "log") as started:
            yield started.url
