"""States of trees: what a request is offered by a tree, remembered by all that it depends on.

Claims fill hosts that were bought alike, one after the other, so that a tree mostly comes into a
state that another was in before. `RequestOptions` asks here what it found there then, and need not
look at the tree's rows again. A state is told by the tree's shape, the sets of its rows and its
inventories of the classes that are asked for, byte by byte: exact, linear in the tree. Bounded by
bytes. Trees that share with others, or are asked for by name, have no states here.
"""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.core.bounded_cache import SizedCache
from dovetail.core.request import Request
from dovetail.engine.combine.patterns import UNKNOWN, TreePatterns
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.snapshot import Snapshot

StateKey = tuple[int | bytes, ...]
"""All of a tree that the answer depends on."""

MOST_STATE_BYTES = 2**20
"""Of the states of one shape of requests."""

BYTES_PER_STATE = 1024
"""What a state is reckoned with, beside the bytes of its key and rows."""


class TreeState:
    """What a tree offers in one state."""

    __slots__ = ("_number", "_patterns", "fits", "rows")

    def __init__(self, rows: tuple[bytes, ...], *, fits: bool) -> None:
        self.rows = rows
        """By number of the wish the rows that are as wished, counted from the tree's first."""
        self.fits = fits
        self._patterns: TreePatterns | None = None
        self._number = UNKNOWN

    def pattern_in(self, patterns: TreePatterns) -> int:
        """The number of its combinations there, if somebody found it out."""
        return self._number if self._patterns is patterns else UNKNOWN

    def learn_pattern(self, patterns: TreePatterns, number: int) -> None:
        self._patterns, self._number = patterns, number


class TreeStates:
    """The states in which trees were seen, for one shape of requests."""

    def __init__(self, request: Request) -> None:
        self._classes = sorted({name for group in request.groups for name in group.resources})
        self._are_told = all(group.in_tree is None for group in request.groups)
        self._states: SizedCache[StateKey, TreeState] = SizedCache(MOST_STATE_BYTES)
        self._to_learn: dict[int, TreeState] = {}

    @property
    def size(self) -> int:
        """In bytes, about."""
        return self._states.size

    def keys_of(self, snapshot: Snapshot, trees: RowNumbers) -> Iterator[StateKey]:
        """The states of trees; none if the request depends on more than states tell."""
        if self._are_told:
            for tree in trees.tolist():
                yield self._key_of(snapshot, tree)

    def _key_of(self, snapshot: Snapshot, tree: int) -> StateKey:
        start = int(snapshot.tree_start.values[tree])
        stop = start + int(snapshot.tree_size.values[tree])
        parts: list[int | bytes] = [int(snapshot.tree_shape.values[tree])]
        sets = (snapshot.traits, snapshot.aggregates, snapshot.attributes)
        parts += (column.values[start:stop].tobytes() for column in sets)
        for name in self._classes:
            inventories = snapshot.inventories_of(name)
            if inventories is None:
                continue
            rows = inventories.rows.values
            low, high = rows.searchsorted((rows.dtype.type(start), rows.dtype.type(stop)))
            parts.append((rows[low:high] - start).tobytes())
            parts += (column.values[low:high].tobytes() for column in inventories.columns()[2:])
        return tuple(parts)

    def find(self, key: StateKey) -> TreeState | None:
        return self._states.get(key)

    def add(self, key: StateKey, state: TreeState) -> None:
        size = sum(len(part) for part in (*key, *state.rows) if isinstance(part, bytes))
        self._states.put(key, state, size + BYTES_PER_STATE)

    # -- patterns --------------------------------------------------------------------------------

    def enter(self, patterns: TreePatterns, tree: int, state: TreeState) -> None:
        """A tree came into a state: tell what is known of its combinations there."""
        number = state.pattern_in(patterns)
        patterns.learn_one(tree, number)
        if number == UNKNOWN:
            self._to_learn[tree] = state

    def learn(self, patterns: TreePatterns) -> None:
        """Before trees leave their states: keep what searches have found out of them meanwhile."""
        for tree, state in self._to_learn.items():
            state.learn_pattern(patterns, patterns.of_one(tree))
        self._to_learn.clear()
