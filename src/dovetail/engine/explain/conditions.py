"""Condition checks: whether a provider meets a constraint, seen from a given tree; for `host`."""

from __future__ import annotations

import numpy as np

from dovetail.core.columns import Mask
from dovetail.core.constraints import Constraint
from dovetail.core.explanation import Reason
from dovetail.core.inventory import Supply
from dovetail.engine.feasible import aggregate_mask, trait_mask
from dovetail.engine.snapshot import Snapshot

TRAITS = frozenset(
    (Reason.TRAIT, Reason.FORBIDDEN_TRAIT, Reason.ROOT_TRAIT, Reason.ROOT_FORBIDDEN_TRAIT)
)
AGGREGATES = frozenset(
    (
        Reason.AGGREGATE,
        Reason.FORBIDDEN_AGGREGATE,
        Reason.ROOT_AGGREGATE,
        Reason.ROOT_FORBIDDEN_AGGREGATE,
    )
)
FORBIDDING = frozenset(
    (
        Reason.FORBIDDEN_TRAIT,
        Reason.FORBIDDEN_AGGREGATE,
        Reason.ROOT_FORBIDDEN_TRAIT,
        Reason.ROOT_FORBIDDEN_AGGREGATE,
    )
)


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
        inventories = self._snapshot.inventories_of(class_name)
        at = None if inventories is None else inventories.entry(row)
        if inventories is None or at is None:
            return Supply()
        return Supply(
            *(
                int(column.values[at])
                for column in (
                    inventories.free,
                    inventories.capacity,
                    inventories.min_unit,
                    inventories.max_unit,
                    inventories.step_size,
                )
            )
        )

    def meets(self, row: int, constraint: Constraint, group: list[Constraint]) -> bool:
        """`group`: all constraints of the same group, some of which have to be met together."""
        match constraint.reason:
            case Reason.AMOUNT:
                supply = self.supply(row, constraint.name)
                return supply.free >= constraint.amount and supply.allows(constraint.amount)
            case Reason.AGGREGATE:
                return self._allows(constraint, self._speaker(row, group))
            case Reason.FORBIDDEN_AGGREGATE if not constraint.group:
                return all(self._allows(constraint, place) for place in (row, self.root))
            case reason if reason in TRAITS or reason in AGGREGATES:
                return self._allows(constraint, row)
            case Reason.ATTRIBUTE | Reason.CLASS:
                return self._selected(row, constraint)
            case Reason.IN_TREE:
                return self._in_tree(row, constraint)
            case _:
                raise ValueError(f"{constraint.reason} is between providers")

    def _speaker(self, row: int, group: list[Constraint]) -> int:
        """The row whose aggregates count: in the unsuffixed group a root may speak for its tree."""
        asked = [one for one in group if one.reason is Reason.AGGREGATE]
        if group[0].group or not self._own(row):
            return row
        if all(self._allows(one, row) for one in asked):
            return row
        return self.root if all(self._allows(one, self.root) for one in asked) else row

    def _allows(self, constraint: Constraint, row: int) -> bool:
        """Whether the row's traits, or its aggregates, are such as the constraint wants them."""
        snapshot, of_traits = self._snapshot, constraint.reason in TRAITS
        mask = self._masks.get(constraint)
        if mask is None:
            mask_of = trait_mask if of_traits else aggregate_mask
            names = constraint.names
            forbids = constraint.reason in FORBIDDING
            mask = mask_of(snapshot, [], names) if forbids else mask_of(snapshot, [names], ())
            self._masks[constraint] = mask
        sets = snapshot.traits if of_traits else snapshot.aggregates
        return bool(mask[sets.values[row]])

    def _selected(self, row: int, constraint: Constraint) -> bool:
        snapshot = self._snapshot
        mask = snapshot.attribute_sets.selected_by(constraint.selector)
        return bool(mask[snapshot.attributes.values[row]])

    def _in_tree(self, row: int, constraint: Constraint) -> bool:
        (uuid,) = constraint.names
        if uuid not in self._trees:
            self._trees[uuid] = self._snapshot.tree_with(uuid)
        inside = self._trees[uuid] == int(self._snapshot.tree.values[row])
        return inside and (bool(constraint.group) or self._own(row))

    def _own(self, row: int) -> bool:
        return bool(np.equal(self._snapshot.tree.values[row], self._tree))
