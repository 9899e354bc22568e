"""A dictionary that forgets what was used least recently, so that it never grows beyond a size."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class BoundedCache(Generic[T]):
    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[bytes, T] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes) -> T | None:
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: bytes, value: T) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def drop(self, key: bytes) -> None:
        self._entries.pop(key, None)
