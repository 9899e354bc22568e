"""Distance of trees from a request: a lower bound on the constraints that would have to change.

Vector operations over whole columns: a group needs at least as many changes as the row that meets
most of it leaves unmet, or its amounts dropped, with which the rest of it may go; and of a class
that several want, as many amounts go as what the tree has left does not serve. Relations between
groups are not counted. `relax` looks closely only at trees whose bound is small enough.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.core.explanation import Reason
from dovetail.engine.explain.fit_test.conditions import Conditions
from dovetail.engine.explain.fit_test.demands import Demands, GroupDemands, Kept
from dovetail.engine.explain.fit_test.fits import Work

Counts = NDArray[np.int64]
FAR = 2**30
"""Of a tree that is not there."""


def fewest_changes(conditions: Conditions, dropped: Kept = 0) -> Work[Counts]:
    """By tree; never more than what is really needed, beside what is dropped."""
    snapshot, demands = conditions.snapshot, conditions.demands
    roots = snapshot.tree_start.values
    bound: Counts = np.where(snapshot.tree_size.values > 0, 0, FAR).astype(np.int64)
    for at in demands.roots:
        if not dropped >> at & 1:
            bound += ~conditions.mask(at)[roots]
    for group in demands.groups:
        left = kept_of(group, dropped)
        if left.amounts:
            of_group = of_one_provider if group.suffix else of_several
            bound += np.minimum(of_group(conditions, left), len(left.amounts))
        yield
    for name, amounts in contended(conditions.demands, dropped).items():
        bound = np.maximum(bound, of_contention(conditions, name, amounts))
        yield
    return bound


def contended(demands: Demands, dropped: Kept) -> dict[str, list[int]]:
    """By class that several groups want: how much each of them does."""
    wanted: dict[str, list[int]] = {}
    for group in demands.groups:
        for name, at in kept_of(group, dropped).amounts.items():
            wanted.setdefault(name, []).append(demands.constraints[at].amount)
    return {name: amounts for name, amounts in wanted.items() if len(amounts) > 1}


def of_contention(conditions: Conditions, name: str, amounts: Sequence[int]) -> Counts:
    """What a tree has of a class serves no more than so much of it: the largest amounts go."""
    left = left_to_trees(conditions, name)
    changes = np.zeros(len(left), np.int64)
    total = sum(amounts)
    for amount in sorted(amounts, reverse=True):
        changes += left < total
        total -= amount
    return changes


def left_to_trees(conditions: Conditions, name: str) -> Counts:
    """By tree: what its rows and those shared with it have left of a class, all together."""
    snapshot = conditions.snapshot
    found = np.zeros(snapshot.tree_size.size, np.int64)
    inventories = snapshot.inventories_of(name)
    if inventories is None:
        return found
    by_row = np.zeros(snapshot.tree.size, np.int64)
    by_row[inventories.rows.values] = np.maximum(inventories.headroom_of_all(), 0)
    live = np.flatnonzero((snapshot.tree.values >= 0) & (by_row > 0))
    np.add.at(found, snapshot.tree.values[live], by_row[live])
    trees, rows = conditions.pairs
    np.add.at(found, trees, by_row[rows])
    return found


def kept_of(group: GroupDemands, dropped: Kept) -> GroupDemands:
    return GroupDemands(
        group.suffix,
        {name: at for name, at in group.amounts.items() if not dropped >> at & 1},
        [at for at in group.conditions if not dropped >> at & 1],
    )


def of_one_provider(conditions: Conditions, group: GroupDemands) -> Counts:
    unmet = unmet_by_row(conditions, group.numbers)
    return least_by_tree(conditions, unmet, unmet)


def of_several(conditions: Conditions, group: GroupDemands) -> Counts:
    """Classes may come from different providers, each of which meets the conditions.

    As its root may speak for a row about aggregates, those count where both lack them.
    """
    snapshot = conditions.snapshot
    told = [
        at
        for at in group.conditions
        if conditions.demands.constraints[at].reason is Reason.AGGREGATE
    ]
    rest = unmet_by_row(conditions, [at for at in group.conditions if at not in told])
    of_row = unmet_by_row(conditions, told)
    of_root = of_row[snapshot.tree_start.values[snapshot.tree.values]]
    own, shared = rest + np.minimum(of_row, of_root), rest + of_row
    lacking = np.zeros(snapshot.tree_size.size, np.int64)
    farthest = np.zeros(snapshot.tree_size.size, np.int64)
    for at in group.amounts.values():
        short = unmet_by_row(conditions, [at])
        lacking += least_by_tree(conditions, short, short)
        slot = least_by_tree(conditions, own + short, shared + short)
        farthest = np.maximum(farthest, slot)
    return np.maximum(lacking, farthest)


def unmet_by_row(conditions: Conditions, numbers: tuple[int, ...] | list[int]) -> Counts:
    unmet = np.zeros(conditions.snapshot.tree.size, np.int64)
    for at in numbers:
        unmet += ~conditions.mask(at)
    return unmet


def least_by_tree(conditions: Conditions, own: Counts, shared: Counts) -> Counts:
    """The least that a row of the tree has, or one that is shared with it."""
    snapshot = conditions.snapshot
    least = np.full(snapshot.tree_size.size, FAR, np.int64)
    live = snapshot.tree.values >= 0
    np.minimum.at(least, snapshot.tree.values[live], own[live])
    trees, rows = conditions.pairs
    np.minimum.at(least, trees, shared[rows])
    return least
