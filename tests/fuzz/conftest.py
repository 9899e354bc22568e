"""A live server and its examiner for each test module: on SQLite, and on PostgreSQL.

The examples are the same in every run. For ten times as many, drawn anew each time:

    DOVETAIL_FUZZ_SCALE=10 .venv/bin/pytest tests/fuzz
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.fuzz.examiner import Examiner
from tests.support import databases, server

SHARES = {"sqlite": 1.0, "postgresql": 0.15}
"""The rules are one code for both; PostgreSQL differs in what its columns can hold."""


@pytest.fixture(scope="module", params=SHARES)
def examiner(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Examiner]:
    directory: Path = tmp_path_factory.mktemp("fuzz")
    model = request.getfixturevalue(f"{request.param}_with_tables")
    database = databases.copied(model, directory / "ledger.db")
    with server.dovetail(database, directory / "server.log") as examined:
        examiner = Examiner(examined, SHARES[request.param])
        with closing(examiner.world):
            yield examiner
