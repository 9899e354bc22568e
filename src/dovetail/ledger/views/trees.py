"""One tree of providers with all that is known of it, and who holds how much of each."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from dovetail.core.inventory import Inventory
from dovetail.ledger import provider_names
from dovetail.ledger.database.protocol import Row, Transaction
from dovetail.ledger.inventories import of_row


class InventoryUse(msgspec.Struct, frozen=True):
    inventory: Inventory
    used: int


class ProviderHolder(msgspec.Struct, frozen=True):
    """A consumer, and what it holds of one provider."""

    consumer: str
    type: str | None
    project: str
    user: str
    since: int
    """Unix seconds."""
    resources: dict[str, int]


class TreeProvider(msgspec.Struct, frozen=True):
    id: int
    uuid: str
    name: str
    generation: int
    parent: str | None
    """UUID."""
    depth: int
    traits: list[str]
    aggregates: list[str]
    attributes: dict[str, str]
    inventories: dict[str, InventoryUse]
    holders: list[ProviderHolder]


def get(tx: Transaction, key: str) -> list[TreeProvider]:
    """The tree of the provider with this name or UUID: the root, then each above its children."""
    root = provider_names.get(tx, key).root_id
    rows = tx.rows(
        "SELECT id, uuid, name, generation, parent_id FROM providers WHERE root_id = ? ORDER BY id",
        (root,),
    )
    parts = TreeParts(tx, root)
    uuids = {row[0]: row[1] for row in rows}
    below: dict[int | None, list[Row]] = defaultdict(list)
    for row in rows:
        below[row[4]].append(row)
    found: list[TreeProvider] = []
    waiting = [(row, 0) for row in reversed(below[None])]
    while waiting:
        row, depth = waiting.pop()
        found.append(parts.provider(row, uuids.get(row[4]), depth))
        waiting += [(child, depth + 1) for child in reversed(below[row[0]])]
    return found


class TreeParts:
    """What the tables say of all providers of a tree, by provider id."""

    def __init__(self, tx: Transaction, root: int) -> None:
        self._traits: dict[int, list[str]] = defaultdict(list)
        self._aggregates: dict[int, list[str]] = defaultdict(list)
        self._attributes: dict[int, dict[str, str]] = defaultdict(dict)
        self._inventories: dict[int, dict[str, InventoryUse]] = defaultdict(dict)
        self._holders: dict[int, dict[str, ProviderHolder]] = defaultdict(dict)
        of_tree = "JOIN providers p ON p.id = x.provider_id WHERE p.root_id = ?"
        for id_, trait in tx.rows(
            f"""SELECT x.provider_id, t.name FROM traits t
                JOIN provider_traits x ON x.trait_id = t.id {of_tree} ORDER BY t.name""",  # noqa: S608
            (root,),
        ):
            self._traits[id_].append(trait)
        for id_, aggregate in tx.rows(
            f"""SELECT x.provider_id, x.aggregate FROM provider_aggregates x {of_tree}
                ORDER BY x.aggregate""",  # noqa: S608
            (root,),
        ):
            self._aggregates[id_].append(aggregate)
        for id_, key, value in tx.rows(
            f"""SELECT x.provider_id, x.key, x.value FROM provider_attributes x {of_tree}
                ORDER BY x.key""",  # noqa: S608
            (root,),
        ):
            self._attributes[id_][key] = value
        for id_, name, used, *values in tx.rows(
            f"""SELECT x.provider_id, k.name, x.used, x.total, x.reserved, x.min_unit, x.max_unit,
                       x.step_size, x.allocation_ratio
                FROM resource_classes k JOIN inventories x ON x.class_id = k.id {of_tree}
                ORDER BY k.id""",  # noqa: S608
            (root,),
        ):
            self._inventories[id_][name] = InventoryUse(of_row(values), used)
        self._take_holders(tx, root)

    def _take_holders(self, tx: Transaction, root: int) -> None:
        for id_, uuid, kind, project, user, since, name, used in tx.rows(
            """SELECT a.provider_id, c.uuid, c.consumer_type, c.project_id, c.user_id,
                      a.created_at, k.name, a.used
               FROM allocations a
               JOIN providers p ON p.id = a.provider_id
               JOIN consumers c ON c.id = a.consumer_id
               JOIN resource_classes k ON k.id = a.class_id
               WHERE p.root_id = ? ORDER BY c.id, k.id""",
            (root,),
        ):
            holder = ProviderHolder(uuid, kind, project, user, since, {})
            self._holders[id_].setdefault(uuid, holder).resources[name] = used

    def provider(self, row: Row, parent: str | None, depth: int) -> TreeProvider:
        id_, uuid, name, generation, _ = row
        return TreeProvider(
            id=id_,
            uuid=uuid,
            name=name,
            generation=generation,
            parent=parent,
            depth=depth,
            traits=self._traits[id_],
            aggregates=self._aggregates[id_],
            attributes=self._attributes[id_],
            inventories=self._inventories[id_],
            holders=list(self._holders[id_].values()),
        )
