"""Usages: how much of each class is in use of a provider, and by a project; who holds what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dovetail.core.provider import Provider
from dovetail.ledger.database.loading import chunks, marks
from dovetail.ledger.database.protocol import Transaction

UNKNOWN = "unknown"
"""What consumers without a type are counted under."""
ALL = "all"


class TypeUsage(msgspec.Struct):
    """What the consumers of one type use together."""

    consumers: int
    amounts: dict[str, int]


def of_provider(tx: Transaction, provider: Provider) -> dict[str, int]:
    return dict(
        tx.rows(
            """SELECT c.name, i.used FROM inventories i
               JOIN resource_classes c ON c.id = i.class_id
               WHERE i.provider_id = ? ORDER BY i.class_id""",
            (provider.id,),
        )
    )


def owned_by(project: str, user: str | None) -> tuple[str, list[Any]]:
    if user is None:
        return "c.project_id = ?", [project]
    return "c.project_id = ? AND c.user_id = ?", [project, user]


def of_project(tx: Transaction, project: str, user: str | None = None) -> dict[str, int]:
    where, parameters = owned_by(project, user)
    return summed(tx, where, parameters)


def by_type(
    tx: Transaction, project: str, user: str | None = None, consumer_type: str | None = None
) -> dict[str, TypeUsage]:
    """Usage grouped by consumer type; `all` and `unknown` are groups of their own."""
    where, parameters = owned_by(project, user)
    if consumer_type == ALL:
        return grouped(tx, {ALL: (where, parameters)})
    if consumer_type == UNKNOWN:
        return grouped(tx, {UNKNOWN: (f"{where} AND c.consumer_type IS NULL", parameters)})
    if consumer_type is not None:
        types: Sequence[str | None] = [consumer_type]
    else:
        types = [
            row[0]
            for row in tx.rows(
                f"SELECT DISTINCT consumer_type FROM consumers c WHERE {where} ORDER BY 1",  # noqa: S608
                parameters,
            )
        ]
    return grouped(
        tx,
        {
            name or UNKNOWN: (f"{where} AND c.consumer_type = ?", [*parameters, name])
            if name is not None
            else (f"{where} AND c.consumer_type IS NULL", parameters)
            for name in types
        },
    )


def grouped(tx: Transaction, groups: dict[str, tuple[str, list[Any]]]) -> dict[str, TypeUsage]:
    result = {}
    for name, (where, parameters) in groups.items():
        amounts = summed(tx, where, parameters)
        if amounts:
            row = tx.row(f"SELECT count(*) FROM consumers c WHERE {where}", parameters)  # noqa: S608
            result[name] = TypeUsage(row[0] if row else 0, amounts)
    return result


def summed(tx: Transaction, where: str, parameters: Sequence[Any]) -> dict[str, int]:
    rows = tx.rows(
        f"""SELECT k.name, sum(a.used) FROM consumers c
            JOIN allocations a ON a.consumer_id = c.id
            JOIN resource_classes k ON k.id = a.class_id
            WHERE {where} GROUP BY k.id, k.name ORDER BY k.id""",  # noqa: S608
        parameters,
    )
    return {name: int(used) for name, used in rows}


HolderUnits = tuple[str, int, int, int]
"""consumer uuid, provider id, class id, amount"""


def of_trees(tx: Transaction, root_ids: Sequence[int]) -> list[HolderUnits]:
    """All that those consumers hold, wherever, who hold something in one of these trees."""
    found: dict[tuple[str, int, int], int] = {}
    for some in chunks(list(root_ids)):
        rows = tx.rows(
            f"""SELECT c.uuid, a.provider_id, a.class_id, a.used
                FROM allocations a JOIN consumers c ON c.id = a.consumer_id
                WHERE a.consumer_id IN (
                    SELECT held.consumer_id FROM allocations held
                    JOIN providers p ON p.id = held.provider_id
                    WHERE p.root_id IN ({marks(len(some))}))
                ORDER BY c.id, a.provider_id, a.class_id""",  # noqa: S608
            some,
        )
        found.update({(uuid, provider, class_): used for uuid, provider, class_, used in rows})
    return [(*key, used) for key, used in found.items()]
