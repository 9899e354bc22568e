"""What ranking keeps from one request for the next, in the snapshot's notes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dovetail.engine.snapshot import Snapshot

T = TypeVar("T")

RANKING = "ranking"
KEPT_NUMBERS = 1_000_000
FEWEST_KEPT = 16
"""Bounds on what is kept; most notes have a few numbers for each tree."""


def kept(snapshot: Snapshot, key: Hashable, make: Callable[[], T]) -> T:
    """The note under that key, made if it is missing; those not asked for longest are dropped."""
    notes: dict[Any, Any] = snapshot.notes.setdefault(RANKING, {})
    snapshot.notes.move_to_end(RANKING)
    found: T | None = notes.pop(key, None)
    if found is not None:
        notes[key] = found
    else:
        found = notes[key] = make()
        most = max(KEPT_NUMBERS // max(snapshot.tree_size.size, 1), FEWEST_KEPT)
        while len(notes) > most:
            del notes[next(iter(notes))]
    return found


class NamesSeen:
    """Counts how often names changed, since they are told anew more often than that."""

    def __init__(self) -> None:
        self._version = -1
        self._names: tuple[dict[str, int], dict[str, int]] = {}, {}
        self._changes = 0

    def number(self, snapshot: Snapshot) -> int:
        if snapshot.names_version != self._version:
            self._version = snapshot.names_version
            told = snapshot.class_ids, snapshot.trait_ids
            if told != self._names:
                self._names, self._changes = told, self._changes + 1
        return self._changes


def names(snapshot: Snapshot) -> int:
    """A number that is another one when the names of classes or traits are others."""
    return kept(snapshot, "names", NamesSeen).number(snapshot)


def layout(snapshot: Snapshot) -> Hashable:
    """A value that is another one when the providers or what they have are others."""
    return names(snapshot), snapshot.parent.size, snapshot.live_rows


def longer(numbers: NDArray[Any], by: int) -> NDArray[Any]:
    """With so many zeros more at the end."""
    return np.concatenate((numbers, np.zeros((by, *numbers.shape[1:]), numbers.dtype)))
