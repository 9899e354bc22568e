"""Documents of intents, by path: what users wrote, with files that came along and references.

A path is that of the REST API without its version (`projects/p/composite-apps/c/v1`). Whoever puts
something below an object, or refers to it, locks it first, and so does whoever deletes it: the
later one sees what the earlier one did.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dovetail.ledger.database.loading import chunks, marks
from dovetail.ledger.database.protocol import Transaction

COLUMNS = "path, parent, kind, position, document, created_at, changed_at"
AFTER_SLASH = "0"
"""The character that comes after `/`: what is below a path is from `path/` to before `path0`."""


class IntentObject(msgspec.Struct, frozen=True):
    path: str
    parent: str | None
    kind: str
    position: int
    """Among those of its kind below the same parent, in the order in which they were made."""
    text: str
    """The document, as JSON in its canonical form."""
    created_at: int
    changed_at: int

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def find(tx: Transaction, path: str, kind: str) -> IntentObject | None:
    row = tx.row(
        f"SELECT {COLUMNS} FROM intent_objects WHERE path = ? AND kind = ?",  # noqa: S608
        (path, kind),
    )
    return IntentObject(*row) if row else None


def find_locked(tx: Transaction, path: str, kind: str) -> IntentObject | None:
    row = tx.row(
        f"SELECT {COLUMNS} FROM intent_objects "  # noqa: S608
        f"WHERE path = ? AND kind = ?{tx.for_update}",
        (path, kind),
    )
    return IntentObject(*row) if row else None


def listing(
    tx: Transaction,
    parent: str | None,
    kind: str,
    *,
    after: int | None = None,
    limit: int | None = None,
) -> list[IntentObject]:
    """Those of a kind below `parent`, oldest first; after the one at position `after`."""
    below = "parent IS NULL" if parent is None else "parent = ?"
    parameters: list[str | int] = [kind, *([] if parent is None else [parent])]
    page = ""
    if after is not None:
        page = " AND position > ?"
        parameters.append(after)
    most = "" if limit is None else f" LIMIT {limit:d}"
    rows = tx.rows(
        f"SELECT {COLUMNS} FROM intent_objects WHERE kind = ? AND {below}{page} "  # noqa: S608
        f"ORDER BY position{most}",
        parameters,
    )
    return [IntentObject(*row) for row in rows]


def of_kind(tx: Transaction, kind: str) -> list[IntentObject]:
    """All there are, wherever, in the order of their paths."""
    rows = tx.rows(
        f"SELECT {COLUMNS} FROM intent_objects WHERE kind = ? ORDER BY path",  # noqa: S608
        (kind,),
    )
    return [IntentObject(*row) for row in rows]


def subtree(tx: Transaction, path: str) -> list[IntentObject]:
    """All that is below an object; parents before children, siblings oldest first."""
    rows = tx.rows(
        f"SELECT {COLUMNS} FROM intent_objects WHERE path >= ? AND path < ?",  # noqa: S608
        (f"{path}/", f"{path}{AFTER_SLASH}"),
    )
    found = [IntentObject(*row) for row in rows]
    return sorted(found, key=lambda each: (each.path.count("/"), each.kind, each.position))


def add(tx: Transaction, path: str, parent: str | None, kind: str, text: str) -> None:
    below = "parent IS NULL" if parent is None else "parent = ?"
    last = tx.row(
        f"SELECT max(position) FROM intent_objects WHERE kind = ? AND {below}",  # noqa: S608
        (kind,) if parent is None else (kind, parent),
    )
    position = (last[0] if last and last[0] is not None else 0) + 1
    tx.run(
        f"INSERT INTO intent_objects ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        (path, parent, kind, position, text, tx.now, tx.now),
    )


def change(tx: Transaction, path: str, text: str) -> None:
    tx.run(
        "UPDATE intent_objects SET document = ?, changed_at = ? WHERE path = ?",
        (text, tx.now, path),
    )


def remove(tx: Transaction, path: str) -> None:
    tx.run("DELETE FROM intent_references WHERE path = ?", (path,))
    tx.run("DELETE FROM intent_files WHERE path = ?", (path,))
    tx.run("DELETE FROM intent_objects WHERE path = ?", (path,))


def first_child(tx: Transaction, path: str) -> str | None:
    """The path of one that is below it, the first by name."""
    row = tx.row("SELECT min(path) FROM intent_objects WHERE parent = ?", (path,))
    return row[0] if row else None


# -- references ----------------------------------------------------------------------------------


def lock(tx: Transaction, paths: Iterable[str]) -> None:
    """Those of them that are there."""
    for some in chunks(sorted(set(paths))):
        tx.rows(
            f"SELECT path FROM intent_objects WHERE path IN ({marks(len(some))}) "  # noqa: S608
            f"ORDER BY path{tx.for_update}",
            some,
        )


def refer(tx: Transaction, path: str, targets: Iterable[str]) -> None:
    """Make these all that the object refers to; they need not be there."""
    tx.run("DELETE FROM intent_references WHERE path = ?", (path,))
    rows = [(path, target) for target in sorted(set(targets))]
    if rows:
        tx.many("INSERT INTO intent_references (path, target) VALUES (?, ?)", rows)


def referring(tx: Transaction, target: str, limit: int = 1) -> list[str]:
    """Some of the objects that refer to it."""
    rows = tx.rows(
        f"SELECT path FROM intent_references WHERE target = ? ORDER BY path LIMIT {limit:d}",  # noqa: S608
        (target,),
    )
    return [path for (path,) in rows]


# -- files ---------------------------------------------------------------------------------------


def put_files(tx: Transaction, path: str, files: Mapping[str, bytes]) -> None:
    """Make these all the files of an object."""
    tx.run("DELETE FROM intent_files WHERE path = ?", (path,))
    rows = [(path, name, content) for name, content in files.items()]
    if rows:
        tx.many("INSERT INTO intent_files (path, name, content) VALUES (?, ?, ?)", rows)


def file(tx: Transaction, path: str, name: str) -> bytes | None:
    row = tx.row("SELECT content FROM intent_files WHERE path = ? AND name = ?", (path, name))
    return bytes(row[0]) if row else None


def files(tx: Transaction, paths: Sequence[str]) -> dict[tuple[str, str], bytes]:
    """By path and name."""
    found = {}
    for some in chunks(list(paths)):
        rows = tx.rows(
            f"SELECT path, name, content FROM intent_files "  # noqa: S608
            f"WHERE path IN ({marks(len(some))})",
            some,
        )
        found.update({(path, name): bytes(content) for path, name, content in rows})
    return found
