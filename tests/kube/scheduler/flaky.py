"""A way to an API that fails at chosen points: before a call is done, or after it, unanswered."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from dovetail.kube.api.port import ApiError, ApiUnreachable, Body
from tests.support.kube.memory import MemoryApi, T

Fault = Callable[[], Awaitable[None]]


class FlakyApi:
    """The calls of another API. `faults` by verb (`create binding`, `get`, ...), each used once."""

    def __init__(self, api: MemoryApi) -> None:
        self._api = api
        self.before: dict[str, list[Fault]] = {}
        self.after: dict[str, list[Fault]] = {}
        self.sent: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def get(self, kind: type[T], name: str, namespace: str = "") -> T:
        await self._fault(self.before, "get")
        return await self._api.get(kind, name, namespace)

    async def create(
        self, kind: type[T], body: Body, *, namespace: str = "", sub: str = ""
    ) -> T | None:
        verb = f"create {sub}".strip()
        self.sent.append(verb)
        await self._fault(self.before, verb)
        made = await self._api.create(kind, body, namespace=namespace, sub=sub)
        await self._fault(self.after, verb)
        return made

    async def apply(self, kind: type[T], body: Body, *, manager: str, sub: str = "") -> T:
        verb = f"apply {sub}".strip()
        self.sent.append(verb)
        await self._fault(self.before, verb)
        return await self._api.apply(kind, body, manager=manager, sub=sub)

    async def _fault(self, faults: dict[str, list[Fault]], verb: str) -> None:
        if faults.get(verb):
            await faults[verb].pop(0)()


class RandomApi(FlakyApi):
    """Any call may be slow, fail before it is done, or be done and not be answered."""

    def __init__(self, api: MemoryApi, seed: int, trouble: float) -> None:
        super().__init__(api)
        self._random = random.Random(seed)
        self._trouble = trouble

    async def _fault(self, faults: dict[str, list[Fault]], verb: str) -> None:
        for _ in range(self._random.randrange(4)):
            await asyncio.sleep(0)
        if self._random.random() < self._trouble:
            raise self._random.choice(
                [ApiUnreachable("cut"), ApiError(500, "InternalError", "on fire")]
            )


def cut() -> Fault:
    async def fault() -> None:
        raise ApiUnreachable("the connection was cut")

    return fault


def refused(code: int = 403) -> Fault:
    async def fault() -> None:
        raise ApiError(code, "Forbidden", "no")

    return fault
