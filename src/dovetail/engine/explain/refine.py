"""Refining of a relaxation: instead of dropping constraints, only as much of each as is needed.

Relations first, while the amounts that change are not asked for at all; then the amounts, one after
the other. So none could change less while the others change as they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np

from dovetail.core.constraints import (
    Constraint,
    isolation,
    same_subtree,
    with_amount,
    with_changes,
)
from dovetail.core.explanation import Reason
from dovetail.core.request import Affinity
from dovetail.engine.explain.alike import Kind
from dovetail.engine.explain.demands import Kept, PartialRequest, numbers_in
from dovetail.engine.explain.fits import Work, how_many
from dovetail.engine.explain.fleet_problem import FleetProblem
from dovetail.engine.explain.tree_problem import Pins, Place, TreeProblem, largest_unit

Changes = dict[Constraint, Constraint | None]
"""What becomes of constraints; None: dropped."""
Changed = dict[int, Constraint]
MOST_LET_OUT = 2
"""Groups of which every choice is tried; more are let out one by one."""


def refined(fleet: FleetProblem, dropped: Kept) -> Work[Changes]:
    refining = Refining(fleet, dropped)
    return (yield from refining.changes())


class Refining:
    def __init__(self, fleet: FleetProblem, dropped: Kept) -> None:
        self._fleet, self._dropped = fleet, dropped
        self._demands = fleet.demands
        self._changed: Changed = {}
        self._fitting: dict[Kind, bool] = {}
        """Kinds of trees that fit without the constraints, as far as that was asked."""
        self._asked: dict[int, PartialRequest] = {}
        """With one amount lowered, by that amount."""

    def changes(self) -> Work[Changes]:
        constraints = self._demands.constraints
        numbers = list(numbers_in(self._dropped))
        for at in numbers:
            one = constraints[at]
            if one.affinity is not None:
                yield from self._let_out(at, len(members(one.affinity)), out_of_subtree)
            elif one.reason is Reason.ISOLATION:
                yield from self._let_out(at, len(one.names), out_of_isolation)
        for at in numbers:
            if constraints[at].reason is Reason.AMOUNT:
                yield from self._largest_amount(at)
        return {constraints[at]: self._changed.get(at) for at in numbers}

    def _partial(self, changed: Changed) -> tuple[Kept, Changed]:
        return self._dropped & ~sum(1 << at for at in changed), changed

    # -- relations -------------------------------------------------------------------------------

    def _let_out(
        self, at: int, count: int, kept_without: Callable[[Constraint, frozenset[str]], Constraint]
    ) -> Work[None]:
        """As few groups less in the relation as is enough: those that help most hosts."""
        one = self._demands.constraints[at]
        names = sorted(members(one.affinity) if one.affinity is not None else one.names)
        for size in range(1, min(MOST_LET_OUT, count - 1) + 1):
            best, most = None, 0
            for out in combinations(names, size):
                kept = kept_without(one, frozenset(out))
                trees = yield from self._helped({**self._changed, at: kept})
                if trees > most:
                    best, most = kept, trees
                yield
            if best is not None:
                self._changed[at] = best
                return
        yield from self._let_out_one_by_one(at, names, kept_without)

    def _let_out_one_by_one(
        self,
        at: int,
        names: list[str],
        kept_without: Callable[[Constraint, frozenset[str]], Constraint],
    ) -> Work[None]:
        """From all groups, take back each without which it helps as well."""
        one, out = self._demands.constraints[at], set(names)
        for name in names:
            kept = kept_without(one, frozenset(out - {name}))
            if (yield from self._helps({**self._changed, at: kept})):
                out.discard(name)
                self._changed[at] = kept
            yield

    def _helps(self, changed: Changed) -> Work[bool]:
        """Whether some tree fits; amounts that change are not asked for meanwhile."""
        if any(is_void(one) for one in changed.values()):
            return False
        ways = list(self._ways_to_ask(changed))
        for tree in self._fleet.within(self._dropped.bit_count()):
            if (yield from self._kind_fits(self._fleet.kind_of[tree.tree])):
                for partial in ways:
                    if (yield from tree.fits(partial)):
                        return True
        return False

    def _ways_to_ask(self, changed: Changed) -> Iterator[PartialRequest]:
        """If all amounts are among those that change, one of them is only lowered."""
        partial = self._demands.without(*self._partial(changed))
        if partial.asks_for_something():
            yield partial
            return
        for at in numbers_in(self._dropped):
            one = self._demands.constraints[at]
            if one.reason is Reason.AMOUNT:
                lowered = {**changed, at: with_amount(one, -one.amount)}
                yield self._demands.without(*self._partial(lowered))

    def _helped(self, changed: Changed) -> Work[int]:
        if not (yield from self._helps(changed)):
            return 0
        constraints = self._demands.constraints
        changes: Changes = {constraints[at]: changed.get(at) for at in numbers_in(self._dropped)}
        relaxed = with_changes(self._demands.request, changes)
        return 0 if relaxed is None else (yield from how_many(self._fleet.snapshot, relaxed))

    # -- amounts ---------------------------------------------------------------------------------

    def _largest_amount(self, at: int) -> Work[None]:
        """The largest that fits some tree.

        Rows are tried by the largest amount that each could give. Where other groups take of the
        same class, a row may have to give less, and by halving its steps the most is found: of
        one row, where an amount fits every smaller one does that can be had of it.
        """
        one, best = self._demands.constraints[at], 0
        number = next(n for n, g in enumerate(self._demands.groups) if g.suffix == one.group)
        key = (number, "" if one.group else one.name)
        hopeless: set[tuple[Kind, Place]] = set()
        self._asked = {}
        alone = not any(constraint.reason is Reason.AMOUNT for constraint in self._changed.values())
        for most, tree, row in self._by_largest(one):
            if most <= best:
                break
            kind = self._fleet.kind_of[tree]
            if not (yield from self._kind_fits(kind)):
                continue
            problem = self._fleet.problem(tree)
            place = problem.rows.index(row)
            mark = (kind, place)
            if mark in hopeless:
                continue
            amount = yield from self._most_of(problem, at, {key: place}, best)
            if not amount and alone:
                hopeless.add(mark)
            best = max(best, amount)
            yield
        if best:
            self._changed[at] = with_amount(one, best)

    def _kind_fits(self, kind: Kind) -> Work[bool]:
        found = self._fitting.get(kind)
        if found is None:
            partial = self._demands.without(self._dropped)
            found = yield from self._fleet.problem(self._fleet.kinds[kind][0]).fits(partial)
            self._fitting[kind] = found
            yield
        return found

    def _with_amount(self, at: int, amount: int) -> PartialRequest:
        found = self._asked.get(amount)
        if found is None:
            lowered = with_amount(self._demands.constraints[at], amount)
            partial = self._partial({**self._changed, at: lowered})
            found = self._asked[amount] = self._demands.without(*partial)
        return found

    def _most_of(self, problem: TreeProblem, at: int, pins: Pins, best: int) -> Work[int]:
        """What one place can give; 0 if that is no more than the best known."""
        one = self._demands.constraints[at]
        (place,) = pins.values()
        held = problem.supply(place, one.name)
        step, top = held.step_size, largest_unit(held, one.amount - 1)
        low, high = max(best, -(-held.min_unit // step) * step - step, 0) // step, top // step
        found = 0
        # If more than the best is to be had at all, it begins here; else all of it is tried first.
        tried = low + 1 if best else high
        while low < high:
            partial = self._with_amount(at, tried * step)
            if (yield from problem.fits(partial, pins)):
                low = found = tried
            elif one.name not in partial.contended or tried == low + 1:
                break
            else:
                high = tried - 1
            tried = (low + high + 1) // 2
            yield
        return found * step

    def _met_by_row(self, one: Constraint) -> list[int]:
        """What the row that gives an amount has to meet by itself, whoever speaks for it."""
        constraints = self._demands.constraints
        group = next(g for g in self._demands.groups if g.suffix == one.group)
        numbers = group.numbers if group.suffix else group.conditions
        return [
            at
            for at in numbers
            if not self._dropped >> at & 1
            and (group.suffix or constraints[at].reason is not Reason.AGGREGATE)
        ]

    def _by_largest(self, one: Constraint) -> Iterator[tuple[int, int, int]]:
        """(amount, tree, row), largest first, of trees that may fit."""
        fleet = self._fleet
        inventories = fleet.snapshot.inventories_of(one.name)
        if inventories is None:
            return
        step, least = inventories.step_size.values, inventories.min_unit.values
        room = np.minimum(inventories.headroom_of_all(), one.amount - 1)
        largest = np.maximum(room, 0) // step * step
        largest = np.where(largest >= least, largest, 0)
        by_row = np.zeros(fleet.snapshot.tree.size, np.int64)
        by_row[inventories.rows.values] = largest
        for other in self._met_by_row(one):
            by_row *= fleet.conditions.mask(other)
        trees, rows = fleet.conditions.pairs
        live = np.flatnonzero((fleet.snapshot.tree.values >= 0) & (by_row > 0)).astype(np.int32)
        all_rows = np.concatenate((live, rows))
        all_trees = np.concatenate((fleet.snapshot.tree.values[live], trees))
        near = fleet.distance[all_trees] <= self._dropped.bit_count()
        all_rows, all_trees = all_rows[near], all_trees[near]
        amounts = by_row[all_rows]
        for at in np.argsort(-amounts, kind="stable").tolist():
            if amounts[at]:
                yield int(amounts[at]), int(all_trees[at]), int(all_rows[at])


def members(affinity: Affinity) -> frozenset[str]:
    return affinity.together | affinity.apart


def out_of_subtree(one: Constraint, out: frozenset[str]) -> Constraint:
    assert one.affinity is not None
    return same_subtree(Affinity(one.affinity.together - out, one.affinity.apart - out))


def out_of_isolation(one: Constraint, out: frozenset[str]) -> Constraint:
    return isolation(one.names - out)


def is_void(one: Constraint) -> bool:
    """A relation of nothing to something says nothing; that it is dropped is said otherwise."""
    if one.affinity is not None:
        return not one.affinity.together or len(members(one.affinity)) < 2
    return one.reason is Reason.ISOLATION and not one.names
