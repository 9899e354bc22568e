"""Node classes: nodes that are the same to every kind of pod are one, for the packing solver.

Of a resource only so much is counted as any mix of pods could use. So nodes that differ in what is
of no use are alike: with pods of 2 CPUs, 7.3 CPUs are as good as 6; with room for three of them, so
are 20Gi and 50Gi of memory, if that is more than three ask for.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import msgspec
import numpy as np

from dovetail.core.columns import Amounts, Mask, Numbers
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.packing.solver.problem import NodeClass
from dovetail.podfit.pod_sum import MOST_UNITS_COUNTED

MOST_SUMS = 2**16
"""Sums of amounts that may come up; where there may be more, any amount is of use."""


class PodKind(msgspec.Struct, frozen=True):
    """Pods that are the same in all that packing looks at."""

    count: int
    amounts: tuple[int, ...]
    """By resource."""
    rows: Mask
    """Nodes that may take one, were they empty of others of the set."""


class ClassRows(msgspec.Struct, frozen=True):
    """A class of nodes, and the rows of its nodes."""

    node_class: NodeClass
    rows: tuple[int, ...]
    region: int
    """Nodes of one class are in one region."""


def free_amounts(nodes: Nodes, resources: Sequence[str], rows: Numbers) -> Amounts:
    """By row and resource; nothing is below zero."""
    found: Amounts = np.zeros((len(rows), len(resources)), np.int64)
    for at, name in enumerate(resources):
        column = nodes.resources.free.get(name)
        if column is not None:
            found[:, at] = np.maximum(column.values[rows], 0)
    return found


class ApartMarks(msgspec.Struct, frozen=True):
    """Which kinds cannot share a node."""

    numbers: Numbers
    """By row, which of the sets holds there."""
    sets: tuple[tuple[int, ...] | None, ...]
    """By kind, a bit for each that it cannot share a node with; None: there are none."""


def node_classes(
    rows: Numbers,
    free: Amounts,
    kinds: Sequence[PodKind],
    apart: ApartMarks,
    regions: Numbers,
) -> list[ClassRows]:
    """Rows that may take any pod, in classes; nodes of different regions are not alike."""
    if not len(rows):
        return []
    takes: Mask = np.stack([kind.rows[rows] for kind in kinds], axis=1)
    usable = usable_amounts(free, takes, kinds)
    others = (regions[:, None], apart.numbers[:, None], np.packbits(takes, axis=1))
    keys = np.concatenate((usable, *(each.astype(np.int64) for each in others)), axis=1)
    found: dict[bytes, list[int]] = {}
    for at in np.flatnonzero(takes.any(axis=1)).tolist():
        found.setdefault(keys[at].tobytes(), []).append(at)
    classes = []
    for members in found.values():
        first = members[0]
        node_class = NodeClass(
            size=len(members),
            free=tuple(usable[first].tolist()),
            kinds=tuple(np.flatnonzero(takes[first]).tolist()),
            apart=apart.sets[apart.numbers[first]],
        )
        members_rows = tuple(rows[members].tolist())
        classes.append(ClassRows(node_class, members_rows, int(regions[first])))
    # Nodes that few kinds can use have the fewest patterns: a search begins with them.
    classes.sort(key=lambda each: (len(each.node_class.kinds), each.node_class.kinds, each.rows))
    return classes


def usable_amounts(free: Amounts, takes: Mask, kinds: Sequence[PodKind]) -> Amounts:
    """By row and resource, the most of it that pods of the kinds that it takes can use."""
    found = free.copy()
    same = np.packbits(takes, axis=1)
    for pattern in np.unique(same, axis=0):
        members = np.flatnonzero((same == pattern).all(axis=1))
        chosen = [kinds[at] for at in np.flatnonzero(takes[members[0]]).tolist()]
        if chosen:
            found[members] = _usable(found[members], chosen)
    return found


def _usable(free: Amounts, kinds: Sequence[PodKind]) -> Amounts:
    """Of nodes that take all of these kinds."""
    wanted = [
        [(kind.amounts[at], kind.count) for kind in kinds if kind.amounts[at]]
        for at in range(free.shape[1])
    ]
    totals = [sum(amount * count for amount, count in each) for each in wanted]
    free = np.minimum(free, [min(total, MOST_UNITS_COUNTED) for total in totals])
    sums = [_sums(each, int(top)) for each, top in zip(wanted, free.max(axis=0), strict=True)]
    free = _bounded_by_others(_rounded_down(free, sums), kinds)
    return _rounded_down(free, sums)


def _sums(wanted: Sequence[tuple[int, int]], top: int) -> Amounts | None:
    """All sums up to `top` of so many of these amounts, in ascending order; None: too many."""
    unit = gcd(*(amount for amount, _ in wanted))
    if not unit:
        return np.zeros(1, np.int64)
    size = top // unit + 1
    if size > MOST_SUMS:
        return None
    # By multiples of what all have in common; so many of an amount as sums of doubles of it.
    reached: Mask = np.zeros(size, np.bool_)
    reached[0] = True
    for amount, count in wanted:
        step, left, times = amount // unit, count, 1
        while left and step * times < size:
            times = min(times, left)
            reached[step * times :] |= reached[: size - step * times]
            left -= times
            times *= 2
    found: Amounts = np.flatnonzero(reached) * unit
    return found


def _rounded_down(free: Amounts, sums: Sequence[Amounts | None]) -> Amounts:
    """To the next sum."""
    found = free.copy()
    for at, listed in enumerate(sums):
        if listed is not None:
            found[:, at] = listed[np.searchsorted(listed, free[:, at], "right") - 1]
    return found


def _bounded_by_others(free: Amounts, kinds: Sequence[PodKind]) -> Amounts:
    """No more of a resource than goes with what there is of another, which the same pods want."""
    found = free.copy()
    for at in range(free.shape[1]):
        wanting = [kind.amounts for kind in kinds if kind.amounts[at]]
        for other in range(free.shape[1]):
            if wanting and other != at and all(amounts[other] for amounts in wanting):
                rate = max(amounts[at] / amounts[other] for amounts in wanting)
                # A little more than it comes to, so that floats round it down no further.
                bound = np.minimum(free[:, other] * (rate * (1 + 1e-9)), MOST_UNITS_COUNTED)
                np.minimum(found[:, at], bound.astype(np.int64), out=found[:, at])
    return found
