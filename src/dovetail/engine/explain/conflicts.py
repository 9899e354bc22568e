"""Conflicts: smallest sets of constraints that a tree cannot keep at once, and what resolves them.

A conflict is found by QuickXplain (Junker 2004): halves of the constraints are tried in turn, in
about 2k log(n/k) + 2k fit tests for a conflict of k among n constraints. Whatever makes the tree
fit drops one constraint of every conflict, so `resolutions` branches over the members of one
conflict after the other (a hitting set tree, Reiter 1987), and leaves a branch where what the
groups lack one by one is more than may still be dropped: all sets of just so many constraints
without which the tree fits, found without trying the others. A larger set is grown instead: what
can be kept is, constraint by constraint, in as many tests as there are constraints; what could be
kept later, when groups are gone, `relax` finds.
"""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.core.constraints import Constraint, with_amount
from dovetail.engine.explain.fit_test.demands import Demands, Groups, Kept, numbers_in
from dovetail.engine.explain.fit_test.fits import Work
from dovetail.engine.explain.fit_test.tree_problem import TreeProblem
from dovetail.engine.explain.lacks import Lacks

Lowered = dict[int, Constraint]
"""The one amount that is left when all are dropped: to be lowered, to whatever can be had."""


class Conflicts:
    """The conflicts of a request, learnt from one tree after the other."""

    def __init__(self, demands: Demands) -> None:
        self._demands = demands
        self._known: dict[Groups, list[Kept]] = {}
        """By groups that are gone, conflicts of trees seen before: many have the same ones."""
        self._lacks = Lacks(demands)
        self._amounts = sum(demands.amount_bits)

    def resolutions(self, tree: TreeProblem, most: int, found: set[Kept]) -> Work[None]:
        """Add to `found` every set of just so many constraints without which the tree fits.

        Unless a smaller one does: callers try smaller ones first, so none is there.
        """
        yield from self._resolve(tree, 0, most, found, set())

    def _resolve(
        self, tree: TreeProblem, dropped: Kept, left: int, found: set[Kept], seen: set[Kept]
    ) -> Work[None]:
        if dropped in seen or (not left and dropped in found):
            return
        seen.add(dropped)
        if self._lacks.fewest_changes(tree, dropped) > left:
            return
        branches: Kept = 0
        for lowered in self._ways_to_ask(dropped):
            if (yield from self._fits(tree, dropped, lowered)):
                found.add(dropped)
                return
            if left:
                branches |= yield from self._conflict(tree, dropped, lowered)
                branches |= self._last_of_groups(dropped, left)
        yield
        for at in numbers_in(branches):
            yield from self._resolve(tree, dropped | 1 << at, left - 1, found, seen)

    def _ways_to_ask(self, dropped: Kept) -> Sequence[Lowered]:
        """Something has to be asked for: of amounts that are all dropped one is only lowered."""
        if self._amounts & ~dropped:
            return [{}]
        return [
            {at: with_amount(one, -one.amount)}
            for at, one in enumerate(self._demands.constraints)
            if self._amounts >> at & 1
        ]

    def fits_without(self, tree: TreeProblem, dropped: Kept) -> Work[bool]:
        for lowered in self._ways_to_ask(dropped):
            if (yield from self._fits(tree, dropped, lowered)):
                return True
        return False

    def _fits(self, tree: TreeProblem, dropped: Kept, lowered: Lowered) -> Work[bool]:
        kept = sum(1 << at for at in lowered)
        return (yield from tree.fits(self._demands.without(dropped & ~kept, lowered)))

    def keeps(self, tree: TreeProblem, kept: Kept, lowered: Lowered, gone: Groups) -> Work[bool]:
        """Whether the tree can keep these at once, with nothing but these groups gone."""
        dropped = self._demands.droppable & ~kept & ~sum(1 << at for at in lowered)
        partial = self._demands.without_groups(dropped, lowered, gone)
        return (yield from tree.fits(partial))

    def _last_of_groups(self, dropped: Kept, most: int) -> Kept:
        """The constraints of groups that have at most so many left: without any they are gone.

        No conflict tells of that: see `Demands.without_groups`.
        """
        found: Kept = 0
        for own in self._demands.group_bits:
            left = own & ~dropped
            found |= left if left.bit_count() <= most else 0
        return found

    def _conflict(self, tree: TreeProblem, dropped: Kept, lowered: Lowered) -> Work[Kept]:
        """Constraints of those not dropped that the tree cannot keep at once; none could be left.

        Nothing if the amount cannot even be lowered. All of them where only a provider is missing
        that went with what was dropped: that is no conflict, and anything may help.
        """
        droppable, gone = self._demands.droppable, self._demands.bare(dropped)
        known = self._known.setdefault(gone, []) if not lowered else []
        for one in known:
            if not one & dropped and not (yield from self.keeps(tree, one, lowered, gone)):
                return one
        if not (yield from self.keeps(tree, 0, lowered, gone)):
            return 0
        if (yield from self.keeps(tree, droppable & ~dropped, lowered, gone)):
            return droppable & ~dropped
        kept = list(numbers_in(droppable & ~dropped))
        conflict = yield from QuickXplain(self, tree, lowered, gone).explain(0, kept)
        known.insert(0, conflict)
        return conflict

    def grown(self, tree: TreeProblem) -> Work[Kept | None]:
        """A set without which the tree fits, with as little as is needed in this order."""
        droppable = self._demands.droppable
        dropped = yield from self._shrink(tree, droppable, {})
        if self._amounts & ~dropped:
            return dropped
        for lowered in self._ways_to_ask(droppable):
            if (yield from self._fits(tree, droppable, lowered)):
                return (yield from self._shrink(tree, droppable, lowered))
        return None

    def _shrink(self, tree: TreeProblem, dropped: Kept, lowered: Lowered) -> Work[Kept]:
        for at in numbers_in(dropped):
            less = dropped & ~(1 << at)
            if at not in lowered and (yield from self._fits(tree, less, lowered)):
                dropped = less
            yield
        return dropped


class QuickXplain:
    """One conflict of a tree, by halves."""

    def __init__(
        self, conflicts: Conflicts, tree: TreeProblem, lowered: Lowered, gone: Groups
    ) -> None:
        self._conflicts, self._tree = conflicts, tree
        self._lowered, self._gone = lowered, gone

    def explain(self, given: Kept, numbers: list[int], *, grown: bool = False) -> Work[Kept]:
        """The part of `numbers` that is in conflict with what is given."""
        if grown and not (
            yield from self._conflicts.keeps(self._tree, given, self._lowered, self._gone)
        ):
            return 0
        if len(numbers) == 1:
            return 1 << numbers[0]
        yield
        half = len(numbers) // 2
        first, second = numbers[:half], numbers[half:]
        of_first = sum(1 << at for at in first)
        late = yield from self.explain(given | of_first, second, grown=True)
        early = yield from self.explain(given | late, first, grown=bool(late))
        return late | early
