"""Constraints between the providers chosen for different slots, one rule a class.

Backtracking asks them at each choice. A rule is asked slot by slot whether a row may be added to
what was chosen before. What it has to remember is a small hashable value handed from step to step,
so backtracking can also recognise positions it has already found to be dead ends. Rows are bits of
an integer where rules reason about sets.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

State = Any
"""Hashable; None means: no."""


class Rule(Protocol):
    @property
    def start(self) -> Hashable: ...

    def extend(self, state: State, step: int, row: int) -> State:
        """The state after `row` was chosen at `step`, or None if it may not be."""
        ...


class CapacityRule:
    """Slots that draw the same class from the same row do so within what it has left."""

    def __init__(
        self,
        wanted: Sequence[Mapping[str, int]],
        headroom: Mapping[tuple[int, str], int],
    ) -> None:
        """`wanted`: by step, the amounts of contended classes; `headroom`: by row and class."""
        self._wanted = [tuple(amounts.items()) for amounts in wanted]
        self._position = {place: at for at, place in enumerate(headroom)}
        self._limits = tuple(headroom.values())
        self.start = (0,) * len(self._limits)

    def extend(self, state: State, step: int, row: int) -> State:
        for name, amount in self._wanted[step]:
            at = self._position[row, name]
            total = state[at] + amount
            if total > self._limits[at]:
                return None
            state = (*state[:at], total, *state[at + 1 :])
        return state


class IsolationRule:
    """The row of an isolated group serves no other suffixed group."""

    def __init__(self, isolated: Sequence[bool | None], bits: Mapping[int, int]) -> None:
        """`isolated`: by step, None for the unsuffixed group, which is never isolated from."""
        self._isolated = isolated
        self._bits = bits
        self.start = (0, 0)

    def extend(self, state: State, step: int, row: int) -> State:
        isolated = self._isolated[step]
        if isolated is None:
            return state
        used, closed = state
        bit = self._bits[row]
        if (used if isolated else closed) & bit:
            return None
        return used | bit, closed | bit if isolated else closed


class SubtreeRule:
    """Rows of some groups are all below one of them; rows of others are not below that one."""

    def __init__(
        self,
        together: Sequence[bool],
        apart: Sequence[bool],
        options: Sequence[int],
        ancestry: Mapping[int, int],
        bits: Mapping[int, int],
    ) -> None:
        """By step: membership, and the bits of the options; by row: bits of itself and above."""
        self._together, self._apart = together, apart
        self._ancestry, self._bits = ancestry, bits
        self._ahead = [0] * (len(options) + 1)
        for step in range(len(options) - 1, -1, -1):
            coming = options[step] if together[step] else 0
            self._ahead[step] = self._ahead[step + 1] | coming
        self._decided = max(step for step, member in enumerate(together) if member)
        self.start = (-1, 0, 0)

    def extend(self, state: State, step: int, row: int) -> State:
        """State: ancestors common to the rows so far, those rows, everything above apart rows."""
        common, chosen, above_apart = state
        if self._together[step]:
            common &= self._ancestry[row]
            chosen |= self._bits[row]
            # The top has to be among the rows chosen or still to be chosen.
            if not common & (chosen | self._ahead[step + 1]):
                return None
        elif self._apart[step]:
            above_apart |= self._ancestry[row]
        else:
            return state
        if step >= self._decided and common & chosen & above_apart:
            return None
        return common, chosen, above_apart


class CollectiveTraitsRule:
    """The rows of the unsuffixed group have the required traits between them."""

    def __init__(
        self,
        spread: Sequence[bool],
        options: Sequence[Sequence[int]],
        meets: Mapping[int, int],
        requirements: int,
    ) -> None:
        """By step: whether the slot belongs to the group, and its rows; by row: what it meets."""
        self._spread, self._meets = spread, meets
        self._ahead = [0] * (len(options) + 1)
        for step in range(len(options) - 1, -1, -1):
            coming = 0
            if spread[step]:
                for row in options[step]:
                    coming |= meets[row]
            self._ahead[step] = self._ahead[step + 1] | coming
        self._all = (1 << requirements) - 1
        self.start = 0

    def extend(self, state: State, step: int, row: int) -> State:
        if not self._spread[step]:
            return state
        met = state | self._meets[row]
        return met if met | self._ahead[step + 1] == self._all else None


class OneProviderPerTreeRule:
    """Resources come from at most one row of each tree."""

    def __init__(self, giving: Sequence[bool], tree_of: Mapping[int, int]) -> None:
        self._giving, self._tree_of = giving, tree_of
        self.start: frozenset[int] = frozenset()

    def extend(self, state: State, step: int, row: int) -> State:
        if not self._giving[step] or row in state:
            return state
        tree = self._tree_of[row]
        if any(self._tree_of[other] == tree for other in state):
            return None
        return state | {row}
