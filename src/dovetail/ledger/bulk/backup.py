"""Writes the whole ledger to a file, as it was at one moment, while others go on writing.

The file is the same for every database: compressed lines of JSON. A head names the format and the
revision of the tables; each table begins with its columns, and its rows follow, one a line; the
last line has the number of rows of each table and a checksum of all lines before it. Ids and
generations are kept. The change log is not part of it: nobody follows a ledger that is new.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import orjson

from dovetail.core.errors import DovetailError
from dovetail.ledger.database import opening
from dovetail.ledger.database.protocol import Row, Transaction

FORMAT = 1
PAGE = 10_000
COMPRESSION = 4
"""A third of the time of the usual 9, for files that are hardly larger."""


class BadBackup(DovetailError):
    """A backup that cannot be made, or a file that cannot be restored."""


class Table(msgspec.Struct, frozen=True):
    key: int
    """So many of the columns, the first, are the primary key."""
    columns: tuple[str, ...]
    page: int = PAGE
    """So many rows at a time."""
    binary: str = ""
    """The column whose values are bytes; the file has them in base 64."""


TABLES = {
    "resource_classes": Table(1, ("id", "name", "changed_at")),
    "traits": Table(1, ("id", "name", "created_at")),
    "providers": Table(
        1, ("id", "uuid", "name", "generation", "parent_id", "root_id", "changed_at")
    ),
    "inventories": Table(
        2,
        (
            "provider_id",
            "class_id",
            "total",
            "reserved",
            "min_unit",
            "max_unit",
            "step_size",
            "allocation_ratio",
            "used",
            "changed_at",
        ),
    ),
    "provider_traits": Table(2, ("provider_id", "trait_id")),
    "provider_aggregates": Table(2, ("provider_id", "aggregate")),
    "provider_attributes": Table(2, ("provider_id", "key", "value")),
    "device_classes": Table(1, ("name", "document", "created_at", "changed_at")),
    "consumers": Table(1, ("id", "uuid", "generation", "project_id", "user_id", "consumer_type")),
    "allocations": Table(3, ("consumer_id", "provider_id", "class_id", "used", "created_at")),
    "decisions": Table(1, ("id", "decided_at", "consumer", "document")),
    "intent_objects": Table(
        1, ("path", "parent", "kind", "position", "document", "created_at", "changed_at")
    ),
    "intent_references": Table(2, ("path", "target")),
    "intent_files": Table(2, ("path", "name", "content"), page=1, binary="content"),
    "idempotency": Table(2, ("key", "caller", "digest", "status", "body", "created_at")),
    "clusters": Table(
        1, ("name", "state", "why", "observed_at", "source", "unreachable", "classes")
    ),
    "cluster_nodes": Table(1, ("root_id", "cluster", "name", "document", "pods"), page=100),
    "deployments": Table(
        1, ("id", "group_path", "revision", "state", "document", "created_at", "changed_at")
    ),
    "deployment_objects": Table(
        4,
        (
            "deployment",
            "cluster",
            "app",
            "position",
            "object_key",
            "document",
            "state",
            "message",
        ),
    ),
    "leases": Table(1, ("name", "holder", "until")),
    "controller_answers": Table(2, ("controller", "group_path", "document", "answered_at")),
}
"""What is kept, in an order in which every row finds what it refers to."""

Counts = dict[str, int]


def backup(url: str, path: Path) -> Counts:
    """Write the ledger at `url` to a new file; how many rows of each table are in it."""
    found = opening.revision(url)
    if found != opening.HEAD:
        state = "there are no tables" if found is None else f"its tables are of revision {found}"
        raise BadBackup(f"cannot back up the ledger: {state}, this Dovetail's are {opening.HEAD}")
    ledger = opening.kind_of(url)(url)
    try:
        return ledger.read(lambda tx: to_new_file(tx, path)).result()
    finally:
        ledger.close()


def to_new_file(tx: Transaction, path: Path) -> Counts:
    """The file appears under its name only when all of it is on the disk."""
    tx.lift_timeouts()
    if path.exists():
        raise BadBackup(f"{path} exists; backups do not overwrite")
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("wb") as file:
            os.fchmod(file.fileno(), 0o600)
            counts = write(tx, file)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
    except OSError as error:
        raise BadBackup(f"cannot write {path}: {error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return counts


def write(tx: Transaction, file: BinaryIO) -> Counts:
    digest = hashlib.sha256()
    counts: Counts = {}
    with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=COMPRESSION, filename="") as packed:

        def put(lines: bytes) -> None:
            digest.update(lines)
            packed.write(lines)

        put(line({"dovetail_backup": FORMAT, "revision": opening.HEAD, "made_at": tx.now}))
        for name, table in TABLES.items():
            put(line({"table": name, "columns": table.columns}))
            counts[name] = 0
            for rows in pages(tx, name, table):
                counts[name] += len(rows)
                put(b"".join(map(line, rows)))
        packed.write(line({"rows": counts, "sha256": digest.hexdigest()}))
    return counts


def line(document: Any) -> bytes:
    return orjson.dumps(document, default=in_base_64, option=orjson.OPT_APPEND_NEWLINE)


def in_base_64(value: Any) -> str:
    return base64.b64encode(value).decode()


def pages(tx: Transaction, name: str, table: Table) -> Iterator[list[Row]]:
    """All rows in the order of the key, some at a time: they need not fit into memory."""
    columns, key = ", ".join(table.columns), ", ".join(table.columns[: table.key])
    marks = ", ".join("?" * table.key)
    first = f"SELECT {columns} FROM {name} ORDER BY {key} LIMIT {table.page}"  # noqa: S608
    following = (
        f"SELECT {columns} FROM {name} WHERE ({key}) > ({marks}) "  # noqa: S608
        f"ORDER BY {key} LIMIT {table.page}"
    )
    rows = tx.rows(first)
    while rows:
        yield rows
        rows = tx.rows(following, rows[-1][: table.key]) if len(rows) == table.page else []
