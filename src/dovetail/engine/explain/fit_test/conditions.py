"""Condition masks: which rows meet each constraint that a provider meets by itself.

Decided once per request over whole columns; `tree_problem` reads single rows of them, `funnel` and
`distance` whole trees. What a provider's tree adds to it (the root speaks for its tree in the
unsuffixed group, and not for trees that are shared with) is put together in `of_own` and
`of_shared`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dovetail.core.columns import Mask
from dovetail.core.constraints import Constraint
from dovetail.core.explanation import Reason
from dovetail.engine.explain.fit_test.demands import Demands
from dovetail.engine.explain.fit_test.offers import Form, Place
from dovetail.engine.explain.fit_test.parts import bits
from dovetail.engine.feasible import aggregate_mask, shared_pairs, trait_mask
from dovetail.engine.inventories import ClassInventories, RowNumbers
from dovetail.engine.snapshot import Snapshot

OF_TRAITS = frozenset((Reason.TRAIT, Reason.ROOT_TRAIT, Reason.TOGETHER))
OF_FORBIDDEN_TRAITS = frozenset((Reason.FORBIDDEN_TRAIT, Reason.ROOT_FORBIDDEN_TRAIT))
OF_AGGREGATES = frozenset((Reason.AGGREGATE, Reason.ROOT_AGGREGATE))
OF_FORBIDDEN_AGGREGATES = frozenset((Reason.FORBIDDEN_AGGREGATE, Reason.ROOT_FORBIDDEN_AGGREGATE))


class Conditions:
    """Masks over the rows of a snapshot, a constraint each, made when somebody looks."""

    def __init__(self, snapshot: Snapshot, demands: Demands) -> None:
        self.snapshot, self.demands = snapshot, demands
        self._masks: dict[int, Mask] = {}
        self._met: dict[Constraint, Mask] = {}
        self._columns: dict[tuple[int, ...], NDArray[np.int64]] = {}
        self._forms: dict[tuple[Place | None, ...], Form] = {}
        self.speaking = [
            bits(
                place for place, at in enumerate(group.conditions) if self._is(at, Reason.AGGREGATE)
            )
            for group in demands.groups
        ]
        """By group: the conditions for which a root may speak."""
        self.banning = [
            bits(
                place
                for place, at in enumerate(group.conditions)
                if self._is(at, Reason.FORBIDDEN_AGGREGATE)
            )
            for group in demands.groups
        ]
        self.placing = [
            bits(place for place, at in enumerate(group.conditions) if self._is(at, Reason.IN_TREE))
            for group in demands.groups
        ]

    def _is(self, at: int, reason: Reason) -> bool:
        return self.demands.constraints[at].reason is reason

    @cached_property
    def pairs(self) -> tuple[RowNumbers, RowNumbers]:
        """(tree, row) for every row that serves another tree; ascending by tree."""
        return shared_pairs(self.snapshot, self.snapshot.sharing.rows)

    def shared_rows(self, tree: int) -> list[int]:
        trees, rows = self.pairs
        low, high = np.searchsorted(trees, (tree, tree + 1))
        found: list[int] = rows[low:high].tolist()
        return found

    def form(self, own: range, shared: Sequence[int]) -> Form:
        """Of a tree with these rows, and others that are shared with it.

        One for all trees whose places lie to each other like this.
        """
        above = self._above(own, shared)
        found = self._forms.get(above)
        if found is None:
            found = self._forms[above] = Form(above)
        return found

    def _above(self, own: range, shared: Sequence[int]) -> tuple[Place | None, ...]:
        """By place: the next place above it."""
        parents = self.snapshot.parent.values
        above = [
            None if parent < 0 else parent - own.start
            for parent in parents[own.start : own.stop].tolist()
        ]
        at = {row: place for place, row in enumerate(shared, len(own))}
        for row in shared:
            up = int(parents[row])
            while up >= 0 and up not in at:
                up = int(parents[up])
            above.append(at.get(up))
        return tuple(above)

    def mask(self, at: int) -> Mask:
        """By row: whether it meets the constraint, seen by itself."""
        found = self._masks.get(at)
        if found is None:
            found = self._masks[at] = self.met(self.demands.constraints[at])
        return found

    def met(self, one: Constraint) -> Mask:
        """The same of a constraint that the request has in this form or another."""
        found = self._met.get(one)
        if found is None:
            found = self._met[one] = self._decide(one)
        return found

    def row_bits(self, numbers: Sequence[int], row: int) -> int:
        """Which of these constraints a row meets, a bit each."""
        return int(self._bits(tuple(numbers))[row])

    def rows_bits(self, numbers: tuple[int, ...], start: int, stop: int) -> list[int]:
        """The same of the rows from one to another."""
        found: list[int] = self._bits(numbers)[start:stop].tolist()
        return found

    def _bits(self, numbers: tuple[int, ...]) -> NDArray[np.int64]:
        """The same by row; beyond 62 bits in whole numbers of Python's."""
        found = self._columns.get(numbers)
        if found is None:
            found = np.zeros(self.snapshot.tree.size, np.int64 if len(numbers) < 63 else np.object_)
            for place, at in enumerate(numbers):
                found[self.mask(at)] |= 1 << place
            self._columns[numbers] = found
        return found

    def of_tree(self, group: int, rows: Sequence[int], root: int) -> list[tuple[int, ...]]:
        """By row of a tree, all of them: what it meets of a group's conditions (`of_own`)."""
        demands = self.demands.groups[group]
        if demands.suffix or not self.speaking[group] | self.banning[group]:
            column = self._bits(tuple(demands.conditions))[rows[0] : rows[-1] + 1]
            return [(own,) for own in column.tolist()]
        return [self.of_own(group, row, root) for row in rows]

    def of_own(self, group: int, row: int, root: int) -> tuple[int, ...]:
        """What a row of a tree meets of a group's conditions: as it speaks, and as its root does.

        All aggregates of the unsuffixed group have to be those of one speaker.
        """
        demands = self.demands.groups[group]
        own = self.row_bits(demands.conditions, row)
        of_root = self.row_bits(demands.conditions, root)
        own &= of_root | ~self.banning[group]
        speaking = self.speaking[group]
        told = (own & ~speaking) | (of_root & speaking)
        return (own,) if told == own else (own, told)

    def of_shared(self, group: int, row: int, root: int) -> tuple[int, ...]:
        """The same of a row that another tree shares with the tree of this root."""
        demands = self.demands.groups[group]
        own = self.row_bits(demands.conditions, row)
        if demands.suffix:
            return (own,)
        if self.banning[group]:
            own &= self.row_bits(demands.conditions, root) | ~self.banning[group]
        return (own & ~self.placing[group],)

    def _decide(self, one: Constraint) -> Mask:
        snapshot, reason = self.snapshot, one.reason
        if reason in OF_TRAITS:
            return trait_mask(snapshot, [one.names], ())[snapshot.traits.values]
        if reason in OF_FORBIDDEN_TRAITS:
            return trait_mask(snapshot, (), one.names)[snapshot.traits.values]
        if reason in OF_AGGREGATES:
            return aggregate_mask(snapshot, [one.names], ())[snapshot.aggregates.values]
        if reason in OF_FORBIDDEN_AGGREGATES:
            return aggregate_mask(snapshot, (), one.names)[snapshot.aggregates.values]
        if reason in (Reason.ATTRIBUTE, Reason.CLASS):
            selected = snapshot.attribute_sets.selected_by(one.selector)
            return selected[snapshot.attributes.values]
        found = np.zeros(snapshot.tree.size, np.bool_)
        if reason is Reason.IN_TREE:
            (uuid,) = one.names
            tree = snapshot.tree_with(uuid)
            if tree is not None:
                rows = snapshot.rows_of(tree)
                found[rows.start : rows.stop] = True
        elif reason is Reason.AMOUNT:
            inventories = snapshot.inventories_of(one.name)
            if inventories is not None and one.amount > 0:
                found[inventories.fitting(one.amount)] = True
            elif inventories is not None:
                # A negative amount: any that is smaller than its opposite (`TreeProblem.has_room`).
                some = largest_units(inventories, -one.amount - 1) > 0
                found[inventories.rows.values.compress(some)] = True
        return found


def largest_units(inventories: ClassInventories, most: int) -> NDArray[np.int64]:
    """By entry: the most that can be had in one allocation, and no more than `most`, or 0."""
    step = inventories.step_size.values
    largest = np.maximum(np.minimum(inventories.headroom_of_all(), most), 0) // step * step
    return np.where(largest >= inventories.min_unit.values, largest, 0)
