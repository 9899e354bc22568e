"""First claims: of consumers that hold nothing yet, which is what most claims are.

`ledger/claims` asks for them before it goes the long way: one statement locks and reads all there
is to check, and where the database's queries may write, one writes the claim with its decision.
"""

from __future__ import annotations

from dovetail.core.claim import Claim
from dovetail.ledger import decisions, inventories
from dovetail.ledger.claiming.prepared import ClaimTarget, LockedInventory, Place, PreparedClaims
from dovetail.ledger.database.loading import marks
from dovetail.ledger.database.protocol import Change, Transaction

INVENTORY_COLUMNS = ", ".join(f"i.{name}" for name in inventories.COLUMNS.split(", "))


def prepare_first(tx: Transaction, claim: Claim) -> PreparedClaims | None:
    """A claim of a consumer that holds nothing, locked and read in one statement.

    None if the consumer holds something, or if a provider, a class or an inventory is missing:
    who looks at one after the other can tell which. Rows of inventories are locked with those of
    their providers, so that they are read as they are once the lock is had, not as they were when
    the statement began.
    """
    uuids = list(claim.allocations)
    if not uuids or not all(claim.allocations.values()) or claim.generation is not None:
        return None
    rows = tx.rows(
        f"""SELECT p.id, p.uuid, p.root_id, p.name, k.name, k.id,
                   (SELECT id FROM consumers WHERE uuid = ?), i.used, {INVENTORY_COLUMNS}
            FROM providers p
            JOIN inventories i ON i.provider_id = p.id
            JOIN resource_classes k ON k.id = i.class_id
            WHERE p.uuid IN ({marks(len(uuids))})
            ORDER BY p.id{tx.for_update_of("p", "i")}""",  # noqa: S608
        (claim.consumer, *uuids),
    )
    if not rows or rows[0][6] is not None:
        return None
    found = {(row[1], row[4]): row for row in rows}
    targets: dict[int | str, ClaimTarget] = {}
    amounts: dict[Place, int] = {}
    locked: dict[Place, LockedInventory] = {}
    names: dict[int, str] = {}
    # In the order of the claim: of several inventories without room the first is named.
    for uuid, resources in claim.allocations.items():
        for class_name, amount in resources.items():
            row = found.get((uuid, class_name))
            if row is None:
                return None
            id_, _, root_id, provider_name, _, class_id, _, used, *inventory = row
            targets[id_] = targets[uuid] = ClaimTarget(id_, uuid, root_id, provider_name)
            amounts[id_, class_id] = amount
            locked[id_, class_id] = LockedInventory(inventories.of_row(inventory), used, amount)
            names[class_id] = class_name
    return PreparedClaims([(claim, amounts)], {claim.consumer: None}, targets, locked, names)


CLAIM_PARTS = """
    consumer AS (
      INSERT INTO consumers (uuid, generation, project_id, user_id, consumer_type)
      VALUES (?, 1, ?, ?, ?) RETURNING id),
    place AS (
      SELECT * FROM unnest(?::bigint[], ?::bigint[], ?::bigint[])
        AS one (provider_id, class_id, amount)),
    allocated AS (
      INSERT INTO allocations (consumer_id, provider_id, class_id, used, created_at)
      SELECT consumer.id, provider_id, class_id, amount, ? FROM consumer, place),
    filled AS (
      UPDATE inventories SET used = used + amount FROM place
      WHERE inventories.provider_id = place.provider_id
        AND inventories.class_id = place.class_id),
    served AS (
      UPDATE providers SET generation = generation + 1, changed_at = ?
      WHERE id = ANY (?::bigint[])),
    logged AS (
      INSERT INTO changes (kind, root_id) SELECT ?, unnest(?::bigint[]))"""
DECISION_PARTS = """
    decision AS (
      INSERT INTO decisions (decided_at, consumer, document) VALUES (?, ?, ?) RETURNING id),
    forgotten AS (
      DELETE FROM decisions WHERE id <= (SELECT id FROM decision) - ?)"""
WRITE = f"WITH {CLAIM_PARTS} SELECT id FROM consumer"  # noqa: S608
WRITE_AND_RECORD = f"WITH {CLAIM_PARTS}, {DECISION_PARTS} SELECT id FROM decision"  # noqa: S608
"""All parts see the tables as they were before; none reads of another but what that returns."""


def write_first(tx: Transaction, prepared: PreparedClaims, document: str | None) -> int | None:
    """Write such a claim in one statement, with its decision if there is one; its number."""
    ((claim, amounts),) = prepared.wanted
    places = sorted(amounts.items())
    providers = [provider for (provider, _), _ in places]
    classes = [class_ for (_, class_), _ in places]
    taken = [amount for _, amount in places]
    roots = sorted({prepared.targets[provider].root_id for provider in providers})
    claimed = (
        *(claim.consumer, claim.project, claim.user, claim.consumer_type),
        *(providers, classes, taken, tx.now),
        *(tx.now, sorted(set(providers))),
        *(int(Change.USAGE), roots),
    )
    if document is None:
        tx.row(WRITE, claimed)
        return None
    row = tx.row(WRITE_AND_RECORD, (*claimed, tx.now, claim.consumer, document, decisions.KEPT))
    assert row
    number: int = row[0]
    return number
