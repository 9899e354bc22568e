"""Interned sets: providers with the same traits (or aggregates) share one number."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import TypeVar

from dovetail.core.columns import Mask
from dovetail.core.interned import Interned

T = TypeVar("T", bound=Hashable)

EMPTY = 0


class InternedSets(Interned[frozenset[T]]):
    """Number 0 is the empty set. The engine never takes a set back: a fleet has few."""

    def __init__(self) -> None:
        super().__init__(frozenset())

    def number_of(self, members: Iterable[T]) -> int:
        return self.number(frozenset(members))

    def members(self, number: int) -> frozenset[T]:
        return self.keys[number] or frozenset()

    def meeting(self, required: Iterable[Collection[T]], forbidden: Collection[T] = ()) -> Mask:
        """By number: the set has one of each collection required and none of those forbidden."""
        wanted = frozenset(frozenset(alternatives) for alternatives in required)
        banned = frozenset(forbidden)

        def meets(members: frozenset[T]) -> bool:
            return members.isdisjoint(banned) and not any(map(members.isdisjoint, wanted))

        return self.decided((wanted, banned), meets)
