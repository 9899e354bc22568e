"""Live servers for the tests of this folder: Dovetail, and both sides of a comparison."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.differential import servers
from tests.differential.wire import Pair, Server


@pytest.fixture(scope="session")
def dovetail_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with servers.dovetail(tmp_path_factory.mktemp("dovetail")) as url:
        yield url


@pytest.fixture(scope="session")
def pair(dovetail_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder: Path = tmp_path_factory.mktemp("reference")
    with servers.reference(folder) as url, Pair(url, dovetail_url) as both:
        yield both


@pytest.fixture
def server(dovetail_url: str) -> Iterator[Server]:
    client = Server(dovetail_url)
    yield client
    client.close()
