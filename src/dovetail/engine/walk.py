"""Walks through the combinations of one tree, and keeps what it found for all trees alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dovetail.engine.rules import Rule, State

Combination = tuple[int, ...]
"""The option chosen for each slot."""

Combinations = Iterator[Combination | None]
"""None now and then, when much was tried and nothing found: a sign of life."""

PULSE = 1024


class Pattern:
    """Combinations shared by trees that are alike: found once, when somebody wants them."""

    def __init__(self, walk: Combinations) -> None:
        self._walk = walk
        self._ended = False
        self.found: list[Combination] = []

    def reach(self, count: int) -> bool:
        """Find so many, or all there are; False: not yet, ask again."""
        while len(self.found) < count and not self._ended:
            try:
                combination = next(self._walk)
            except StopIteration:
                self._ended = True
                break
            if combination is None:
                return False
            self.found.append(combination)
        return True

    def may_have(self, count: int) -> bool:
        return len(self.found) >= count or not self._ended


class Walk:
    """A depth-first walk over the slots of one tree.

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
