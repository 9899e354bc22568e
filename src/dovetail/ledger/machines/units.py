"""Units of machines: what one is that is asked for, and who holds which, for `service`.

A unit is a claim like any other (`ledger/claims`): of its type and its root's on the group's
provider, of CPUs and memory on the node, of GPUs on the node's devices.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from dovetail.core.errors import AlreadyExists, DovetailError
from dovetail.ledger.database.loading import chunks, marks
from dovetail.ledger.database.protocol import Transaction
from dovetail.ledger.machines.pool_nodes import MACHINE, MACHINE_STOCK, MARK, MEMORY_MB
from dovetail.ledger.machines.stock import GROUPS, MACHINE_CLASS, group_provider, type_of
from dovetail.machines.shapes import UnitShape


class UnitClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A unit that a pod takes on a node."""

    consumer: str
    """The pod's uid."""
    group: str
    shape: UnitShape
    node: str
    namespace: str = ""
    """Of the guest; empty: the unit is stock, held by a sleeper."""
    user: str = ""

    @property
    def is_stock(self) -> bool:
        return not self.namespace


class HeldUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A unit that a pod holds."""

    consumer: str
    group: str
    type: str
    node: str
    is_stock: bool
    since: int
    """Unix seconds."""
    namespace: str
    """Empty for stock, likewise the user."""
    user: str


class UnitTaken(DovetailError):
    """A unit cannot be had: its type is sold out, or the node has too little left."""

    def __init__(self, claim: UnitClaim, resource: str, words: str) -> None:
        self.consumer, self.node, self.resource = claim.consumer, claim.node, resource
        super().__init__(f"{claim.shape.name} of {claim.group} on node {claim.node}: {words}")

    @property
    def is_sold_out(self) -> bool:
        """Whether the stock was short, and not the node."""
        return self.resource.startswith(MACHINE_CLASS)


class OtherClaim(AlreadyExists):
    """The consumer holds something that is no unit of a machine."""

    def __init__(self, consumer: str) -> None:
        super().__init__(f"{consumer} holds something that is no unit of a machine")


HELD = """
    SELECT c.uuid, c.consumer_type, c.project_id, c.user_id, g.name, k.name, i.max_unit,
           a.used, a.created_at, n.name
    FROM providers root
    JOIN providers g ON g.root_id = root.id
    JOIN allocations a ON a.provider_id = g.id
    JOIN inventories i ON i.provider_id = g.id AND i.class_id = a.class_id
    JOIN resource_classes k ON k.id = a.class_id
    JOIN consumers c ON c.id = a.consumer_id
    JOIN allocations m ON m.consumer_id = c.id
      AND m.class_id = (SELECT id FROM resource_classes WHERE name = ?)
    JOIN providers n ON n.id = m.provider_id
    WHERE root.name = ? AND c.consumer_type IN (?, ?)"""


def held(tx: Transaction, prefix: str) -> dict[str, HeldUnit]:
    """All units that are held, by consumer.

    One that holds of two types holds a unit of the one, and a share of the other, its root. If the
    share is all of it, the root is the one that is counted in parts.
    """
    found: dict[str, tuple[tuple[bool, int], HeldUnit]] = {}
    about = (MEMORY_MB, prefix + GROUPS, MACHINE, MACHINE_STOCK)
    for row in tx.rows(HELD, about):
        uuid, consumer_type, project, user, group, name, parts, used, since, node = row
        is_stock = consumer_type == MACHINE_STOCK
        unit = HeldUnit(
            consumer=uuid,
            group=group.removeprefix(group_provider(prefix, "")),
            type=type_of(name),
            node=node.removeprefix(prefix),
            is_stock=is_stock,
            since=since,
            namespace="" if is_stock else project,
            user="" if is_stock else user,
        )
        rank = (used < parts, parts)
        if uuid not in found or rank < found[uuid][0]:
            found[uuid] = rank, unit
    return {uuid: unit for uuid, (_, unit) in found.items()}


def concerns(tx: Transaction, prefix: str, roots: Collection[int]) -> bool:
    """Whether any of these trees has to do with machines; one that is gone may have had."""
    left = set(roots)
    for some in chunks(sorted(roots)):
        rows = tx.rows(
            f"""SELECT p.id, p.name, v.key FROM providers p
                LEFT JOIN provider_attributes v ON v.provider_id = p.id AND v.key = ?
                WHERE p.id IN ({marks(len(some))})""",  # noqa: S608
            (MARK, *some),
        )
        if any(name == prefix + GROUPS or mark for _, name, mark in rows):
            return True
        left.difference_update(id_ for id_, _, _ in rows)
    return bool(left)
