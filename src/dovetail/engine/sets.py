"""Interned sets: providers with the same traits (or aggregates) share one number.

A fleet has many providers and few distinct sets, so a condition on traits is decided once per
distinct set, and then looked up for all providers in one vector operation.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Generic, TypeVar

import numpy as np

from dovetail.engine.columns import Mask

T = TypeVar("T", bound=Hashable)

EMPTY = 0


class Sets(Generic[T]):
    def __init__(self) -> None:
        self.members: list[frozenset[T]] = [frozenset()]
        self._numbers: dict[frozenset[T], int] = {frozenset(): EMPTY}

    def number(self, members: Iterable[T]) -> int:
        key = frozenset(members)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.members)
            self.members.append(key)
        return found

    def copy(self) -> Sets[T]:
        twin = Sets[T]()
        twin.members = list(self.members)
        twin._numbers = dict(self._numbers)
        return twin

    def meeting(self, required: Iterable[Collection[T]], forbidden: Collection[T] = ()) -> Mask:
        """By number: the set has one of each collection required and none of those forbidden."""
        wanted = [frozenset(alternatives) for alternatives in required]
        banned = frozenset(forbidden)
        return np.fromiter(
            (
                members.isdisjoint(banned) and not any(map(members.isdisjoint, wanted))
                for members in self.members
            ),
            dtype=np.bool_,
            count=len(self.members),
        )
