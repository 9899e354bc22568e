"""The wheel, installed as the page says, in an environment that has nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dist import steps
from tests.kube.conftest import own_cluster
from tests.kube.scheduler.conftest import database

__all__ = ["database", "own_cluster"]


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command `dovetail`; `python` is beside it."""
    place = tmp_path_factory.mktemp("opt") / "dovetail"
    steps.play(steps.written("operation.md", "wheel").replace("/opt/dovetail", str(place)))
    return place / "bin/dovetail"
