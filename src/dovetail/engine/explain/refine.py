"""Refining of a relaxation: instead of dropping constraints, only as much of each as is needed.

Relations first, while the amounts that change are not asked for at all; then the amounts, one after
the other. So none could change less while the others change as they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np

from dovetail.core.columns import Mask
from dovetail.core.constraints import Constraint, isolation, same_subtree, with_amount
from dovetail.core.explanation import Reason
from dovetail.core.request import Affinity
from dovetail.engine.explain.fit_test.alike import TreeViews
from dovetail.engine.explain.fit_test.conditions import largest_units
from dovetail.engine.explain.fit_test.demands import Kept, numbers_in
from dovetail.engine.explain.fit_test.distance import fewest_changes, left_to_trees
from dovetail.engine.explain.fit_test.fits import Work
from dovetail.engine.explain.fit_test.fleet_problem import FleetProblem
from dovetail.engine.explain.fit_test.offers import Offer, Offering
from dovetail.engine.explain.fit_test.parts import PartialRequest, members
from dovetail.engine.explain.fit_test.tree_problem import Pins, TreeProblem, smallest_unit
from dovetail.engine.explain.near import Asked, NearGroups
from dovetail.engine.explain.tried_places import TriedPlaces
from dovetail.engine.work import is_step

Changes = dict[Constraint, Constraint | None]
"""What becomes of constraints; None: dropped."""
Changed = dict[int, Constraint]
Way = tuple[Changed, list[list[int]]]
"""Amounts that are lowered and not dropped, and trees that fit then, those alike together."""
MANY = 2**30
FEW = 8
"""Trees that are asked about an amount before it is asked what is near it."""
MOST_LET_OUT = 2
"""Groups of which every choice is tried; more are let out one by one."""


def refined(fleet: FleetProblem, dropped: Kept) -> Work[tuple[Changes, int]]:
    """What becomes of each of these constraints, and how many trees fit then."""
    refining = Refining(fleet, dropped)
    changes = yield from refining.changes()
    return changes, (yield from refining.trees())


class Refining:
    """One set of constraints, of which no part would do: what becomes of each."""

    def __init__(self, fleet: FleetProblem, dropped: Kept) -> None:
        self._fleet, self._dropped = fleet, dropped
        self._demands = fleet.demands
        self._changed: Changed = {}
        self._possible: Mask = np.empty(0, np.bool_)
        """By tree: whether it has a provider for every part of what is left."""
        self._ways: list[Way] = []
        self._merged: dict[tuple[int, Offering], list[list[int]]] = {}
        self._asked: dict[int, PartialRequest] = {}
        """With one amount lowered, by that amount."""
        self._too_much: set[tuple[int, int]] = set()
        """Trees, and what of that amount they can give nowhere."""

    def changes(self) -> Work[Changes]:
        constraints = self._demands.constraints
        numbers = list(numbers_in(self._dropped))
        distance = yield from fewest_changes(self._fleet.conditions, self._dropped)
        self._possible = distance == 0
        for at in numbers:
            one = constraints[at]
            if one.affinity is not None:
                yield from self._let_out(at, len(members(one.affinity)), out_of_subtree)
            elif one.reason is Reason.ISOLATION:
                yield from self._let_out(at, len(one.names), out_of_isolation)
        amounts = [at for at in numbers if constraints[at].reason is Reason.AMOUNT]
        before: Changed | None = None
        while before != self._changed:
            before = dict(self._changed)
            for at in amounts:
                yield
                yield from self._largest_amount(at)
            if not self._demands.together:
                break
            # What is asked for by now may bring a provider that has a trait which was missing.
        yield
        return {constraints[at]: self._changed.get(at) for at in numbers}

    def trees(self) -> Work[int]:
        """How many fit with the changes."""
        partial = self._partial(self._changed)
        if not partial.asks_for_something():
            return 0
        count = 0
        for alike in (yield from self._alike(self._changed)):
            count += len(alike) * (yield from self._fleet.problem(alike[0]).fits(partial))
            yield
        return count

    def _alike(self, changed: Changed) -> Work[list[list[int]]]:
        """The trees that may fit, those together that these changes cannot tell apart."""
        views = TreeViews(self._fleet.conditions, list(self._kept(changed).values()))
        kinds = yield from views.kinds(np.flatnonzero(self._possible).astype(np.int32))
        return list(kinds.values())

    def _partial(self, changed: Changed) -> PartialRequest:
        dropped = self._dropped & ~sum(1 << at for at in changed)
        return self._demands.without(dropped, changed)

    def _kept(self, changed: Changed) -> Asked:
        return {
            at: changed.get(at, one)
            for at, one in enumerate(self._demands.constraints)
            if at in changed or not self._dropped >> at & 1
        }

    # -- relations -------------------------------------------------------------------------------

    def _let_out(
        self, at: int, count: int, kept_without: Callable[[Constraint, frozenset[str]], Constraint]
    ) -> Work[None]:
        """As few groups less in the relation as is enough: those that help most hosts."""
        if not self._ways:
            self._ways = yield from self._ways_to_ask()
        one = self._demands.constraints[at]
        names = sorted(members(one.affinity) if one.affinity is not None else one.names)
        for size in range(1, min(MOST_LET_OUT, count - 1) + 1):
            best, most = None, 0
            for out in combinations(names, size):
                kept = kept_without(one, frozenset(out))
                trees = yield from self._helped({**self._changed, at: kept}, more_than=most)
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
            if (yield from self._helped({**self._changed, at: kept}, enough=1)):
                out.discard(name)
                self._changed[at] = kept
            yield

    def _ways_to_ask(self) -> Work[list[Way]]:
        """Amounts that change are not asked for meanwhile.

        If all amounts are among those, one of them is only lowered.
        """
        lowered: list[Changed] = [{}]
        if not self._partial({}).asks_for_something():
            amounts = [
                (at, self._demands.constraints[at])
                for at in numbers_in(self._dropped)
                if self._demands.constraints[at].reason is Reason.AMOUNT
            ]
            lowered = [{at: with_amount(one, -one.amount)} for at, one in amounts]
        ways: list[Way] = []
        for changed in lowered:
            partial, fitting = self._partial(changed), []
            for alike in (yield from self._alike(changed)):
                # Relations can only make it harder.
                if (yield from self._fleet.problem(alike[0]).fits(partial)):
                    fitting.append(alike)
                yield
            ways.append((changed, sorted(fitting, key=len, reverse=True)))
        return ways

    def _helped(self, changed: Changed, more_than: int = 0, enough: int = MANY) -> Work[int]:
        """How many trees fit: of no interest unless more than so many, and if some are enough."""
        if any(is_void(one) for one in changed.values()):
            return 0
        helped: set[int] = set()
        left = sum(len(alike) for _, kinds in self._ways for alike in kinds)
        for number, (lowered, _) in enumerate(self._ways):
            partial = self._partial({**changed, **lowered})
            for alike in (yield from self._of_one_offer(number, partial)):
                if len(helped) >= enough or len(helped) + left <= more_than:
                    return len(helped)
                left -= len(alike)
                if (yield from self._fleet.problem(alike[0]).fits(partial)):
                    helped.update(alike)
                yield
        return len(helped)

    def _of_one_offer(self, way: int, partial: PartialRequest) -> Work[list[list[int]]]:
        """The trees of a way, those together that offer the same to what is asked for.

        Relations with some groups less see the same offers, so this is done for the first of them.
        """
        key = (way, partial.offering)
        found = self._merged.get(key)
        if found is None:
            by_offer: dict[Offer | int, list[int]] = {}
            for alike in self._ways[way][1]:
                offer = self._fleet.problem(alike[0]).offer(partial)
                by_offer.setdefault(alike[0] if offer is None else offer, []).extend(alike)
                yield
            found = sorted(by_offer.values(), key=len, reverse=True)
            self._merged[key] = found
        return found

    # -- amounts ---------------------------------------------------------------------------------

    def _largest_amount(self, at: int) -> Work[None]:
        """The largest that fits some tree.

        Rows are tried by the largest amount that each could give, but for those that cannot give
        more than one tried before. Where other groups take of the same class, a row may have to
        give less, and by halving its steps the most is found: of one row, where an amount fits
        every smaller one does that can be had of it.
        """
        one, best = self._demands.constraints[at], 0
        self._changed.pop(at, None)
        number = next(n for n, g in enumerate(self._demands.groups) if g.suffix == one.group)
        key = (number, "" if one.group else one.name)
        asked = self._kept(self._changed)
        near, others = NearGroups(self._fleet, at, asked), list(asked.values())
        tried = TriedPlaces(self._fleet, one, others)
        self._asked, self._too_much = {}, set()
        inventories = self._fleet.snapshot.inventories_of(one.name)
        is_plain = inventories is not None and inventories.plain
        for step, (most, tree, row) in enumerate(self._by_largest(one, others)):
            if most <= best:
                break
            if is_step(step):
                yield
            # Where amounts come in single units, the next one up is the same for all places.
            if is_plain and not (yield from self._may_give(tree, best + 1, near)):
                continue
            if tried.before(tree, row):
                continue
            problem = self._fleet.problem(tree)
            place = problem.rows.index(row)
            amount = yield from self._most_of(problem, at, {key: place}, best, most)
            best = max(best, amount)
            yield
        if best:
            self._changed[at] = with_amount(one, best)

    def _may_give(self, tree: int, amount: int, near: NearGroups) -> Work[bool]:
        if (tree, amount) in self._too_much:
            return False
        if not near.is_of_use or len(self._too_much) < FEW:
            return True
        if (yield from near.can_give(tree, amount)):
            return True
        self._too_much.add((tree, amount))
        return False

    def _with_amount(self, at: int, amount: int) -> PartialRequest:
        found = self._asked.get(amount)
        if found is None:
            lowered = with_amount(self._demands.constraints[at], amount)
            found = self._asked[amount] = self._partial({**self._changed, at: lowered})
        return found

    def _most_of(
        self, problem: TreeProblem, at: int, pins: Pins, best: int, most: int
    ) -> Work[int]:
        """What one place can give, `most` at most; 0 if that is no more than the best known."""
        one = self._demands.constraints[at]
        (place,) = pins.values()
        held = problem.supply(place, one.name)
        step = held.step_size
        low, high = max(best, smallest_unit(held) - step) // step, most // step
        # The next step first: that most trees cannot give it is known from others.
        if low >= high or not (yield from self._gives_more(problem, at, (low + 1) * step, pins)):
            return 0
        low, tried = low + 1, high
        while low < high:
            if (yield from self._gives(problem, at, tried * step, pins)):
                low = tried
            else:
                high = tried - 1
            tried = (low + high + 1) // 2
            yield
        return low * step

    def _gives_more(self, problem: TreeProblem, at: int, amount: int, pins: Pins) -> Work[bool]:
        """The same, asked of the tree first: what it can give nowhere no other place of it can."""
        asked = (problem.tree, amount)
        if asked in self._too_much:
            return False
        if not (yield from problem.fits(self._with_amount(at, amount))):
            self._too_much.add(asked)
            return False
        return (yield from self._gives(problem, at, amount, pins))

    def _gives(self, problem: TreeProblem, at: int, amount: int, pins: Pins) -> Work[bool]:
        return (yield from problem.fits(self._with_amount(at, amount), pins))

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

    def _by_largest(
        self, one: Constraint, others: Sequence[Constraint]
    ) -> Iterator[tuple[int, int, int]]:
        """(amount, tree, row) of trees that may fit, largest first.

        Never less than what the row can give; nor more than what other groups leave to its tree.
        """
        fleet = self._fleet
        inventories = fleet.snapshot.inventories_of(one.name)
        if inventories is None:
            return
        by_row = np.zeros(fleet.snapshot.tree.size, np.int64)
        by_row[inventories.rows.values] = largest_units(inventories, one.amount - 1)
        for other in self._met_by_row(one):
            by_row *= fleet.conditions.mask(other)
        trees, rows = fleet.conditions.pairs
        live = np.flatnonzero((fleet.snapshot.tree.values >= 0) & (by_row > 0)).astype(np.int32)
        all_rows = np.concatenate((live, rows))
        all_trees = np.concatenate((fleet.snapshot.tree.values[live], trees))
        # Rows that are shared may have none of the class.
        possible = self._possible[all_trees] & (by_row[all_rows] > 0)
        all_rows, all_trees = all_rows[possible], all_trees[possible]
        amounts = by_row[all_rows]
        taken = sum(each.amount for each in others if each.name == one.name and each.amount)
        if taken:
            left = left_to_trees(fleet.conditions, one.name)[all_trees] - taken
            step = inventories.step_size.values[inventories.rows.values.searchsorted(all_rows)]
            amounts = np.minimum(amounts, np.maximum(left, 0) // step * step)
        for at in np.argsort(-amounts, kind="stable").tolist():
            if amounts[at]:
                yield int(amounts[at]), int(all_trees[at]), int(all_rows[at])


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
