"""The smallest changes to a request that would give candidates.

Smallest means: as few constraints touched as possible, and each of them only as far as needed (the
largest amount that fits, one group let out of a subtree rather than all of them).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import msgspec
import numpy as np
from msgspec.structs import replace

from dovetail.core.constraints import Constraint, constraints, same_subtree, with_changes
from dovetail.core.explanation import Reason
from dovetail.core.request import Affinity, Request
from dovetail.engine.explain.fits import Work, any_fits, how_many
from dovetail.engine.inventories import ClassInventories
from dovetail.engine.snapshot import Snapshot

Changes = dict[Constraint, Constraint | None]
"""What becomes of constraints; None: dropped."""

MOST_AMOUNTS = 256
"""Amounts tried one by one where providers have steps or least amounts."""


class RelaxedRequest(msgspec.Struct, frozen=True):
    """A request that fits somewhere, and how it differs from the one that was asked."""

    changes: Changes
    request: Request
    trees: int


def relaxations(
    snapshot: Snapshot, request: Request, found: list[RelaxedRequest]
) -> Work[list[RelaxedRequest]]:
    """Add to `found` as they are found; those that touch the fewest constraints, and no others."""
    droppable = [one for one in constraints(request) if one.reason is not Reason.SHARED_CAPACITY]
    for size in range(1, len(droppable) + 1):
        for chosen in combinations(droppable, size):
            start = yield from without(snapshot, request, chosen)
            if start is not None:
                changes = yield from refined(snapshot, request, start)
                relaxed = with_changes(request, changes)
                assert relaxed
                trees = yield from how_many(snapshot, relaxed)
                found.append(RelaxedRequest(changes, relaxed, trees))
            yield
        if found:
            break
    return found


def helps(snapshot: Snapshot, request: Request, changes: Changes) -> Work[bool]:
    relaxed = with_changes(request, changes)
    return relaxed is not None and (yield from any_fits(snapshot, relaxed))


def without(
    snapshot: Snapshot, request: Request, chosen: Sequence[Constraint]
) -> Work[Changes | None]:
    """A request without these constraints that fits somewhere, if there is one.

    Something has to be asked for: if these are all the amounts there are, one is only lowered.
    """
    changes: Changes = dict.fromkeys(chosen)
    if with_changes(request, changes) is not None:
        return changes if (yield from helps(snapshot, request, changes)) else None
    for one in chosen:
        if one.reason is Reason.AMOUNT:
            lower = yield from largest_amount(snapshot, request, changes, one)
            if lower is not None:
                return {**changes, one: lower}
    return None


def refined(snapshot: Snapshot, request: Request, start: Changes) -> Work[Changes]:
    """Instead of dropping constraints, only as much of each as is needed."""
    changes = dict(start)
    for one, other in start.items():
        if other is None and one.reason is Reason.AMOUNT:
            changes[one] = yield from largest_amount(snapshot, request, changes, one)
        elif other is None and one.affinity is not None:
            changes[one] = yield from fewest_let_out(snapshot, request, changes, one.affinity, one)
    return changes


def largest_amount(
    snapshot: Snapshot, request: Request, changes: Changes, one: Constraint
) -> Work[Constraint | None]:
    inventories = snapshot.inventories_of(one.name)
    if inventories is None:
        return None
    if inventories.plain:
        return (yield from largest_by_halving(snapshot, request, changes, one, inventories))
    for amount in possible_amounts(inventories, one, others(request, one)):
        smaller = with_amount(one, amount)
        if (yield from helps(snapshot, request, {**changes, one: smaller})):
            return smaller
        yield
    return None


def largest_by_halving(
    snapshot: Snapshot,
    request: Request,
    changes: Changes,
    one: Constraint,
    inventories: ClassInventories,
) -> Work[Constraint | None]:
    """For inventories that are plain: where an amount fits, all smaller ones do."""
    low, high = 0, min(one.amount - 1, int(inventories.headroom_of_all().max(initial=0)))
    while low < high:
        middle = (low + high + 1) // 2
        smaller = with_amount(one, middle)
        if (yield from helps(snapshot, request, {**changes, one: smaller})):
            low = middle
        else:
            high = middle - 1
        yield
    return with_amount(one, low) if low else None


def possible_amounts(
    inventories: ClassInventories, one: Constraint, others: list[int]
) -> list[int]:
    """Smaller amounts that exhaust some provider, largest first; the answer is among them.

    `others`: what other groups may take of the same provider.
    """
    columns = (
        inventories.headroom_of_all(),
        inventories.min_unit.values,
        inventories.step_size.values,
    )
    headroom, least, step = np.unique(np.stack(columns).astype(np.int64), axis=1)
    found: set[int] = set()
    for taken in others:
        room = np.minimum(headroom - taken, one.amount - 1)
        amounts = room // step * step
        allowed = (amounts >= least) & (amounts >= 1)
        found.update(np.unique(amounts[allowed]).tolist())
    return sorted(found, reverse=True)[:MOST_AMOUNTS]


def others(request: Request, one: Constraint) -> list[int]:
    """What the other groups may want of the class together: the smallest of all sums.

    The smaller they are, the more is left. All of them would be too many: twice as many with
    every group.
    """
    sums = [0]
    for group in request.groups:
        if group.suffix != one.group and one.name in group.resources:
            more = {total + group.resources[one.name] for total in sums}
            sums = sorted(more.union(sums))[:MOST_AMOUNTS]
    return sums


def with_amount(one: Constraint, amount: int) -> Constraint:
    return replace(one, text=f"{one.name}:{amount}", amount=amount)


def fewest_let_out(
    snapshot: Snapshot, request: Request, changes: Changes, affinity: Affinity, one: Constraint
) -> Work[Constraint | None]:
    """One group less in the subtree if that is enough: the one that helps most hosts."""
    best, most = None, 0
    for left in one_less(affinity):
        kept = same_subtree(left)
        relaxed = with_changes(request, {**changes, one: kept})
        trees = 0 if relaxed is None else (yield from how_many(snapshot, relaxed))
        if trees > most:
            best, most = kept, trees
    return best


def one_less(affinity: Affinity) -> Iterator[Affinity]:
    if len(affinity.together) + len(affinity.apart) <= 2:
        return
    for name in sorted(affinity.apart):
        yield replace(affinity, apart=affinity.apart - {name})
    if len(affinity.together) > 1:
        for name in sorted(affinity.together):
            yield replace(affinity, together=affinity.together - {name})
