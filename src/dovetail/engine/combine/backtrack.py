"""Backtracking with forward pruning: the combinations of one tree, depth first.

The combiner runs one per distinct offer. Slots are filled one after the other; a choice that breaks
a rule is dropped with all that would follow, and rules look ahead: they refuse a choice after which
the slots to come cannot make up for what is missing. A position (slot, state of the rules) from
which nothing was found is a dead end and is not entered again. It ends since each level has
finitely many options; at worst it tries all of them, so it yields every so many choices. Levels are
kept on a stack of its own, so their number is not bounded by that of Python's calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dovetail.engine.combine.rules import Rule, State

Combination = tuple[int, ...]
"""The option chosen for each slot."""

Combinations = Iterator[Combination | None]
"""None now and then, when much was tried and nothing found: a mere yield."""

QUESTIONS_PER_YIELD = 1024
"""Put to rules before it yields, so that the caller can look at the clock."""

MOST_DEAD_END_BYTES = 8 * 2**20
"""What is remembered of dead ends; beyond that all are forgotten, and found again if need be."""

BYTES_PER_DEAD_END = 300
BYTES_PER_MEMBER = 40


class Backtracking:
    """The slots of one tree, and the rules between them."""

    def __init__(
        self, order: Sequence[int], steps: Sequence[Sequence[int]], rules: Sequence[Rule]
    ) -> None:
        """The slots in the order in which they are filled, and the options of each of them."""
        self._steps, self._rules = steps, rules
        self._place = [0] * len(order)
        for place, at in enumerate(order):
            self._place[at] = place
        self._dead_ends: set[tuple[int, State]] = set()
        self._dead_end_bytes = 0
        self._questions = 0

    def combinations(self) -> Combinations:
        levels = [Level(self._steps[0], tuple(rule.start for rule in self._rules))]
        while levels:
            level = levels[-1]
            option = next(level.options, None)
            if option is None:
                self._leave(levels)
                continue
            level.option = option
            self._questions += len(self._rules)
            if self._questions >= QUESTIONS_PER_YIELD:
                self._questions = 0
                yield None
            after = self._extend(level.state, len(levels) - 1, option)
            if after is None:
                continue
            if len(levels) == len(self._steps):
                level.found = True
                yield tuple([levels[place].option for place in self._place])
            elif (len(levels), after) not in self._dead_ends:
                levels.append(Level(self._steps[len(levels)], after))

    def _leave(self, levels: list[Level]) -> None:
        """Go back one level, and remember it if it led nowhere."""
        level = levels.pop()
        if not level.found:
            self._dead_end_bytes += BYTES_PER_DEAD_END + BYTES_PER_MEMBER * members(level.state)
            if self._dead_end_bytes > MOST_DEAD_END_BYTES:
                self._dead_ends.clear()
                self._dead_end_bytes = 0
            self._dead_ends.add((len(levels), level.state))
        elif levels:
            levels[-1].found = True

    def _extend(self, state: State, step: int, option: int) -> State:
        after = []
        for rule, before in zip(self._rules, state, strict=True):
            remembered = rule.extend(before, step, option)
            if remembered is None:
                return None
            after.append(remembered)
        return tuple(after)


class Level:
    """A slot that is being filled: the options left to try, and the state of the rules before."""

    __slots__ = ("found", "option", "options", "state")

    def __init__(self, options: Sequence[int], state: State) -> None:
        self.options, self.state = iter(options), state
        self.option = 0
        self.found = False


def members(state: State) -> int:
    """How many values a state is made of, about."""
    return sum(len(part) if isinstance(part, tuple | frozenset) else 1 for part in state)
