"""Bounded cache of what ranking works out, kept with the snapshot for the requests to come.

Policies and the best per tree keep arrays here whose entries hold as long as a tree's version does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dovetail.core.bounded_cache import SizedCache
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.work import Work

T = TypeVar("T")

RANKING = "ranking"
MOST_BYTES = 64 * 2**20
"""Of all entries together."""

SMALL_ENTRY = 4096
"""Bytes that an entry is reckoned with which does not tell its size (`nbytes`)."""


def cache_entry(snapshot: Snapshot, key: Hashable, make: Callable[[], T]) -> T:
    """The entry under that key, made if it is missing; the least recently used ones are dropped."""
    entries: SizedCache[Hashable, T] = snapshot.cached(RANKING, _no_entries)
    found = entries.get(key)
    if found is None:
        found = make()
    # Each time anew: entries grow with the fleet.
    entries.put(key, found, SMALL_ENTRY + getattr(found, "nbytes", 0))
    return found


def entry_in_steps(snapshot: Snapshot, key: Hashable, make: Callable[[], Work[T]]) -> Work[T]:
    """The same for what takes long to make; of several who do at a time the first one's stays."""
    entries: SizedCache[Hashable, T] = snapshot.cached(RANKING, _no_entries)
    found = entries.get(key)
    if found is None:
        found = yield from make()
    made = found
    return cache_entry(snapshot, key, lambda: made)


def _no_entries() -> SizedCache[Hashable, Any]:
    return SizedCache(MOST_BYTES)


def at_once(found: T) -> Work[T]:
    """What is there already, for those who take work in steps."""
    yield from ()
    return found


def names_version(snapshot: Snapshot) -> int:
    """A number that is another one when the names of classes or traits are others."""
    return snapshot.names_version


def layout_version(snapshot: Snapshot) -> Hashable:
    """A value that is another one when the providers or what they have are others."""
    return names_version(snapshot), snapshot.parent.size, snapshot.live_rows


def with_zeros(numbers: NDArray[Any], by: int) -> NDArray[Any]:
    """With so many zeros more at the end."""
    return np.concatenate((numbers, np.zeros((by, *numbers.shape[1:]), numbers.dtype)))
