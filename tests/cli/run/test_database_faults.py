"""Commands that open a ledger themselves: what is wrong with it is a sentence and an exit code.

The rows "at the start" of docs/operation.md, Faults.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner, Result

from dovetail.cli.main import main
from dovetail.ledger.database import opening
from tests.support import databases
from tests.support.paths import DOVETAIL
from tests.support.processes import Process, reserved_port

LOCAL_FAILURE = 6
COMMANDS = {
    "serve": ["serve", "--auth", "noauth2", "--port", "0"],
    "scheduler": ["scheduler"],
    "operator": ["operator"],
    "db upgrade": ["db", "upgrade"],
    "db check": ["db", "check"],
    "db backup": ["db", "backup", "backup.gz"],
    "audit": ["audit"],
}
WRITERS = ("serve", "scheduler", "operator")
Fault = Callable[["Place"], None]


class Place:
    """A ledger on SQLite in a folder that something can be done to."""

    def __init__(self, folder: Path, model: str, stack: ExitStack) -> None:
        self.folder = folder / "place"
        self.folder.mkdir()
        self.file = self.folder / "ledger.db"
        databases.copied(model, self.file)
        self.stack = stack

    @property
    def url(self) -> str:
        return f"sqlite:///{self.file}"

    def mount(self, *how: str) -> None:
        """Until the test ends."""
        subprocess.run(["mount", *how, self.folder], check=True)
        self.stack.callback(lambda: subprocess.run(["umount", "--lazy", self.folder], check=True))


@pytest.fixture
def place(
    tmp_path: Path, sqlite_with_tables: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:
        yield Place(tmp_path, sqlite_with_tables, stack)


def called(command: str, url: str) -> Result:
    return CliRunner().invoke(main, [*COMMANDS[command], "--database", url])


def assert_told(result: Result, sentence: str) -> None:
    assert (result.exit_code, "Traceback" in result.output) == (LOCAL_FAILURE, False), result.output
    assert sentence in result.output
    assert not isinstance(result.exception, Exception) or isinstance(result.exception, SystemExit)


# -- SQLite ----------------------------------------------------------------------------------------


def not_a_database(place: Place) -> None:
    place.file.write_bytes(b"To whom it may concern" * 1000)


def cut_short(place: Place) -> None:
    os.truncate(place.file, 5000)


def a_directory(place: Place) -> None:
    place.file.unlink()
    place.file.mkdir()


def below_a_file(place: Place) -> None:
    place.file = place.folder / "ledger.db" / "below" / "it.db"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (not_a_database, "is no SQLite database, or damaged"),
        (cut_short, "is damaged: restore a backup"),
        (a_directory, "cannot be opened: it has to be a file"),
        (below_a_file, "cannot be made"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_file_that_is_no_ledger(place: Place, command: str, fault: Fault, sentence: str) -> None:
    fault(place)
    assert_told(called(command, place.url), sentence)


@pytest.mark.parametrize("command", [*WRITERS, "db upgrade"])
def test_tables_of_a_newer_version(place: Place, command: str) -> None:
    with databases.connected(place.url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    assert_told(called(command, place.url), "are of revision 9999")
    checked = called("db check", place.url)
    assert (checked.exit_code, "9999, newest is" in checked.output) == (1, True)


@pytest.mark.parametrize("command", WRITERS)
def test_a_file_that_may_not_be_written(place: Place, command: str) -> None:
    """It hung for ever: the thread that writes had ended, and nobody noticed."""
    if os.geteuid() == 0:
        # Root may write to everything, except where nobody may.
        place.mount("--bind", str(place.folder))
        subprocess.run(["mount", "-o", "remount,bind,ro", place.folder], check=True)
    else:
        place.file.chmod(0o444)
        place.folder.chmod(0o555)
        place.stack.callback(place.folder.chmod, 0o755)
    said = called(command, place.url)
    assert_told(said, "this user needs the right to write")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
@pytest.mark.parametrize("command", ["serve", "db upgrade"])
def test_a_disk_that_is_full_while_tables_are_made(place: Place, command: str) -> None:
    """Nothing is left half made: where there is room, the same command makes them."""
    place.mount("-t", "tmpfs", "-o", "size=48k", "tmpfs")
    assert_told(called(command, place.url), "the disk is full; make room")
    subprocess.run(["mount", "-o", "remount,size=16m", place.folder], check=True)
    assert called("db upgrade", place.url).exit_code == 0
    assert opening.revision(place.url) == opening.HEAD
    with closing(sqlite3.connect(place.file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_several_servers_that_start_on_a_new_file(tmp_path: Path) -> None:
    """They wait for the one that makes the tables; all of them serve."""
    with ExitStack() as stack:
        servers = []
        for each in range(3):
            port = stack.enter_context(reserved_port())
            command = [DOVETAIL, "serve", "--auth", "noauth2", "--port", str(port)]
            log = tmp_path / f"log-{each}"
            database = f"sqlite:///{tmp_path}/new/ledger.db"
            server = Process([*command, "--database", database], log)
            stack.enter_context(server)
            servers.append((server, port))
        for server, port in servers:
            server.await_ready(lambda port=port: is_listening(port), 240)  # type: ignore[misc]


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


# -- PostgreSQL ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_a_server_that_is_not_there(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with reserved_port() as port:
        url = f"postgresql://dovetail:secret@127.0.0.1:{port}/dovetail"
        said = called(command, url)
    assert_told(said, "the database cannot be reached")
    assert "secret" not in said.output


@pytest.mark.parametrize("command", [*WRITERS, "db upgrade"])
def test_a_user_who_may_not_make_tables(postgres: str, command: str) -> None:
    url = databases.empty(postgres)
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
    said = called(command, url.replace("postgres:@", f"{name}:@"))
    assert_told(said, "could not be made or changed")
