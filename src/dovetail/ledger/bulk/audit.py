"""Audit: finds what cannot be in a sound ledger, and heals what follows from the rest of it.

Safe to heal, since nothing is lost: a wrong count of what is in use (the allocations say it), a
wrong root (the parents say it), a consumer that holds nothing. Everything else needs a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from dovetail.core.inventory import capacity
from dovetail.ledger.database.loading import chunks, marks
from dovetail.ledger.database.protocol import Change, Transaction
from dovetail.ledger.devices import DEVICE_CLASS
from dovetail.ledger.machines.stock import MACHINE_CLASS

TABLES = ("providers", "inventories", "consumers", "allocations")


class LedgerFault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing wrong. `kind` is stable, `words` are for people."""

    kind: str
    words: str
    healable: bool
    provider: str | None = None
    provider_uuid: str | None = None
    resource_class: str | None = None
    consumer: str | None = None


class AuditFindings(msgspec.Struct):
    checked: dict[str, int]
    """Rows looked at, by table."""
    faults: list[LedgerFault]


def examine(tx: Transaction) -> AuditFindings:
    """Everything that is wrong, changing nothing."""
    tx.lift_timeouts()
    checks = (empty_consumers, lost_allocations, miscounts, overcommits, broken_links)
    return AuditFindings(
        checked={table: count(tx, table) for table in TABLES},
        faults=[fault for check in checks for fault in check(tx)],
    )


def heal(tx: Transaction) -> tuple[list[LedgerFault], AuditFindings]:
    """Put right what can be; what was healed, and what is found afterwards."""
    healed = [fault for fault in examine(tx).faults if fault.healable]
    # In the order in which claims take their locks: consumers, then providers.
    drop_empty_consumers(tx)
    recount(tx)
    relink(tx)
    return healed, examine(tx)


def count(tx: Transaction, table: str) -> int:
    row = tx.row(f"SELECT count(*) FROM {table}")  # noqa: S608
    return row[0] if row else 0


EMPTY = """FROM consumers c
    WHERE NOT EXISTS (SELECT 1 FROM allocations a WHERE a.consumer_id = c.id)"""


def empty_consumers(tx: Transaction) -> Iterator[LedgerFault]:
    for (uuid,) in tx.rows(f"SELECT c.uuid {EMPTY} ORDER BY c.id"):
        yield LedgerFault(
            kind="empty_consumer",
            words=f"consumer {uuid} holds nothing",
            healable=True,
            consumer=uuid,
        )


def drop_empty_consumers(tx: Transaction) -> None:
    ids = [id_ for (id_,) in tx.rows(f"SELECT c.id {EMPTY} ORDER BY c.uuid")]
    for some in chunks(ids):
        among = marks(len(some))
        if tx.for_update:
            tx.rows(
                f"SELECT id FROM consumers WHERE id IN ({among}) ORDER BY uuid{tx.for_update}",  # noqa: S608
                some,
            )
        # Asked again with the rows held: one may have been given something meanwhile.
        tx.run(
            f"""DELETE FROM consumers WHERE id IN ({among}) AND NOT EXISTS
                  (SELECT 1 FROM allocations a WHERE a.consumer_id = consumers.id)""",  # noqa: S608
            some,
        )


def lost_allocations(tx: Transaction) -> Iterator[LedgerFault]:
    """Allocations of which the consumer, the provider or the inventory is gone."""
    rows = tx.rows(
        """SELECT c.uuid, p.name, p.uuid, k.name, a.used, a.consumer_id, a.provider_id, a.class_id
           FROM allocations a
           LEFT JOIN consumers c ON c.id = a.consumer_id
           LEFT JOIN providers p ON p.id = a.provider_id
           LEFT JOIN resource_classes k ON k.id = a.class_id
           LEFT JOIN inventories i ON i.provider_id = a.provider_id AND i.class_id = a.class_id
           WHERE c.id IS NULL OR p.id IS NULL OR i.provider_id IS NULL
           ORDER BY a.consumer_id, a.provider_id, a.class_id"""
    )
    for consumer, name, uuid, class_name, used, *ids in rows:
        what = f"{used} {class_name or f'of class {ids[2]}'}"
        holder = f"consumer {consumer or f'number {ids[0]}'}"
        place = name or f"provider number {ids[1]}"
        if consumer is None:
            kind, words = "lost_consumer", f"{what} of {place} is held by {holder}, which is gone"
        elif name is None:
            kind, words = "lost_provider", f"{holder} holds {what} of {place}, which is gone"
        else:
            kind, words = "lost_inventory", f"{holder} holds {what} of {place}, which has none"
        yield LedgerFault(
            kind=kind,
            words=words,
            healable=False,
            provider=name,
            provider_uuid=uuid,
            resource_class=class_name,
            consumer=consumer,
        )


COUNTED = """
    SELECT i.provider_id, i.class_id, p.root_id, p.name, p.uuid, k.name, i.used,
           coalesce(sum(a.used), 0)
    FROM inventories i
    JOIN providers p ON p.id = i.provider_id
    JOIN resource_classes k ON k.id = i.class_id
    LEFT JOIN allocations a ON a.provider_id = i.provider_id AND a.class_id = i.class_id
    {where}
    GROUP BY i.provider_id, i.class_id, p.root_id, p.name, p.uuid, k.name, i.used
    HAVING i.used <> coalesce(sum(a.used), 0)
    ORDER BY i.provider_id, i.class_id"""


def miscounts(tx: Transaction) -> Iterator[LedgerFault]:
    for *_, name, uuid, class_name, used, held in tx.rows(COUNTED.format(where="")):
        yield LedgerFault(
            kind="miscount",
            words=f"{class_name} of {name}: {used} is recorded as used, allocations say {held}",
            healable=True,
            provider=name,
            provider_uuid=uuid,
            resource_class=class_name,
        )


def recount(tx: Transaction) -> None:
    wrong = sorted({row[0] for row in tx.rows(COUNTED.format(where=""))})
    for some in chunks(wrong):
        among = marks(len(some))
        hold(tx, some)
        # Counted again with the providers held: claims may have ended meanwhile.
        rows = tx.rows(COUNTED.format(where=f"WHERE i.provider_id IN ({among})"), some)
        tx.many(
            "UPDATE inventories SET used = ? WHERE provider_id = ? AND class_id = ?",
            [(int(row[-1]), row[0], row[1]) for row in rows],
        )
        for row in rows:
            tx.changed(Change.USAGE, row[2])


def hold(tx: Transaction, providers: Sequence[int]) -> None:
    """Let nobody change these providers before the end."""
    if tx.for_update:
        among = marks(len(providers))
        tx.rows(
            f"SELECT id FROM providers WHERE id IN ({among}) ORDER BY id{tx.for_update}",  # noqa: S608
            providers,
        )


def overcommits(tx: Transaction) -> Iterator[LedgerFault]:
    rows = tx.rows(
        """SELECT p.name, p.uuid, k.name, i.used, i.total, i.reserved, i.allocation_ratio
           FROM inventories i
           JOIN providers p ON p.id = i.provider_id
           JOIN resource_classes k ON k.id = i.class_id
           WHERE i.used > (i.total - i.reserved) * i.allocation_ratio
             AND NOT ((k.name = ? OR substr(k.name, 1, ?) = ?) AND i.used <= i.total)
           ORDER BY i.provider_id, i.class_id""",
        # A device that failed or shrank is reserved while it is held, and so is stock that was
        # lowered: that is how it should be.
        (DEVICE_CLASS, len(MACHINE_CLASS), MACHINE_CLASS),
    )
    for name, uuid, class_name, used, *stock in rows:
        yield LedgerFault(
            kind="overcommit",
            words=f"{class_name} of {name}: {used} is used of a capacity of {capacity(*stock)}",
            healable=False,
            provider=name,
            provider_uuid=uuid,
            resource_class=class_name,
        )


def broken_links(tx: Transaction) -> Iterator[LedgerFault]:
    rows = tx.rows("SELECT id, parent_id, root_id, name, uuid FROM providers ORDER BY id")
    roots = true_roots((row[0], row[1]) for row in rows)
    known = {row[0] for row in rows}
    for id_, parent, root, name, uuid in rows:
        if parent is not None and parent not in known:
            kind, words = "lost_parent", f"the parent of {name} is gone"
        elif id_ not in roots:
            kind, words = "loop", f"going up from {name} leads to no root"
        elif roots[id_] != root:
            kind, words = "wrong_root", f"{name} is recorded under a root that is not its own"
        else:
            continue
        yield LedgerFault(
            kind=kind,
            words=words,
            healable=kind == "wrong_root",
            provider=name,
            provider_uuid=uuid,
        )


def true_roots(links: Iterable[tuple[int, int | None]]) -> dict[int, int]:
    """The root of each provider that can be reached from one."""
    children: dict[int | None, list[int]] = {}
    for id_, parent in links:
        children.setdefault(parent, []).append(id_)
    found = {id_: id_ for id_ in children.get(None, ())}
    waiting = list(found)
    while waiting:
        above = waiting.pop()
        for id_ in children.get(above, ()):
            found[id_] = found[above]
            waiting.append(id_)
    return found


def relink(tx: Transaction) -> None:
    """Record the true root where another is recorded."""
    rows = tx.rows("SELECT id, parent_id, root_id FROM providers ORDER BY id")
    roots = true_roots((id_, parent) for id_, parent, _ in rows)
    wrong = [(id_, root) for id_, _, root in rows if roots.get(id_, root) != root]
    for some in chunks(wrong):
        hold(tx, sorted({id_ for id_, _ in some} | {roots[id_] for id_, _ in some}))
        for id_, recorded in some:
            tx.run(
                "UPDATE providers SET root_id = ? WHERE id = ? AND root_id = ?",
                (roots[id_], id_, recorded),
            )
            tx.changed(Change.TREE, recorded)
            tx.changed(Change.TREE, roots[id_])
