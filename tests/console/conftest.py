"""A browser, servers to look at, and pages that have to end without a complaint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser

from tests.cli.conftest import demo_server
from tests.console import worlds
from tests.support import browser, server
from tests.support.browser import Browsing

Open = Callable[..., Browsing]
NDJSON = {"content-type": "application/x-ndjson"}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for the tests of one module: while it is there, no other event loop can run."""
    with browser.chromium() as started:
        yield started


@pytest.fixture
def browse(chromium: Browser) -> Iterator[Open]:
    """Opens a page; at the end of the test none may have complained."""
    opened: list[Browsing] = []

    def start(address: str, **settings: Any) -> Browsing:
        browsing = Browsing(chromium, **settings)
        opened.append(browsing)
        browsing.page.goto(address)
        if settings.get("with_script", True) and "/login" not in browsing.page.url:
            # Until then it is the plain page, which has much of the same on it.
            browsing.page.locator("main[data-taken]").wait_for()
        return browsing

    yield start
    complaints = [each for browsing in opened for each in browsing.complaints()]
    for browsing in opened:
        browsing.close()
    assert not complaints


class Api:
    """The REST API of a server, asked as any other client would."""

    def __init__(self, url: str, token: str = "admin") -> None:
        headers = {"x-auth-token": token, "openstack-api-version": "placement 1.39"}
        self._http = httpx2.Client(base_url=url, headers=headers, timeout=60)

    def get(self, path: str, **query: Any) -> Any:
        reply = self._http.get(path, params=query or None)
        reply.raise_for_status()
        return reply.json()

    def load(self, documents: Iterator[worlds.Document]) -> None:
        body = worlds.ndjson(documents)
        self._http.post("/dovetail/v1/fleet", content=body, headers=NDJSON).raise_for_status()

    def post(self, path: str, document: Any) -> Any:
        reply = self._http.post(path, json=document)
        reply.raise_for_status()
        return reply.json()

    def put(self, path: str, document: Any) -> None:
        self._http.put(path, json=document).raise_for_status()

    def delete(self, path: str) -> None:
        self._http.delete(path).raise_for_status()

    def close(self) -> None:
        self._http.close()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with the demo fleet, for the tests of one module."""
    with demo_server(tmp_path_factory.mktemp("demo")) as url:
        yield url


@contextmanager
def fleet_server(folder: Path, documents: Iterator[worlds.Document]) -> Iterator[tuple[str, Api]]:
    """The address of a server with these hosts, and its API."""
    with server.dovetail(f"sqlite:///{folder / 'ledger.db'}", folder / "log") as started:
        api = Api(started.url)
        try:
            api.load(documents)
            yield started.url, api
        finally:
            api.close()
