from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def directory() -> Iterator[Path]:
    """For sockets, whose paths must be short."""
    made = tempfile.mkdtemp(prefix="dt", dir="/tmp")
    yield Path(made)
    shutil.rmtree(made)
