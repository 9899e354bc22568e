"""What a server answers while PostgreSQL is away, and how it recovers: docs/operation.md, Faults.

Each test has the name of its row there. Nothing is timed: what hung for ever ends, that is all.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import ExitStack, suppress
from http import HTTPStatus
from typing import Any

import httpx2
import psycopg
import pytest

from dovetail.ledger import LedgerBusy, OutcomeUnknown, open_ledger
from dovetail.ledger.database.connections import answering, server_keepalives
from dovetail.ledger.database.postgres import PostgresLedger
from dovetail.ledger.database.settings import LedgerSettings
from dovetail.service.snapshots import SnapshotKeeper
from tests.rest.faulty_server import (
    CANDIDATES,
    FOREVER,
    FaultyServer,
    assert_away,
    assert_unknown,
)
from tests.support import databases
from tests.support.faulty_network import COMMIT, FaultyNetwork, faulty_network

SHORT = LedgerSettings(
    answer_seconds=2.0,
    statement_seconds=1.5,
    lock_seconds=0.5,
    connect_seconds=2,
    silence_seconds=2.0,
    readers=2,
    writers=2,
)


@pytest.fixture
def url(postgresql_with_tables: str) -> str:
    """Of a database of the test's own, past any proxy."""
    return databases.copied(postgresql_with_tables, None)  # type: ignore[arg-type]


@pytest.fixture
def network(url: str) -> Iterator[FaultyNetwork]:
    with faulty_network(url) as network:
        yield network


@pytest.fixture
def serve() -> Iterator[Callable[[str], FaultyServer]]:
    with ExitStack() as stack:

        def made(database: str) -> FaultyServer:
            server = FaultyServer(database, SHORT)
            stack.callback(server.close)
            return server

        yield made


@pytest.fixture
def server(network: FaultyNetwork, serve: Callable[[str], FaultyServer]) -> FaultyServer:
    return serve(network.url)


def threads_of_ledgers() -> int:
    names = ("ledger-reader", "ledger-writer")
    return sum(each.name.startswith(names) for each in threading.enumerate())


# -- silent ----------------------------------------------------------------------------------------


def test_silent(network: FaultyNetwork, server: FaultyServer) -> None:
    assert server.is_well()
    network.fall_silent()
    for refused in server.together(
        ("GET", CANDIDATES, None),
        ("GET", "/resource_providers", None),
        *(("POST", "/resource_providers", {"name": f"lost-{each}"}) for each in range(8)),
    ):
        assert_away(refused)
    assert (server.status("/readyz"), server.status("/livez")) == (503, 200)
    network.heal()
    assert server.recovers()
    assert not any(server.is_there(f"lost-{each}") for each in range(8))
    # Threads that waited came back: their connections were cut.
    assert threads_of_ledgers() <= SHORT.readers + SHORT.writers


def test_silent_in_a_query(network: FaultyNetwork, server: FaultyServer) -> None:
    """The server was asked and went on; its answer is lost, and so are its locks after a while."""
    network.lose(b"INSERT INTO providers", "answer")
    assert_away(server.new_provider("lost"))
    assert network.has_lost.is_set()
    network.heal()
    assert server.recovers()
    assert not server.is_there("lost")


@pytest.mark.parametrize(("lost", "stands"), [("request", False), ("answer", True)])
def test_silent_in_a_commit(
    network: FaultyNetwork, server: FaultyServer, lost: Any, stands: bool
) -> None:
    """Whether the commit arrived is what nobody here can know: it is not repeated."""
    network.lose(COMMIT, lost)
    assert_unknown(server.new_provider("doubtful"))
    network.heal()
    assert server.recovers()
    assert server.is_there("doubtful") == stands


def test_silent_in_the_first_look(network: FaultyNetwork, url: str) -> None:
    """It may take any time, but not without a sign of life; the next look begins anew."""
    ledger = PostgresLedger(network.url, SHORT)
    keeper = SnapshotKeeper(ledger)

    async def looks() -> None:
        network.lose(b"FROM inventories", "request")
        with pytest.raises(LedgerBusy):
            await keeper.fresh()
        assert network.has_lost.is_set()
        network.heal()
        await keeper.fresh()

    try:
        asyncio.run(asyncio.wait_for(looks(), FOREVER))
    finally:
        ledger.close()


def test_silent_when_it_connects(network: FaultyNetwork, server: FaultyServer) -> None:
    network.cut()
    network.fall_silent()
    assert_away(server.new_provider("lost"))
    assert server.status("/readyz") == 503
    network.heal()
    assert server.recovers()


def test_either_end_of_a_connection_looks_whether_the_other_is_there(
    network: FaultyNetwork,
) -> None:
    """What no proxy can show: packets that are lost below it. Both kernels are told to look."""
    with answering(network.url, SHORT) as driver:
        driver.execute(server_keepalives(SHORT.keepalive_seconds))
        with socket.socket(fileno=os.dup(driver.pgconn.socket)) as ours:
            idle, interval, count, patience = (
                ours.getsockopt(socket.IPPROTO_TCP, option)
                for option in (
                    socket.TCP_KEEPIDLE,
                    socket.TCP_KEEPINTVL,
                    socket.TCP_KEEPCNT,
                    socket.TCP_USER_TIMEOUT,
                )
            )
            assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert idle + interval * count <= SHORT.keepalive_seconds
    assert patience == SHORT.keepalive_seconds * 1000


def test_what_a_url_says_of_its_connections_is_left_to_it(network: FaultyNetwork) -> None:
    with answering(f"{network.url}?keepalives_idle=77&application_name=mine", SHORT) as driver:
        with socket.socket(fileno=os.dup(driver.pgconn.socket)) as ours:
            assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 77
        assert driver.execute("SHOW application_name").fetchone() == ("mine",)


# -- cut -------------------------------------------------------------------------------------------


def test_cut(network: FaultyNetwork, server: FaultyServer) -> None:
    """Connections that broke while nobody used them are replaced before anybody notices."""
    assert server.is_well()
    network.cut()
    assert server.is_well()


def test_cut_in_a_commit(network: FaultyNetwork, server: FaultyServer) -> None:
    network.lose(COMMIT, "answer")
    written = server.ledger.write(lambda tx: tx.run("UPDATE traits SET created_at = 0"))
    assert network.has_lost.wait(FOREVER)
    network.cut()
    with pytest.raises(OutcomeUnknown):
        written.result(FOREVER)
    network.heal()
    assert server.recovers()


def test_restarted(url: str, serve: Callable[[str], FaultyServer]) -> None:
    server = serve(url)
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    with psycopg.connect(url, dbname="postgres", autocommit=True) as other:
        other.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        other.execute(ended, (name,))
        assert_away(server.new_provider("lost"))
        assert_away(server.call("GET", CANDIDATES))
        assert (server.status("/readyz"), server.status("/livez")) == (503, 200)
        other.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    assert server.recovers()


def test_read_only(url: str, serve: Callable[[str], FaultyServer]) -> None:
    """As after a failover, when what answers is a standby: reads go on."""
    server = serve(url)
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    with psycopg.connect(url, dbname="postgres", autocommit=True) as other:
        other.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        other.execute(ended, (name,))
        # Known before anybody writes.
        assert server.status("/readyz") == 503
        assert_away(server.new_provider("lost"))
        assert server.status(CANDIDATES) == 200
        assert (server.status("/readyz"), server.status("/livez")) == (503, 200)
        other.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    assert server.recovers()


# -- locked, exhausted -----------------------------------------------------------------------------


def test_locked(url: str, serve: Callable[[str], FaultyServer]) -> None:
    """More writes wait for the row than there are threads for writes: reads have their own."""
    server = serve(url)
    path = f"/resource_providers/{server.host}"
    with psycopg.connect(url) as other:
        other.execute("SELECT * FROM providers WHERE uuid = %s FOR UPDATE", (server.host,))
        writes = [("PUT", path, {"name": f"renamed-{each}"}) for each in range(6)]
        *refused, listed, found = server.together(
            *writes, ("GET", "/resource_providers", None), ("GET", CANDIDATES, None)
        )
        for each in refused:
            assert_away(each)
        assert (listed.status_code, found.status_code) == (200, 200)
        # One row that cannot be written is no reason to send nobody here.
        assert_away(server.call(*writes[0]))
        assert server.status("/readyz") == 200
    assert server.recovers()
    assert server.call("GET", path).json()["name"] == "host"


def test_tables_locked(url: str, serve: Callable[[str], FaultyServer]) -> None:
    """The look at the change log ends, here and at the server: none is left behind waiting."""
    server = serve(url)
    assert server.is_well()
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE changes IN ACCESS EXCLUSIVE MODE")
        for _ in range(3):
            assert_away(server.call("GET", CANDIDATES))
        assert server.status("/livez") == 200
        with psycopg.connect(url, autocommit=True) as third:
            waiting = third.execute(
                """SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'"""
            ).fetchone()
    assert waiting == (0,)
    assert server.recovers()


def test_exhausted(url: str, serve: Callable[[str], FaultyServer]) -> None:
    server = serve(url)
    taken: list[psycopg.Connection[Any]] = []

    def takes_all() -> None:
        with suppress(psycopg.OperationalError):
            while True:
                taken.append(psycopg.connect(url))

    def refused(method: str, path: str, body: Any = None) -> httpx2.Response:
        """The answer when its connection was ended and somebody else has taken its place."""
        ours = "datname = current_database() AND application_name = 'dovetail'"
        for _ in range(20):
            taken[0].execute(
                f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE {ours}"
            )
            takes_all()
            answer = server.call(method, path, body)
            if answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE:
                break
        return answer

    try:
        takes_all()
        assert_away(refused("POST", "/resource_providers", {"name": "lost"}))
        assert_away(refused("GET", CANDIDATES))
        assert (server.status("/readyz"), server.status("/livez")) == (503, 200)
    finally:
        for each in taken:
            each.close()
    assert server.recovers()


def test_tables_gone(url: str, serve: Callable[[str], FaultyServer]) -> None:
    """For a while, as somebody restores them with tools of the database."""
    server = serve(url)
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("ALTER TABLE providers RENAME TO aside")
        assert_away(server.new_provider("lost"))
        assert_away(server.call("GET", "/resource_providers"))
        assert server.status("/readyz") == 503
        other.execute("ALTER TABLE aside RENAME TO providers")
    assert server.recovers()


# -- what is not cut off ---------------------------------------------------------------------------


def test_a_long_statement_is_cut_off_unless_its_operation_lifts_the_timeouts(url: str) -> None:
    ledger = open_ledger(url, SHORT)
    try:
        with pytest.raises(LedgerBusy, match="statement timeout"):
            ledger.read(lambda tx: tx.row("SELECT pg_sleep(60)")).result(FOREVER)
        slept = []
        for run in (ledger.read, ledger.write):

            def long(tx: Any) -> Any:
                tx.lift_timeouts()
                return tx.row("SELECT 1 FROM pg_sleep(3)")

            slept.append(run(long).result(FOREVER))
        assert slept == [(1,), (1,)]
    finally:
        ledger.close()


def test_the_first_look_waits_for_whoever_holds_the_tables(url: str) -> None:
    """A snapshot of everything is bulk work, like loads and restores."""
    ledger = PostgresLedger(url, SHORT)
    try:
        with psycopg.connect(url) as other:
            other.execute("LOCK TABLE inventories IN ACCESS EXCLUSIVE MODE")
            first = ledger.poll(None)
            # Longer than any timeout of a request.
            assert not wait([first], timeout=SHORT.answer_seconds + SHORT.lock_seconds).done
        delta = first.result(FOREVER)
        assert delta is not None
        assert delta.everything
    finally:
        ledger.close()
