"""Walks through the combinations of one tree, depth first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dovetail.engine.combine.rules import Rule, State

Combination = tuple[int, ...]
"""The option chosen for each slot."""

Combinations = Iterator[Combination | None]
"""None now and then, when much was tried and nothing found: a sign of life."""

PULSE = 1024


class Walk:
    """The slots of one tree, and the rules between them.

    A choice that breaks a rule is dropped at once with all that would follow; a position found
    hopeless once is recognised when it comes again.
    """

    def __init__(
        self, order: Sequence[int], steps: Sequence[list[int]], rules: Sequence[Rule]
    ) -> None:
        """The slots in the order in which they are filled, and the options of each of them."""
        self._steps, self._rules = steps, rules
        self._place = [order.index(at) for at in range(len(order))]
        self._hopeless: set[tuple[int, State]] = set()
        self._choices = 0

    def run(self) -> Combinations:
        return self._from(0, tuple(rule.start for rule in self._rules), ())

    def _from(self, step: int, state: State, chosen: Combination) -> Combinations:
        if step == len(self._steps):
            yield tuple([chosen[place] for place in self._place])
            return
        if (step, state) in self._hopeless:
            return
        found = False
        for option in self._steps[step]:
            self._choices += 1
            if self._choices % PULSE == 0:
                yield None
            after = self._extend(state, step, option)
            if after is not None:
                for combination in self._from(step + 1, after, (*chosen, option)):
                    found = found or combination is not None
                    yield combination
        if not found:
            self._hopeless.add((step, state))

    def _extend(self, state: State, step: int, option: int) -> State:
        after = []
        for rule, before in zip(self._rules, state, strict=True):
            remembered = rule.extend(before, step, option)
            if remembered is None:
                return None
            after.append(remembered)
        return tuple(after)
