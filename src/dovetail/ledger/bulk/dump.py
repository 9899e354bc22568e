"""Writes the ledger down as a fleet document: every tree, then every consumer and what it holds.

What `core.fleet` reads back gives the same forest and the same claims. Generations, names of traits
and classes that nothing uses, and consumers that hold nothing are not part of a fleet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any

import msgspec

from dovetail.core.inventory import Inventory
from dovetail.core.tables import Names
from dovetail.ledger import inventories
from dovetail.ledger import provider_names as naming
from dovetail.ledger.database import loading
from dovetail.ledger.database.loading import chunks, marks
from dovetail.ledger.database.protocol import Transaction

Document = dict[str, Any]
Sink = Callable[[bytes], Any]
ENCODER = msgspec.json.Encoder()

HOLDINGS = """
    SELECT c.uuid, c.project_id, c.user_id, c.consumer_type, p.name, k.name, a.used
    FROM consumers c
    JOIN allocations a ON a.consumer_id = c.id
    JOIN providers p ON p.id = a.provider_id
    JOIN resource_classes k ON k.id = a.class_id
    WHERE c.id IN ({consumers}){within}
    ORDER BY c.id, p.id, k.id"""


def dump(tx: Transaction, sink: Sink, trees: Sequence[str] = ()) -> None:
    """Give the document to `sink` in pieces: all of it, or only these trees and what is held there.

    A tree is named by the name or the UUID of any provider in it.
    """
    tx.lift_timeouts()
    roots = sorted({naming.get(tx, key).root_id for key in trees}) if trees else None
    for piece in chain(tree_pieces(tx, roots), consumer_pieces(tx, roots)):
        sink(piece)


def tree_pieces(tx: Transaction, roots: Sequence[int] | None) -> Iterator[bytes]:
    if roots is None:
        found = tx.rows("SELECT id FROM providers WHERE parent_id IS NULL ORDER BY id")
        roots = [id_ for (id_,) in found]
    names = loading.names(tx)
    for some in chunks(roots):
        yield ENCODER.encode_lines(list(forest(tx, some, names)))


def forest(tx: Transaction, roots: Sequence[int], names: Names) -> Iterator[Document]:
    tables = loading.trees(tx, roots)
    provider_names: dict[int, str] = dict(
        tx.rows(
            f"SELECT id, name FROM providers WHERE root_id IN ({marks(len(roots))})",  # noqa: S608
            roots,
        )
    )
    nodes: dict[int, Document] = {
        id_: {"name": provider_names[id_], "uuid": uuid} for id_, uuid, _, _ in tables.providers
    }
    for id_, trait in sorted(tables.traits, key=lambda row: (row[0], names.traits[row[1]])):
        nodes[id_].setdefault("traits", []).append(names.traits[trait])
    for id_, aggregate in sorted(tables.aggregates):
        nodes[id_].setdefault("aggregates", []).append(aggregate)
    for id_, key, value in sorted(tables.attributes):
        nodes[id_].setdefault("attributes", {})[key] = value
    for id_, class_id, *columns, _used in sorted(tables.inventories):
        stock = nodes[id_].setdefault("inventories", {})
        stock[names.classes[class_id]] = inventory(inventories.of_row(columns))
    for id_, _, parent, _ in sorted(tables.providers):
        if parent in nodes:
            nodes[parent].setdefault("children", []).append(nodes[id_])
    for root in roots:
        yield nodes[root]


def inventory(found: Inventory) -> int | Document:
    """The shortest way to write it: what is as by default is left out."""
    plain = Inventory(total=found.total)
    if found == plain:
        return found.total
    values, usual = msgspec.structs.asdict(found), msgspec.structs.asdict(plain)
    return {
        name: value for name, value in values.items() if name == "total" or value != usual[name]
    }


def consumer_pieces(tx: Transaction, roots: Sequence[int] | None) -> Iterator[bytes]:
    among = marks(len(roots)) if roots is not None else ""
    for some in chunks(holders(tx, roots)):
        statement = HOLDINGS.format(
            consumers=marks(len(some)), within=f" AND p.root_id IN ({among})" if among else ""
        )
        yield ENCODER.encode_lines(list(consumers(tx.rows(statement, (*some, *(roots or ()))))))


def holders(tx: Transaction, roots: Sequence[int] | None) -> list[int]:
    """Ids of the consumers that hold something (in these trees), oldest first."""
    if roots is None:
        return [id_ for (id_,) in tx.rows("SELECT id FROM consumers ORDER BY id")]
    rows = tx.rows(
        f"""SELECT DISTINCT a.consumer_id
            FROM allocations a JOIN providers p ON p.id = a.provider_id
            WHERE p.root_id IN ({marks(len(roots))}) ORDER BY a.consumer_id""",  # noqa: S608
        roots,
    )
    return [id_ for (id_,) in rows]


def consumers(rows: Sequence[tuple[Any, ...]]) -> Iterator[Document]:
    for (uuid, project, user, kind), held in groupby(rows, key=lambda row: row[:4]):
        allocations: dict[str, dict[str, int]] = {}
        for *_, provider, name, amount in held:
            allocations.setdefault(provider, {})[name] = amount
        yield {
            "consumer": uuid,
            "project_id": project,
            "user_id": user,
            **({} if kind is None else {"consumer_type": kind}),
            "allocations": allocations,
        }
