"""A client that speaks to the application in this process, without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import httpx2

from dovetail.rest.server.app import Application

T = TypeVar("T")


class Client:
    """Synchronous calls on one event loop that lives as long as the client."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self._loop = asyncio.new_event_loop()
        self._http = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(application), base_url="http://testserver"
        )

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    def call(self, method: str, path: str, body: Any = None, **more: str) -> httpx2.Response:
        return self.run(self.send(method, path, body, **more))

    async def send(
        self, method: str, path: str, body: Any = None, version: str = "1.39", **headers: str
    ) -> httpx2.Response:
        sent = {
            "x-auth-token": "admin",
            "openstack-api-version": f"placement {version}",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        content = body if isinstance(body, bytes) else None
        json = None if isinstance(body, bytes) else body
        encoded = {name.encode(): value.encode() for name, value in sent.items() if value}
        return await self._http.request(method, path, json=json, content=content, headers=encoded)

    def get(self, path: str, **more: Any) -> httpx2.Response:
        return self.call("GET", path, **more)

    def close(self) -> None:
        self.run(self._http.aclose())
        self._loop.close()
