"""Bounded cache of what ranking works out, kept with the snapshot for the requests to come.

Policies and the best per tree keep arrays here whose entries hold as long as a tree's version does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dovetail.engine.snapshot import Snapshot

T = TypeVar("T")

RANKING = "ranking"
MOST_CACHED_NUMBERS = 1_000_000
LEAST_ENTRIES = 16
"""Bounds on what is kept; most entries have a few numbers for each tree."""


def cache_entry(snapshot: Snapshot, key: Hashable, make: Callable[[], T]) -> T:
    """The entry under that key, made if it is missing; the least recently used ones are dropped."""
    entries: dict[Any, Any] = snapshot.cache.setdefault(RANKING, {})
    snapshot.cache.move_to_end(RANKING)
    found: T | None = entries.pop(key, None)
    if found is not None:
        entries[key] = found
    else:
        found = entries[key] = make()
        most = max(MOST_CACHED_NUMBERS // max(snapshot.tree_size.size, 1), LEAST_ENTRIES)
        while len(entries) > most:
            del entries[next(iter(entries))]
    return found


class NamesVersion:
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


def names_version(snapshot: Snapshot) -> int:
    """A number that is another one when the names of classes or traits are others."""
    return cache_entry(snapshot, "names", NamesVersion).number(snapshot)


def layout_version(snapshot: Snapshot) -> Hashable:
    """A value that is another one when the providers or what they have are others."""
    return names_version(snapshot), snapshot.parent.size, snapshot.live_rows


def with_zeros(numbers: NDArray[Any], by: int) -> NDArray[Any]:
    """With so many zeros more at the end."""
    return np.concatenate((numbers, np.zeros((by, *numbers.shape[1:]), numbers.dtype)))
