"""Bounded cache: a dictionary that forgets what was used least recently (LRU).

Authentication remembers tokens in it, the engine what selectors select: neither may grow with
what callers make up. Where callers also decide how large an entry is, the bound is in bytes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def drop(self, key: K) -> None:
        self._entries.pop(key, None)

    def copy(self) -> BoundedCache[K, V]:
        twin: BoundedCache[K, V] = BoundedCache(self._most)
        twin._entries = self._entries.copy()
        return twin


class SizedCache(Generic[K, V]):
    """As many entries as fit so many bytes; whoever puts one in says how large it is."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.size = 0
        """In bytes, of all entries."""

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        found = self._entries.get(key)
        if found is None:
            return None
        self._entries.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Keep it, or keep it on with another size; what is larger than all bytes is not kept."""
        self.drop(key)
        if size > self._most:
            return
        self._entries[key] = value, size
        self.size += size
        while self.size > self._most:
            _, (_, freed) = self._entries.popitem(last=False)
            self.size -= freed

    def drop(self, key: K) -> None:
        found = self._entries.pop(key, None)
        if found is not None:
            self.size -= found[1]
