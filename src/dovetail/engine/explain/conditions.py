"""Whether a single provider meets a single constraint, seen from a given tree."""

from __future__ import annotations

import msgspec
import numpy as np

from dovetail.core.constraints import Constraint, Reason
from dovetail.engine.columns import Mask
from dovetail.engine.feasible import aggregate_mask, trait_mask
from dovetail.engine.snapshot import Snapshot


class Supply(msgspec.Struct, frozen=True):
    """What a provider has of a resource class."""

    free: int = 0
    capacity: int = 0
    min_unit: int = 1
    max_unit: int = 0
    step_size: int = 1

    def allows(self, amount: int) -> bool:
        """Whether one allocation may be of this size, however much is free."""
        return self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0


class Conditions:
    """The rows that a tree can be served from, and what they meet."""

    def __init__(self, snapshot: Snapshot, tree: int) -> None:
        self._snapshot, self._tree = snapshot, tree
        self.root = int(snapshot.tree_start.values[tree])
        sharing = snapshot.sharing
        shared = [row for row in sharing.rows.tolist() if tree in sharing.reach(row)]
        self.rows = [*snapshot.rows_of(tree), *shared]
        self._masks: dict[Constraint, Mask] = {}
        self._trees: dict[str, int | None] = {}

    def supply(self, row: int, class_name: str) -> Supply:
        stock = self._snapshot.stock(class_name)
        at = None if stock is None else stock.entry(row)
        if stock is None or at is None:
            return Supply()
        return Supply(
            *(
                int(column.values[at])
                for column in (
                    stock.free,
                    stock.capacity,
                    stock.min_unit,
                    stock.max_unit,
                    stock.step_size,
                )
            )
        )

    def meets(self, row: int, constraint: Constraint, group: list[Constraint]) -> bool:
        """`group`: all constraints of the same group, some of which have to be met together."""
        match constraint.reason:
            case Reason.AMOUNT:
                supply = self.supply(row, constraint.name)
                return supply.free >= constraint.amount and supply.allows(constraint.amount)
            case Reason.TRAIT | Reason.ROOT_TRAIT:
                return self._traits(row, constraint, [constraint.names])
            case Reason.FORBIDDEN_TRAIT | Reason.ROOT_FORBIDDEN_TRAIT:
                return self._traits(row, constraint, [], constraint.names)
            case Reason.AGGREGATE:
                return self._in_aggregate(self._speaker(row, group), constraint)
            case Reason.ROOT_AGGREGATE:
                return self._in_aggregate(row, constraint)
            case Reason.FORBIDDEN_AGGREGATE:
                places = (row,) if constraint.group else (row, self.root)
                return all(self._clear_of(place, constraint) for place in places)
            case Reason.ROOT_FORBIDDEN_AGGREGATE:
                return self._clear_of(row, constraint)
            case Reason.ATTRIBUTE | Reason.CLASS:
                return self._selected(row, constraint)
            case Reason.IN_TREE:
                return self._in_tree(row, constraint)
            case _:
                raise ValueError(f"{constraint.reason} is between providers")

    def _traits(
        self,
        row: int,
        constraint: Constraint,
        wanted: list[frozenset[str]],
        unwanted: frozenset[str] = frozenset(),
    ) -> bool:
        mask = self._masks.get(constraint)
        if mask is None:
            mask = self._masks[constraint] = trait_mask(self._snapshot, wanted, unwanted)
        return bool(mask[self._snapshot.traits.values[row]])

    def _speaker(self, row: int, group: list[Constraint]) -> int:
        """The row whose aggregates count: in the unsuffixed group a root may speak for its tree."""
        asked = [one for one in group if one.reason is Reason.AGGREGATE]
        if group[0].group or not self._own(row):
            return row
        if all(self._in_aggregate(row, one) for one in asked):
            return row
        return self.root if all(self._in_aggregate(self.root, one) for one in asked) else row

    def _in_aggregate(self, row: int, constraint: Constraint) -> bool:
        return self._aggregates(row, constraint, [constraint.names])

    def _clear_of(self, row: int, constraint: Constraint) -> bool:
        return self._aggregates(row, constraint, [], constraint.names)

    def _aggregates(
        self,
        row: int,
        constraint: Constraint,
        wanted: list[frozenset[str]],
        unwanted: frozenset[str] = frozenset(),
    ) -> bool:
        mask = self._masks.get(constraint)
        if mask is None:
            mask = self._masks[constraint] = aggregate_mask(self._snapshot, wanted, unwanted)
        return bool(mask[self._snapshot.aggregates.values[row]])

    def _selected(self, row: int, constraint: Constraint) -> bool:
        snapshot = self._snapshot
        mask = snapshot.attribute_sets.selected(constraint.selector)
        return bool(mask[snapshot.attributes.values[row]])

    def _in_tree(self, row: int, constraint: Constraint) -> bool:
        (uuid,) = constraint.names
        if uuid not in self._trees:
            self._trees[uuid] = self._snapshot.tree_with(uuid)
        inside = self._trees[uuid] == int(self._snapshot.tree.values[row])
        return inside and (bool(constraint.group) or self._own(row))

    def _own(self, row: int) -> bool:
        return bool(np.equal(self._snapshot.tree.values[row], self._tree))
