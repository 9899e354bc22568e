"""Journal of changes: which trees and rows of a snapshot changed, in order, bounded.

The snapshot notes; whoever keeps something worked out from its columns asks what changed since and
works out that much again. What lies too far back is forgotten: then everything may have changed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.signedinteger[Any]]

MOST_NOTES = 4096
"""Remembered at least; twice as many at most."""


class ChangeNote(NamedTuple):
    tree: int
    first: int
    last: int
    """The rows from first up to last (exclusive) came, went, or have other amounts free."""
    is_usage: bool
    """Whether nothing but those amounts changed."""


class Journal:
    def __init__(self) -> None:
        self._notes: list[ChangeNote] = []
        self._forgotten = 0

    @property
    def mark(self) -> int:
        """Where the journal stands."""
        return self._forgotten + len(self._notes)

    def note(self, tree: int, first: int, last: int, *, is_usage: bool = False) -> None:
        self._notes.append(ChangeNote(tree, first, last, is_usage))
        if len(self._notes) > 2 * MOST_NOTES:
            del self._notes[:MOST_NOTES]
            self._forgotten += MOST_NOTES

    def note_all(self, trees: Numbers, firsts: Numbers, lasts: Numbers) -> None:
        """Note many trees; more than are remembered count as everything."""
        if len(trees) > MOST_NOTES:
            self._forgotten = self.mark + 1
            self._notes = []
            return
        for each in zip(trees.tolist(), firsts.tolist(), lasts.tolist(), strict=True):
            self.note(*each)

    def since(self, mark: int) -> set[ChangeNote] | None:
        """What was noted since the journal stood there; None if that is not known any more."""
        if mark < self._forgotten:
            return None
        return set(self._notes[mark - self._forgotten :])
