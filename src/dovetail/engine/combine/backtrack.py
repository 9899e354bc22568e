"""Backtracking with forward pruning: the combinations of one tree, depth first.

The combiner runs one per distinct offer. Slots are filled one after the other; a choice that breaks
a rule is dropped with all that would follow, and rules look ahead: they refuse a choice after which
the slots to come cannot make up for what is missing. A position (slot, state of the rules) from
which nothing was found is a dead end and is not entered again. It ends since each level has
finitely many options; at worst it tries all of them, so it yields every so many choices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dovetail.engine.combine.rules import Rule, State

Combination = tuple[int, ...]
"""The option chosen for each slot."""

Combinations = Iterator[Combination | None]
"""None now and then, when much was tried and nothing found: a mere yield."""

CHOICES_PER_YIELD = 1024
"""Tried before it yields, so that the caller can look at the clock."""


class Backtracking:
    """The slots of one tree, and the rules between them."""

    def __init__(
        self, order: Sequence[int], steps: Sequence[list[int]], rules: Sequence[Rule]
    ) -> None:
        """The slots in the order in which they are filled, and the options of each of them."""
        self._steps, self._rules = steps, rules
        self._place = [order.index(at) for at in range(len(order))]
        self._dead_ends: set[tuple[int, State]] = set()
        self._choices = 0

    def combinations(self) -> Combinations:
        return self._from(0, tuple(rule.start for rule in self._rules), ())

    def _from(self, step: int, state: State, chosen: Combination) -> Combinations:
        if step == len(self._steps):
            yield tuple([chosen[place] for place in self._place])
            return
        if (step, state) in self._dead_ends:
            return
        found = False
        for option in self._steps[step]:
            self._choices += 1
            if self._choices % CHOICES_PER_YIELD == 0:
                yield None
            after = self._extend(state, step, option)
            if after is not None:
                for combination in self._from(step + 1, after, (*chosen, option)):
                    found = found or combination is not None
                    yield combination
        if not found:
            self._dead_ends.add((step, state))

    def _extend(self, state: State, step: int, option: int) -> State:
        after = []
        for rule, before in zip(self._rules, state, strict=True):
            remembered = rule.extend(before, step, option)
            if remembered is None:
                return None
            after.append(remembered)
        return tuple(after)
