"""One call and one answer over HTTP, and a client that asks two servers the same thing at once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

import httpx2

NEWEST = "1.39"
Params = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A request of the Placement API; two servers are given equal calls."""

    method: str
    path: str
    params: Params = ()
    body: Any = None
    version: str = NEWEST

    def __str__(self) -> str:
        query = "?" + urlencode(self.params, safe=":,!") if self.params else ""
        body = f" {self.body}" if self.body is not None else ""
        return f"{self.method} {self.path}{query}{body} @{self.version}"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str] = field(compare=False, default_factory=dict)
    body: Any = None


class Server:
    """A client of one server, on one kept-alive connection."""

    def __init__(self, url: str) -> None:
        self._client = httpx2.Client(base_url=url, headers={"x-auth-token": "admin"}, timeout=120)

    def close(self) -> None:
        self._client.close()

    def ask(self, call: Call) -> Answer:
        headers = {"openstack-api-version": f"placement {call.version}"}
        reply = self._client.request(
            call.method, call.path, params=call.params or None, json=call.body, headers=headers
        )
        is_json = reply.headers.get("content-type", "").startswith("application/json")
        body = reply.json() if reply.content and is_json else reply.text or None
        return Answer(reply.status_code, dict(reply.headers), body)


class Pair:
    """The reference (a) and Dovetail (b), asked at the same time."""

    def __init__(self, a_url: str, b_url: str) -> None:
        self.a, self.b = Server(a_url), Server(b_url)
        self._threads = ThreadPoolExecutor(2)

    def __enter__(self) -> Pair:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._threads.shutdown()
        self.a.close()
        self.b.close()

    def ask(self, a_call: Call, b_call: Call) -> tuple[Answer, Answer]:
        first = self._threads.submit(self.a.ask, a_call)
        second = self._threads.submit(self.b.ask, b_call)
        return first.result(), second.result()

    def run(self, calls: Sequence[Call]) -> list[tuple[Answer, Answer]]:
        """The same calls in the same order, each side at its own pace."""
        first = self._threads.submit(lambda: [self.a.ask(call) for call in calls])
        second = self._threads.submit(lambda: [self.b.ask(call) for call in calls])
        return list(zip(first.result(), second.result(), strict=True))
