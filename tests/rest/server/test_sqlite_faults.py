"""What a server answers when something happens to its SQLite file: docs/operation.md, Faults.

Each test has the name of its row there.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from dovetail.ledger import LedgerBusy, OutcomeUnknown, Transaction, open_ledger
from dovetail.ledger.database.protocol import Change
from dovetail.ledger.database.settings import LedgerSettings
from tests.rest.faulty_server import CANDIDATES, FOREVER, FaultyServer, assert_away
from tests.support.databases import copied

SHORT = LedgerSettings(answer_seconds=3.0, readers=2)
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")


@pytest.fixture
def file(sqlite_with_tables: str, tmp_path: Path) -> Path:
    copied(sqlite_with_tables, tmp_path / "ledger.db")
    return tmp_path / "ledger.db"


@contextmanager
def serving(file: Path) -> Iterator[FaultyServer]:
    server = FaultyServer(f"sqlite:///{file}", SHORT)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def server(file: Path) -> Iterator[FaultyServer]:
    with serving(file) as server:
        yield server


def assert_nothing_works(server: FaultyServer) -> None:
    assert_away(server.new_provider("lost"))
    assert_away(server.call("GET", CANDIDATES))
    assert_away(server.call("GET", "/resource_providers"))
    assert (server.status("/readyz"), server.status("/livez")) == (503, 200)


# -- removed, replaced -----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_removed(file: Path, server: FaultyServer, suffix: str, tmp_path: Path) -> None:
    assert server.is_well()
    gone = Path(f"{file}{suffix}")
    gone.rename(tmp_path / "aside")
    assert_nothing_works(server)
    (tmp_path / "aside").rename(gone)
    assert server.recovers()
    assert not server.is_there("lost")


def test_replaced(file: Path, server: FaultyServer, tmp_path: Path) -> None:
    """By another ledger: what is in memory is not about that one. A restart uses it."""
    shutil.copy(file, tmp_path / "other")
    (tmp_path / "other").rename(file)
    assert_nothing_works(server)


def test_emptied(file: Path, server: FaultyServer) -> None:
    assert server.is_well()
    os.truncate(file, 0)
    assert_nothing_works(server)


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_what_is_written_while_the_file_goes_is_not_acknowledged(
    file: Path, server: FaultyServer, suffix: str
) -> None:
    def write(tx: Transaction) -> None:
        tx.run("UPDATE traits SET created_at = 0")
        Path(f"{file}{suffix}").unlink()

    with pytest.raises(LedgerBusy, match=f"ledger.db{suffix} was removed"):
        server.ledger.write(write).result(FOREVER)


def test_what_was_acknowledged_before_its_log_was_removed_is_kept(
    file: Path, sqlite_with_tables: str
) -> None:
    """A server that ends writes its log, which only it has open any more, back into the file."""
    with serving(file) as server:
        assert server.new_provider("kept").is_success
        Path(f"{file}-wal").unlink()
        Path(f"{file}-shm").unlink()
        assert_away(server.new_provider("lost"))
    with closing(open_ledger(f"sqlite:///{file}")) as ledger:
        names = ledger.read(lambda tx: tx.rows("SELECT name FROM providers ORDER BY id")).result()
    assert names == [("host",), ("kept",)]


# -- full, damaged, held ---------------------------------------------------------------------------


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path) -> Path:
    """Take all room that is left."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as written, suppress(OSError):
        while True:
            written.write(bytes(4096))
    return ballast


@NEEDS_ROOT
def test_full(file: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "4m") as disk:
        shutil.copy(file, disk / "ledger.db")
        with serving(disk / "ledger.db") as server:
            assert server.is_well()
            ballast = fill(disk)
            # What is in the log's file already can be written over: some more may fit.
            refused = [server.new_provider(f"lost-{each}") for each in range(60)]
            lost = [f"lost-{at}" for at, each in enumerate(refused) if not each.is_success]
            assert_away(refused[-1])
            assert {each.status_code for each in refused} <= {200, 503}
            assert server.status(CANDIDATES) == 200
            assert (server.status("/readyz"), server.status("/livez")) == (503, 200)
            ballast.unlink()
            # The probe itself finds out: no writes come from a load balancer that sends none.
            assert any(server.status("/readyz") == 200 for _ in range(20))
            assert server.recovers()
            assert not any(server.is_there(name) for name in lost)
        with closing(open_ledger(f"sqlite:///{disk}/ledger.db")) as ledger:
            sound = ledger.read(lambda tx: tx.row("PRAGMA integrity_check")).result()
    assert sound == ("ok",)


def test_a_batch_that_fills_the_disk_is_refused_as_a_whole(server: FaultyServer) -> None:
    """SQLite rolls back more than the operation that met the fault: nobody is told "done"."""
    server.ledger.write(lambda tx: tx.run("PRAGMA max_page_count = 1")).result(FOREVER)
    started, go_on = threading.Event(), threading.Event()

    def small(tx: Transaction) -> None:
        started.set()
        go_on.wait(FOREVER)
        tx.run("UPDATE traits SET created_at = 0")

    def large(tx: Transaction) -> None:
        tx.many("INSERT INTO changes (kind, root_id) VALUES (?, ?)", [(0, 0)] * 20_000)

    first = server.ledger.write(small)
    assert started.wait(FOREVER)
    second = server.ledger.write(large)
    go_on.set()
    for each in (first, second):
        with pytest.raises(LedgerBusy, match="the disk is full"):
            each.result(FOREVER)
    changed = "SELECT count(*) FROM traits WHERE created_at = 0"
    assert server.ledger.read(lambda tx: tx.row(changed)).result() == (0,)
    assert server.recovers()


def test_damaged(file: Path) -> None:
    """While it runs: pages that make no sense. Beforehand, it does not start."""
    with closing(sqlite3.connect(file)) as connection:
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'inventories'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with closing(open_ledger(f"sqlite:///{file}", SHORT)) as ledger:
        with file.open("r+b") as opened:
            opened.seek((root - 1) * size)
            opened.write(b"\xff" * size)
        with pytest.raises(LedgerBusy, match=r"ledger.db is damaged: restore a backup"):
            ledger.poll(None).result(FOREVER)
        # What does not need the page goes on.
        assert ledger.read(lambda tx: tx.row("SELECT 1")).result() == (1,)


def test_held(file: Path, server: FaultyServer) -> None:
    """By a process that writes for longer than others wait: reads go on."""
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert_away(server.new_provider("lost"))
        assert server.status(CANDIDATES) == 200
        other.execute("ROLLBACK")
    assert server.recovers()


# -- group commit ----------------------------------------------------------------------------------


def test_bulk_work_has_a_commit_of_its_own(server: FaultyServer) -> None:
    """Those that gathered with it need not wait for it to learn that theirs stands."""
    started, go_on, lifted = threading.Event(), threading.Event(), threading.Event()

    def small(tx: Transaction) -> str:
        started.set()
        assert go_on.wait(FOREVER)
        return "small"

    def long(tx: Transaction) -> str:
        tx.lift_timeouts()
        lifted.set()
        assert ended.wait(FOREVER)
        tx.changed(Change.NAMES)
        return "long"

    ended = threading.Event()
    first = server.ledger.write(small)
    assert started.wait(FOREVER)
    second, third = server.ledger.write(long), server.ledger.write(lambda _: "late")
    go_on.set()
    assert lifted.wait(FOREVER)
    assert first.result(FOREVER) == "small"
    # Whoever comes later waits as long as requests do, and is told that nothing was done.
    with pytest.raises(LedgerBusy) as refused:
        third.result(FOREVER)
    assert not isinstance(refused.value, OutcomeUnknown)
    ended.set()
    assert second.result(FOREVER) == "long"
    assert server.recovers()


def test_a_write_that_takes_too_long_is_not_done_after_its_caller_was_told_so(
    server: FaultyServer,
) -> None:
    go_on = threading.Event()

    def slow(tx: Transaction) -> Any:
        tx.run("UPDATE traits SET created_at = 0")
        assert go_on.wait(FOREVER)

    written = server.ledger.write(slow)
    with pytest.raises(LedgerBusy, match="did not answer in time"):
        written.result(FOREVER)
    go_on.set()
    assert server.recovers()
    changed = "SELECT count(*) FROM traits WHERE created_at = 0"
    assert server.ledger.read(lambda tx: tx.row(changed)).result() == (0,)
