"""The two servers of a comparison, each with an empty database in a folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import reference as installed
from tests.support import server


@contextmanager
def reference(folder: Path) -> Iterator[str]:
    """The address of the real Placement."""
    script = str(Path(__file__).with_name("reference_app.py"))
    command = [installed.python(), script, "--folder", str(folder)]
    # Its defect 1 depends on the order of sets.
    environment = {"PYTHONHASHSEED": "0"}
    with server.running(command, folder / "output.log", environment) as started:
        yield started.url


@contextmanager
def dovetail(folder: Path) -> Iterator[str]:
    """The address of the Dovetail to compare it with."""
    with server.dovetail(f"sqlite:///{folder}/dovetail.db", folder / "output.log") as started:
        yield started.url
