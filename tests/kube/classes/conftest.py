from __future__ import annotations

from tests.kube.scheduler.conftest import database, world

__all__ = ["database", "world"]
