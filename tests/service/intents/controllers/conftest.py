"""A ledger for tests of controllers, where it matters little of which kind it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dovetail.ledger import Ledger, open_ledger
from tests.service.intents.controllers.emco_side import etcd
from tests.support import databases
from tests.support.kube import assets


@pytest.fixture
def kept(sqlite_with_tables: str, tmp_path: Path) -> Iterator[Ledger]:
    opened = open_ledger(databases.copied(sqlite_with_tables, tmp_path / "ledger.db"))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def etcd_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of a real etcd."""
    if assets.find("etcd") is None:
        pytest.skip("no etcd; `make kube` builds it")
    with etcd(tmp_path_factory.mktemp("etcd")) as port:
        yield port
