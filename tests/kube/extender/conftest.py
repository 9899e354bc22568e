from __future__ import annotations

from tests.kube.scheduler.conftest import database, impatient, world

__all__ = ["database", "impatient", "world"]
