"""Backup and restore: consistent while others write, the same on every database, all or nothing."""

from __future__ import annotations

import gzip
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import orjson
import pytest

from dovetail.core.errors import DovetailError, Refused
from dovetail.core.provider import Provider
from dovetail.ledger import (
    Ledger,
    attributes,
    claims,
    decisions,
    device_classes,
    open_ledger,
    providers,
    traits,
)
from dovetail.ledger.bulk import audit
from dovetail.ledger.bulk.backup import TABLES, BadBackup, backup
from dovetail.ledger.bulk.restore import restore, verify
from dovetail.ledger.database import opening
from dovetail.ledger.database.protocol import Transaction
from tests.ledger.world import claim, get, make, used

NOT_KEPT = {"alembic_version", "changes", "changes_trimmed", "machine_queues", "sealing_keys"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ledger.backup"


def contents(ledger: Ledger) -> dict[str, list[tuple[object, ...]]]:
    return {
        name: ledger.read(
            lambda tx, name=name, table=table: tx.rows(  # type: ignore[misc]
                f"SELECT {', '.join(table.columns)} FROM {name} "
                f"ORDER BY {', '.join(table.columns[: table.key])}"
            )
        ).result()
        for name, table in TABLES.items()
    }


def small_world(ledger: Ledger) -> Provider:
    host = make(ledger, "host", DISK_GB=100)
    node = make(ledger, "host_numa0", host, VCPU=8)
    ledger.write(lambda tx: traits.ensure(tx, "CUSTOM_FAST")).result()
    consumer = claim(ledger, (node, {"VCPU": 3}), (host, {"DISK_GB": 10}))
    ledger.write(lambda tx: decisions.record(tx, consumer, "{}")).result()
    ledger.write(lambda tx: attributes.assign(tx, host, {"memory": "30G"})).result()
    ledger.write(lambda tx: device_classes.define(tx, "large", "{}")).result()
    ledger.write(kept_documents).result()
    return node


def kept_documents(tx: Transaction) -> None:
    """A document below another, and a file that is no text."""
    objects = (("projects/p", None), ("projects/p/composite-apps/c/v1", "projects/p"))
    for path, parent in objects:
        tx.run("INSERT INTO intent_objects VALUES (?, ?, 'project', 1, '{}', 1, 1)", (path, parent))
    for name in ("file", "profile"):
        tx.run("INSERT INTO intent_files VALUES ('projects/p', ?, ?)", (name, bytes(range(256))))


@contextmanager
def opened(url: str) -> Iterator[Ledger]:
    with closing(open_ledger(url)) as ledger:
        yield ledger


def test_what_was_backed_up_comes_back_on_either_database(
    ledger: Ledger, database_url: str, empty_url: str, file: Path
) -> None:
    node = small_world(ledger)
    counts = backup(database_url, file)
    assert (counts["providers"], counts["consumers"], counts["allocations"]) == (2, 1, 2)
    assert restore(file, empty_url) == verify(file) == counts
    with opened(empty_url) as restored:
        assert contents(restored) == contents(ledger)
        assert used(restored, node) == {"VCPU": 3}
        # Ids go on after those that were restored.
        added = make(restored, "another", VCPU=1)
        claim(restored, (added, {"VCPU": 1}), (get(restored, node), {"VCPU": 5}))
        with pytest.raises(Refused):
            claim(restored, (get(restored, node), {"VCPU": 1}))


def test_a_backup_under_load_is_the_ledger_at_one_moment(
    ledger: Ledger, database_url: str, tmp_path: Path, empty_url: str
) -> None:
    hosts = [make(ledger, f"host{number}", VCPU=4, DISK_GB=50) for number in range(8)]
    taken = threading.Event()
    files = [tmp_path / f"{number}.backup" for number in range(3)]
    workers = [threading.Thread(target=churn, args=(ledger, hosts, taken)) for _ in range(4)]
    for worker in workers:
        worker.start()
    try:
        counts = [backup(database_url, file) for file in files]
    finally:
        taken.set()
        for worker in workers:
            worker.join()
    assert counts[-1]["allocations"] > 0
    restore(files[-1], empty_url)
    with opened(empty_url) as restored:
        findings = restored.read(audit.examine).result()
        assert findings.faults == []
        assert findings.checked["allocations"] == counts[-1]["allocations"]


def churn(ledger: Ledger, hosts: list[Provider], enough: threading.Event) -> None:
    """Claims and releases, two providers at a time, until told to stop."""
    held: list[str] = []
    turn = 0
    while not enough.is_set():
        first, second = hosts[turn % 8], hosts[(turn * 3 + 1) % 8]
        turn += 1
        try:
            held.append(claim(ledger, (first, {"VCPU": 1}), (second, {"DISK_GB": 1})))
        except DovetailError:
            for consumer in held:
                ledger.write(lambda tx, one=consumer: claims.release(tx, one)).result()  # type: ignore[misc]
            held.clear()


def test_a_provider_may_be_older_than_its_parent(
    ledger: Ledger, database_url: str, empty_url: str, file: Path
) -> None:
    child, middle, top = (make(ledger, name) for name in ("child", "middle", "top"))
    for below, above in ((child, middle), (middle, top)):
        ledger.write(
            lambda tx, below=below, above=above: providers.move(  # type: ignore[misc]
                tx, providers.get_locked(tx, below.uuid), above.uuid, free=True
            )
        ).result()
    backup(database_url, file)
    restore(file, empty_url)
    with opened(empty_url) as restored:
        assert contents(restored) == contents(ledger)


def truncated(good: bytes) -> bytes:
    return good[: len(good) // 2]


def flipped(good: bytes) -> bytes:
    middle = len(good) // 2
    return good[:middle] + bytes([good[middle] ^ 0x10]) + good[middle + 1 :]


def lines_changed(change: Callable[[list[bytes]], object]) -> Callable[[bytes], bytes]:
    """Damage that the compression knows nothing of."""

    def damage(good: bytes) -> bytes:
        lines = gzip.decompress(good).splitlines(keepends=True)
        change(lines)
        return gzip.compress(b"".join(lines))

    return damage


def with_head(**changes: object) -> Callable[[bytes], bytes]:
    def change(lines: list[bytes]) -> None:
        lines[0] = orjson.dumps({**orjson.loads(lines[0]), **changes}) + b"\n"

    return lines_changed(change)


def more_capacity(lines: list[bytes]) -> None:
    at = next(number for number, line in enumerate(lines) if b'"host"' in line)
    lines[at] = lines[at].replace(b'"host"', b'"tsoh"')


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut in half": (truncated, "cut short"),
    "a bit flipped": (flipped, "damaged"),
    "empty": (lambda _: b"", "no backup of Dovetail"),
    "something else": (lambda _: b"PK\3\4", "damaged, or no backup"),
    "another document": (lambda _: gzip.compress(b"{}\n"), "no backup of Dovetail"),
    "a row changed": (lines_changed(more_capacity), "checksum is wrong"),
    "a row missing": (lines_changed(lambda lines: lines.pop(-2)), "checksum is wrong"),
    "the end missing": (lines_changed(lambda lines: lines.pop()), "cut short"),
    "more after the end": (lines_changed(lambda lines: lines.append(b"[1]\n")), "follows its end"),
    "a later format": (with_head(dovetail_backup=2), "has format 2, this Dovetail reads 1"),
    "another revision": (with_head(revision="0099"), "revision 0099, this Dovetail's are"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_refused_and_changes_nothing(tmp_path: Path, kind: str) -> None:
    source, target = f"sqlite:///{tmp_path}/a.db", tmp_path / "b.db"
    file = tmp_path / "ledger.backup"
    with opened(source) as ledger:
        small_world(ledger)
    backup(source, file)
    damage, complaint = DAMAGE[kind]
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(BadBackup, match=complaint):
        restore(file, f"sqlite:///{target}")
    assert not target.exists()


@pytest.mark.parametrize("what", ["providers", "custom traits"])
def test_a_ledger_that_is_not_empty_is_left_as_it_is(
    ledger: Ledger, database_url: str, file: Path, what: str
) -> None:
    backup(database_url, file)
    if what == "providers":
        make(ledger, "host", VCPU=1)
    else:
        ledger.write(lambda tx: traits.ensure(tx, "CUSTOM_FAST")).result()
    before = contents(ledger)
    with pytest.raises(BadBackup, match=f"not empty: it has 1 {what}"):
        restore(file, database_url)
    assert contents(ledger) == before


def test_backups_do_not_overwrite_and_leave_nothing_half_done(tmp_path: Path, file: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with opened(url):
        pass
    file.write_text("precious")
    with pytest.raises(BadBackup, match="do not overwrite"):
        backup(url, file)
    with pytest.raises(BadBackup, match="cannot write"):
        backup(url, tmp_path / "no such folder" / "file")
    assert file.read_text() == "precious"
    assert list(tmp_path.rglob("*.partial")) == []


def test_there_has_to_be_a_ledger(tmp_path: Path, file: Path) -> None:
    with pytest.raises(BadBackup, match="there are no tables"):
        backup(f"sqlite:///{tmp_path}/nothing.db", file)


def test_every_table_and_column_is_kept(tmp_path: Path) -> None:
    """If not: add the new ones to TABLES, or here if they need not be kept."""
    opening.upgrade(f"sqlite:///{tmp_path}/ledger.db")
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        names = {
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if not name.startswith("sqlite_")
        }
        assert names - NOT_KEPT == set(TABLES)
        for name, table in TABLES.items():
            described = connection.execute(f"PRAGMA table_info({name})").fetchall()
            key = sorted((order, column) for _, column, *_, order in described if order)
            assert {column for _, column, *_ in described} == set(table.columns)
            assert [column for _, column in key] == list(table.columns[: table.key])
