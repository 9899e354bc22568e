"""Claim transaction: the one place where hardware changes hands.

`service/claims`, `service/device_claims` and `ledger/reshaping` call `replace`, which makes a set
of claims true, all or nothing: it locks the providers involved in the order of their ids, checks
generations, units and capacity, writes. Whatever the writers and replicas, no inventory is given
away twice. `take` is one claim and its decision; of a consumer that holds nothing yet, which is the
rule, it is one statement to lock and read and, where the database can, one to write.
`ledger/intents` calls `observe` for what was seen elsewhere, which cannot be refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from dovetail.core.claim import Claim, Held, Holding
from dovetail.core.errors import Malformed, NotFound, StaleGeneration
from dovetail.core.provider import Provider
from dovetail.ledger import decisions, inventories, resource_classes
from dovetail.ledger.claiming.first import prepare_first, write_first
from dovetail.ledger.claiming.prepared import (
    ClaimTarget,
    Consumer,
    LockedInventory,
    Place,
    PreparedClaims,
)
from dovetail.ledger.database.loading import chunks, marks
from dovetail.ledger.database.protocol import Change, Transaction


class UnknownProvider(Malformed):
    """A claim on a provider that does not exist."""

    def __init__(self, uuid: str) -> None:
        super().__init__(f"Allocation for resource provider '{uuid}' that does not exist.")


class TakenClaim(msgspec.Struct, frozen=True):
    """A claim that was written, and the number of its decision."""

    names: dict[str, str]
    """Of the providers it is on, by uuid."""
    decision: int | None


def take(tx: Transaction, claim: Claim, document: str | None = None) -> TakenClaim:
    """Make the claim all that its consumer holds, and record the decision for it if there is one.

    One of a consumer that holds nothing needs two statements where the database's queries write.
    """
    first = prepare_first(tx, claim)
    prepared = first or prepare_changed(tx, [claim])
    prepared.check()
    if first is not None and tx.writes_in_queries:
        number = write_first(tx, first, document)
    else:
        carry_out(tx, prepared)
        number = None if document is None else decisions.record(tx, claim.consumer, document)
    names = {uuid: prepared.targets[uuid].name for uuid in claim.allocations}
    return TakenClaim(names, number)


def replace(tx: Transaction, claims: Sequence[Claim]) -> None:
    """Make each claim all that its consumer holds."""
    if len(claims) == 1:
        take(tx, claims[0])
        return
    prepared = prepare_changed(tx, claims)
    prepared.check()
    carry_out(tx, prepared)


def prepare_changed(tx: Transaction, claims: Sequence[Claim]) -> PreparedClaims:
    """Claims of consumers that may hold something."""
    consumers = find_consumers(tx, claims)
    for claim in claims:
        check_generation(claim, consumers[claim.consumer])
    return prepare(tx, claims, consumers)


def observe(tx: Transaction, seen: Sequence[Claim]) -> None:
    """Record what consumers were seen to hold, be it more than there is.

    For what happened elsewhere and cannot be refused here; nothing is promised by it. Who holds
    just this already is left alone. Inventories have to be there, and generations do not matter.
    """
    consumers = find_consumers(tx, seen)
    prepared = prepare(tx, seen, consumers)
    changed = [
        claim
        for claim, amounts in prepared.wanted
        if amounts != (held.old if (held := consumers[claim.consumer]) else {})
    ]
    if len(changed) < len(seen):
        consumers = {claim.consumer: consumers[claim.consumer] for claim in changed}
        prepared = prepare(tx, changed, consumers)
    prepared.check_inventories()
    carry_out(tx, prepared)


def find_consumers(tx: Transaction, claims: Sequence[Claim]) -> dict[str, Consumer | None]:
    # In a fixed order, so that two writers with the same consumers cannot wait for each other.
    return {uuid: find_consumer(tx, uuid) for uuid in sorted(claim.consumer for claim in claims)}


def prepare(
    tx: Transaction, claims: Sequence[Claim], consumers: dict[str, Consumer | None]
) -> PreparedClaims:
    targets = lock_targets(tx, claims, consumers.values())
    class_ids = resource_classes.ids(
        tx, (name for claim in claims for held in claim.allocations.values() for name in held)
    )
    wanted = [(claim, amounts_by_place(claim, targets, class_ids)) for claim in claims]
    locked = lock_inventories(tx, wanted, consumers.values())
    names = {id_: name for name, id_ in class_ids.items()}
    return PreparedClaims(wanted, consumers, targets, locked, names)


def carry_out(tx: Transaction, prepared: PreparedClaims) -> None:
    for claim, amounts in prepared.wanted:
        write(tx, claim, amounts, prepared.consumers[claim.consumer])
    write_usage(tx, prepared.locked)
    bump_served(tx, prepared.wanted, prepared.consumers)
    note_changes(tx, prepared.locked, prepared.targets)


def find_consumer(tx: Transaction, uuid: str) -> Consumer | None:
    row = tx.row(
        f"SELECT id, generation FROM consumers WHERE uuid = ?{tx.for_update}",  # noqa: S608
        (uuid,),
    )
    if row is None:
        return None
    held = tx.rows(
        "SELECT provider_id, class_id, used FROM allocations WHERE consumer_id = ?", (row[0],)
    )
    return Consumer(row[0], row[1], {(provider, class_): used for provider, class_, used in held})


def check_generation(claim: Claim, consumer: Consumer | None) -> None:
    if not claim.check_generation:
        return
    known = consumer.generation if consumer else None
    if claim.generation != known:
        expected = "null" if known is None else known
        raise StaleGeneration(
            f"consumer generation conflict - expected {expected} but got {claim.generation}"
        )


def lock_targets(
    tx: Transaction, claims: Sequence[Claim], consumers: Iterable[Consumer | None]
) -> dict[int | str, ClaimTarget]:
    """The providers of old and new allocations, by id and by uuid, held until the end."""
    uuids = list(dict.fromkeys(uuid for claim in claims for uuid in claim.allocations))
    ids = {place[0] for consumer in consumers if consumer for place in consumer.old}
    if not uuids and not ids:
        return {}
    rows = tx.rows(
        f"""SELECT id, uuid, root_id, name FROM providers
            WHERE uuid IN ({marks(len(uuids))}) OR id IN ({marks(len(ids))})
            ORDER BY id{tx.for_update}""",  # noqa: S608
        (*uuids, *sorted(ids)),
    )
    found: dict[int | str, ClaimTarget] = {}
    for row in rows:
        target = ClaimTarget(*row)
        found[target.id] = found[target.uuid] = target
    for uuid in uuids:
        if uuid not in found:
            raise UnknownProvider(uuid)
    return found


def amounts_by_place(
    claim: Claim, targets: dict[int | str, ClaimTarget], class_ids: dict[str, int]
) -> dict[Place, int]:
    return {
        (targets[uuid].id, class_ids[name]): amount
        for uuid, resources in claim.allocations.items()
        for name, amount in resources.items()
    }


def lock_inventories(
    tx: Transaction,
    wanted: Sequence[tuple[Claim, dict[Place, int]]],
    consumers: Iterable[Consumer | None],
) -> dict[Place, LockedInventory]:
    """Every inventory touched, with how its use is about to change."""
    deltas: dict[Place, int] = defaultdict(int)
    for consumer in consumers:
        for place, amount in (consumer.old if consumer else {}).items():
            deltas[place] -= amount
    for _, amounts in wanted:
        for place, amount in amounts.items():
            deltas[place] += amount
    locked = {place: LockedInventory(None, 0, delta) for place, delta in deltas.items()}
    for some in chunks(sorted({provider for provider, _ in deltas})):
        for row in tx.rows(
            f"""SELECT provider_id, class_id, used, {inventories.COLUMNS}
                FROM inventories WHERE provider_id IN ({marks(len(some))})""",  # noqa: S608
            some,
        ):
            entry = locked.get((row[0], row[1]))
            if entry is not None:
                entry.used = row[2]
                entry.inventory = inventories.of_row(row[3:])
    return locked


def write(
    tx: Transaction, claim: Claim, amounts: dict[Place, int], consumer: Consumer | None
) -> None:
    """Record the claim's own rows: the consumer and its allocations."""
    if consumer is not None:
        tx.run("DELETE FROM allocations WHERE consumer_id = ?", (consumer.id,))
    if not amounts:
        if consumer is not None:
            tx.run("DELETE FROM consumers WHERE id = ?", (consumer.id,))
        return
    if consumer is None:
        row = tx.row(
            """INSERT INTO consumers (uuid, generation, project_id, user_id, consumer_type)
               VALUES (?, 1, ?, ?, ?) RETURNING id""",
            (claim.consumer, claim.project, claim.user, claim.consumer_type),
        )
        assert row
        consumer_id = row[0]
    else:
        consumer_id = consumer.id
        tx.run(
            """UPDATE consumers SET generation = generation + 1, project_id = ?, user_id = ?,
                 consumer_type = coalesce(?, consumer_type) WHERE id = ?""",
            (claim.project, claim.user, claim.consumer_type, consumer_id),
        )
    tx.many(
        """INSERT INTO allocations (consumer_id, provider_id, class_id, used, created_at)
           VALUES (?, ?, ?, ?, ?)""",
        [
            (consumer_id, provider, class_, amount, tx.now)
            for (provider, class_), amount in amounts.items()
        ],
    )


def write_usage(tx: Transaction, locked: dict[Place, LockedInventory]) -> None:
    tx.many(
        "UPDATE inventories SET used = used + ? WHERE provider_id = ? AND class_id = ?",
        [(entry.delta, *place) for place, entry in sorted(locked.items()) if entry.delta],
    )


def bump_served(
    tx: Transaction,
    wanted: Sequence[tuple[Claim, dict[Place, int]]],
    consumers: dict[str, Consumer | None],
) -> None:
    """A new generation for each provider that a claim names, or that an empty one releases."""
    served: set[int] = set()
    for claim, amounts in wanted:
        consumer = consumers[claim.consumer]
        places = amounts or (consumer.old if consumer else {})
        served.update(provider for provider, _ in places)
    tx.many(
        "UPDATE providers SET generation = generation + 1, changed_at = ? WHERE id = ?",
        [(tx.now, id_) for id_ in sorted(served)],
    )


def note_changes(
    tx: Transaction, locked: dict[Place, LockedInventory], targets: dict[int | str, ClaimTarget]
) -> None:
    for provider, _ in locked:
        tx.changed(Change.USAGE, targets[provider].root_id)


def release(tx: Transaction, consumer_uuid: str) -> bool:
    """Give everything back that the consumer holds; False if it holds nothing.

    Unlike an empty claim this leaves the generations of the providers alone.
    """
    consumer = find_consumer(tx, consumer_uuid)
    if consumer is None:
        return False
    targets = lock_targets(tx, (), [consumer])
    locked = {place: LockedInventory(None, 0, -amount) for place, amount in consumer.old.items()}
    tx.run("DELETE FROM allocations WHERE consumer_id = ?", (consumer.id,))
    tx.run("DELETE FROM consumers WHERE id = ?", (consumer.id,))
    write_usage(tx, locked)
    note_changes(tx, locked, targets)
    return True


def of_consumer(tx: Transaction, uuid: str) -> Holding | None:
    rows = tx.rows(
        """SELECT c.project_id, c.user_id, c.consumer_type, c.generation,
                  p.uuid, p.generation, k.name, a.used, a.created_at
           FROM consumers c
           JOIN allocations a ON a.consumer_id = c.id
           JOIN providers p ON p.id = a.provider_id
           JOIN resource_classes k ON k.id = a.class_id
           WHERE c.uuid = ? ORDER BY p.id, k.id""",
        (uuid,),
    )
    if not rows:
        return None
    project, user, consumer_type, generation = rows[0][:4]
    return Holding(
        consumer=uuid,
        project=project,
        user=user,
        consumer_type=consumer_type,
        generation=generation,
        held=tuple(held_of(row[4:]) for row in rows),
    )


def held_of(row: Sequence[Any]) -> Held:
    provider_uuid, provider_generation, class_name, amount, created_at = row
    return Held(
        provider_uuid=provider_uuid,
        provider_generation=provider_generation,
        class_name=class_name,
        amount=amount,
        created_at=created_at,
    )


def on_provider(tx: Transaction, provider: Provider) -> list[tuple[str, int, str, int, int]]:
    """consumer uuid, consumer generation, class name, amount, created at; oldest consumer first."""
    return tx.rows(
        """SELECT c.uuid, c.generation, k.name, a.used, a.created_at
           FROM allocations a
           JOIN consumers c ON c.id = a.consumer_id
           JOIN resource_classes k ON k.id = a.class_id
           WHERE a.provider_id = ? ORDER BY c.id, k.id""",
        (provider.id,),
    )


HeldUnits = tuple[int, int, int]
"""provider id, class id, amount"""


def of_consumers(tx: Transaction, uuids: Sequence[str]) -> list[HeldUnits]:
    """All that these consumers hold; each has to be there."""
    found: list[HeldUnits] = []
    known: set[str] = set()
    for some in chunks(list(dict.fromkeys(uuids))):
        rows = tx.rows(
            f"""SELECT c.uuid, a.provider_id, a.class_id, a.used
                FROM allocations a JOIN consumers c ON c.id = a.consumer_id
                WHERE c.uuid IN ({marks(len(some))})""",  # noqa: S608
            some,
        )
        known.update(row[0] for row in rows)
        found += [row[1:] for row in rows]
    for uuid in uuids:
        if uuid not in known:
            raise NotFound(f"No consumer {uuid!r} holds anything.")
    return found
