"""Fills an empty ledger from a backup: all of it, or nothing.

A file is read to its end and found to be sound before the database is touched, and once more
while it is restored.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import orjson

from dovetail.ledger.bulk.backup import FORMAT, TABLES, BadBackup, Counts
from dovetail.ledger.database import opening
from dovetail.ledger.database.protocol import Change, Row, Transaction
from dovetail.ledger.standards import CUSTOM_PREFIX, sync_standard_names

NAMES = ("traits", "resource_classes")
NUMBERED = ("traits", "providers", "consumers", "decisions")
"""Tables whose rows the database numbers by itself."""
MOST_LINE_BYTES = 64 * 2**20


def restore(path: Path, url: str) -> Counts:
    """Fill the empty ledger at `url` (made if there is none); rows of each table."""
    counts = verify(path)
    ledger = opening.open_ledger(url)
    try:
        ledger.write(lambda tx: fill(tx, path)).result()
    finally:
        ledger.close()
    return counts


def verify(path: Path) -> Counts:
    """Read all of a backup, changing nothing; rows of each table."""
    counts: Counts = dict.fromkeys(TABLES, 0)
    counts.update(Counter(table for table, _ in rows_of(path)))
    return counts


def fill(tx: Transaction, path: Path) -> None:
    tx.lift_timeouts()
    refuse_unless_empty(tx)
    for table in NAMES:
        tx.run(f"DELETE FROM {table}")  # noqa: S608
    for table, found in groupby(rows_of(path), key=itemgetter(0)):
        rows: Iterable[Row] = (row for _, row in found)
        if table == "providers":
            rows = parents_first(rows)
        tx.bulk(table, TABLES[table].columns, rows)
    for table in NUMBERED:
        step_over(tx, table)
    sync_standard_names(tx)
    tx.changed(Change.NAMES)
    tx.changed(Change.CLASSES)
    for (root,) in tx.rows("SELECT id FROM providers WHERE parent_id IS NULL"):
        tx.changed(Change.TREE, root)


def refuse_unless_empty(tx: Transaction) -> None:
    for table in TABLES:
        custom = f" WHERE substr(name, 1, {len(CUSTOM_PREFIX)}) = ?" if table in NAMES else ""
        parameters = (CUSTOM_PREFIX,) if table in NAMES else ()
        found = tx.row(f"SELECT count(*) FROM {table}{custom}", parameters)  # noqa: S608
        if found and found[0]:
            raise BadBackup(
                f"the ledger is not empty: it has {found[0]} "
                f"{'custom ' if table in NAMES else ''}{table.replace('_', ' ')}; "
                "restore into a new database"
            )


def parents_first(rows: Iterable[Row]) -> Iterator[Row]:
    """Providers so that each comes after its parent, which may have been made later."""
    columns = TABLES["providers"].columns
    id_, parent = columns.index("id"), columns.index("parent_id")
    done: set[int | None] = {None}
    waiting: list[Row] = []
    for row in rows:
        if row[parent] in done:
            done.add(row[id_])
            yield row
        else:
            waiting.append(row)
    while waiting:
        ready = [row for row in waiting if row[parent] in done]
        if not ready:
            raise BadBackup(f"{len(waiting)} providers have no parent that leads to a root")
        done.update(row[id_] for row in ready)
        yield from ready
        waiting = [row for row in waiting if row[id_] not in done]


def step_over(tx: Transaction, table: str) -> None:
    """See to it that no id is given out again."""
    row = tx.row(f"SELECT max(id) FROM {table}")  # noqa: S608
    if row and row[0]:
        tx.reserve_ids(table, row[0])


# -- the file ------------------------------------------------------------------------------------


def rows_of(path: Path) -> Iterator[tuple[str, Row]]:
    """Every row with its table; at the end, all of it was there as it was written."""
    digest = hashlib.sha256()
    counts: Counter[str] = Counter()
    lines = documents(path)
    raw, head = next(lines, (b"", None))
    refuse_foreign(path, head)
    digest.update(raw)
    table = ""
    for raw, document in lines:
        if isinstance(document, list) and table and len(document) == len(TABLES[table].columns):
            counts[table] += 1
            digest.update(raw)
            yield table, values_of(table, document)
        elif isinstance(document, dict) and "table" in document:
            table = known_table(path, document)
            digest.update(raw)
        elif isinstance(document, dict) and "sha256" in document:
            refuse_wrong_end(path, document, counts, digest.hexdigest())
            if next(lines, None) is not None:
                raise BadBackup(f"{path} is damaged: something follows its end")
            return
        else:
            raise BadBackup(f"{path} is damaged: {raw[:80]!r} cannot be in it")
    raise BadBackup(f"{path} is cut short: it has no end")


def values_of(table: str, row: list[Any]) -> Row:
    binary = TABLES[table].binary
    if binary:
        at = TABLES[table].columns.index(binary)
        row[at] = base64.b64decode(row[at])
    return tuple(row)


def documents(path: Path) -> Iterator[tuple[bytes, Any]]:
    try:
        with gzip.open(path, "rb") as file:
            while raw := file.readline(MOST_LINE_BYTES):
                yield raw, orjson.loads(raw)
    except EOFError as error:
        raise BadBackup(f"{path} is cut short: {error}") from error
    except (zlib.error, gzip.BadGzipFile, orjson.JSONDecodeError) as error:
        raise BadBackup(f"{path} is damaged, or no backup: {error}") from error
    except OSError as error:
        raise BadBackup(f"cannot read {path}: {error}") from error


def refuse_foreign(path: Path, head: Any) -> None:
    """A backup begins with a head that says so, and is of this format and revision."""
    if not isinstance(head, dict) or "dovetail_backup" not in head:
        raise BadBackup(f"{path} is no backup of Dovetail")
    if head["dovetail_backup"] != FORMAT:
        raise BadBackup(
            f"{path} has format {head['dovetail_backup']}, this Dovetail reads {FORMAT}"
        )
    if head.get("revision") != opening.HEAD:
        raise BadBackup(
            f"{path} has tables of revision {head.get('revision')}, this Dovetail's are "
            f"{opening.HEAD}: restore it with the Dovetail that made it, then upgrade"
        )


def known_table(path: Path, document: dict[str, Any]) -> str:
    name = str(document["table"])
    if name not in TABLES or document.get("columns") != list(TABLES[name].columns):
        raise BadBackup(f"{path} is damaged: {document} is no table of revision {opening.HEAD}")
    return name


def refuse_wrong_end(path: Path, end: dict[str, Any], counts: Counts, digest: str) -> None:
    if end["sha256"] != digest:
        raise BadBackup(f"{path} is damaged: its checksum is wrong")
    if {name: count for name, count in end.get("rows", {}).items() if count} != dict(counts):
        raise BadBackup(f"{path} is damaged: it has {dict(counts)}, and says {end.get('rows')}")
