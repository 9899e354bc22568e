"""Holders: consumers with what they hold, where and since when, newest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from dovetail.core.errors import NotFound
from dovetail.ledger.database.loading import chunks, marks
from dovetail.ledger.database.protocol import Row, Transaction

SELECT = """
    SELECT c.id, c.uuid, c.consumer_type, c.project_id, c.user_id, c.generation
    FROM consumers c"""

HOLDS_SOMETHING = "EXISTS (SELECT 1 FROM allocations a WHERE a.consumer_id = c.id)"


class HeldOfProvider(msgspec.Struct, frozen=True):
    """What is held of one provider."""

    provider: str
    name: str
    host: str
    host_uuid: str
    resources: dict[str, int]


class HoldingConsumer(msgspec.Struct, frozen=True):
    id: int
    uuid: str
    type: str | None
    project: str
    user: str
    generation: int
    since: int | None
    """Unix seconds; None: it holds nothing."""
    holds: list[HeldOfProvider]


class HolderFilter(msgspec.Struct, frozen=True):
    """Which ones; None is any."""

    project: str | None = None
    user: str | None = None
    type: str | None = None
    text: str | None = None
    """How its UUID begins, or a part of its project's or user's name."""


def listing(
    tx: Transaction, wanted: HolderFilter, *, limit: int, after: int | None = None
) -> list[HoldingConsumer]:
    """Newest first; `after` is the id of the last one that was seen."""
    conditions, parameters = [HOLDS_SOMETHING], list[Any]()
    for column, value in (
        ("c.project_id = ?", wanted.project),
        ("c.user_id = ?", wanted.user),
        ("c.consumer_type = ?", wanted.type),
        ("c.id < ?", after),
    ):
        if value is not None:
            conditions.append(column)
            parameters.append(value)
    if wanted.text is not None:
        part = escaped(wanted.text)
        columns = ("uuid", "project_id", "user_id")
        # Databases differ in whether LIKE itself minds upper and lower case.
        like = [f"lower(c.{each}) LIKE lower(?) ESCAPE '!'" for each in columns]
        conditions.append(f"({' OR '.join(like)})")
        parameters += [f"{part}%", f"%{part}%", f"%{part}%"]
    rows = tx.rows(
        f"{SELECT} WHERE {' AND '.join(conditions)} ORDER BY c.id DESC LIMIT ?",
        (*parameters, limit),
    )
    return with_units(tx, rows)


def get(tx: Transaction, uuid: str) -> HoldingConsumer:
    rows = tx.rows(f"{SELECT} WHERE c.uuid = ?", (uuid,))
    if not rows:
        raise NotFound(f"No consumer has the UUID {uuid!r}.")
    return with_units(tx, rows)[0]


def consumers_by_project(tx: Transaction) -> list[tuple[int, str, int]]:
    """root id, project, how many of its consumers hold something in that tree."""
    rows = tx.rows(
        """SELECT p.root_id, c.project_id, count(DISTINCT c.id)
           FROM allocations a
           JOIN providers p ON p.id = a.provider_id
           JOIN consumers c ON c.id = a.consumer_id
           GROUP BY p.root_id, c.project_id ORDER BY p.root_id, c.project_id"""
    )
    return [(root, project, count) for root, project, count in rows]


def escaped(text: str) -> str:
    """For LIKE, where some letters stand for others."""
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def with_units(tx: Transaction, rows: Sequence[Row]) -> list[HoldingConsumer]:
    held: dict[int, list[Row]] = {row[0]: [] for row in rows}
    for some in chunks(list(held)):
        for row in tx.rows(
            f"""SELECT a.consumer_id, p.uuid, p.name, root.name, root.uuid, k.name, a.used,
                       a.created_at
                FROM allocations a
                JOIN providers p ON p.id = a.provider_id
                JOIN providers root ON root.id = p.root_id
                JOIN resource_classes k ON k.id = a.class_id
                WHERE a.consumer_id IN ({marks(len(some))})
                ORDER BY a.consumer_id, a.provider_id, a.class_id""",  # noqa: S608
            some,
        ):
            held[row[0]].append(row)
    return [
        HoldingConsumer(
            id=row[0],
            uuid=row[1],
            type=row[2],
            project=row[3],
            user=row[4],
            generation=row[5],
            since=min((each[7] for each in held[row[0]]), default=None),
            holds=units(held[row[0]]),
        )
        for row in rows
    ]


def units(rows: Iterable[Row]) -> list[HeldOfProvider]:
    """By provider, of one consumer."""
    found: dict[str, HeldOfProvider] = {}
    for _, provider, name, host, host_uuid, class_name, used, _ in rows:
        of = found.setdefault(provider, HeldOfProvider(provider, name, host, host_uuid, {}))
        of.resources[class_name] = used
    return list(found.values())
