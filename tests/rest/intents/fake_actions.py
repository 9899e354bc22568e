"""Actions that do nothing but remember, and fail as told."""

from __future__ import annotations

from typing import Any

from dovetail.core.errors import DovetailError
from dovetail.service.intents.ports import Answer, StatusQuery


class FakeActions:
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.error: DovetailError | None = None

    def _did(self, *call: Any) -> Answer:
        if self.error is not None:
            raise self.error
        self.calls.append(call)
        return {"did": call[0], "times": len(self.calls)}

    async def approve(self, group: str) -> Answer:
        return self._did("approve", group)

    async def instantiate(self, group: str) -> Answer:
        return self._did("instantiate", group)

    async def terminate(self, group: str) -> Answer:
        return self._did("terminate", group)

    async def stop(self, group: str) -> Answer:
        return self._did("stop", group)

    async def update(self, group: str, *, replace: bool) -> Answer:
        return self._did("update", group, replace)

    async def rollback(self, group: str, *, revision: int) -> Answer:
        return self._did("rollback", group, revision)

    async def status(self, group: str, asked: StatusQuery) -> Answer:
        return self._did("status", group, asked)

    async def plan(self, group: str) -> Answer:
        return self._did("plan", group)

    async def explain(self, group: str, *, app: str, cluster: str | None) -> Answer:
        return self._did("explain", group, app, cluster)
