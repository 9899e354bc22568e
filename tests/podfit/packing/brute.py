"""Packing found by trying everything: pods are put on nodes one after another, in every order, each
where the table's own filters let it.

Written to be obviously right and nothing else. Of a position only the pods on each node matter, so
one that was seen before is not looked at again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import msgspec

from dovetail.podfit.objects import Pod
from dovetail.podfit.packing import PodsToPack
from dovetail.podfit.packing.answers import Assignment
from dovetail.podfit.pod_request import pod_request_of
from tests.podfit.building import Fleet

Kinds = Sequence[tuple[Pod, int]]
"""Pods, and how many of each."""
Position = frozenset[tuple[tuple[int, str], int]]
"""Kinds and nodes, and how many of the kind are there."""


def to_pack(kinds: Kinds) -> list[PodsToPack]:
    return [PodsToPack(pod_request_of(pod), count) for pod, count in kinds]


class Brute:
    """All positions that can be reached from an empty one."""

    def __init__(self, fleet: Fleet, kinds: Kinds, among: Collection[str] | None = None) -> None:
        self._fleet, self._kinds = fleet, kinds
        self._among = set(fleet.rows.names) if among is None else set(among)
        self._reached: set[Position] = set()
        self._grow(Counter())
        self._counts = {self._count(position) for position in self._reached}
        """How many of each kind were placed, in any way."""

    def fits(self, counts: Sequence[int] | None = None) -> bool:
        """So many of each kind, or as many as are asked for."""
        wanted = [count for _, count in self._kinds] if counts is None else counts
        return tuple(wanted) in self._counts

    def accepts(self, assignment: Assignment) -> bool:
        placed = {
            (kind, name): count for kind, on in enumerate(assignment) for name, count in on.items()
        }
        return frozenset(placed.items()) in self._reached

    def first_too_many(self) -> tuple[int, int]:
        """The first kind that does not fit beside all of those before it, and how many do."""
        counts = [count for _, count in self._kinds]
        kinds = len(counts)

        def least(full: int, more: int) -> list[int]:
            return [*counts[:full], more, *[0] * kinds][:kinds]

        full = max(full for full in range(kinds + 1) if self.fits(least(full, 0)))
        return full, max(n for n in range(counts[full] + 1) if self.fits(least(full, n)))

    def _grow(self, placed: Counter[tuple[int, str]]) -> None:
        position = frozenset(placed.items())
        if position in self._reached:
            return
        self._reached.add(position)
        there = self._count(position)
        for kind, (pod, count) in enumerate(self._kinds):
            if there[kind] < count:
                uid = f"packed-{sum(there)}"
                meta = msgspec.structs.replace(pod.metadata, uid=uid)
                one = msgspec.structs.replace(pod, metadata=meta)
                for name in self._fleet.fitting(one).split():
                    if name in self._among:
                        self._fleet.table.add_pod(one, name)
                        self._grow(placed + Counter([(kind, name)]))
                        self._fleet.table.remove_pod(uid)

    def _count(self, position: Position) -> tuple[int, ...]:
        found = [0] * len(self._kinds)
        for (kind, _), count in position:
            found[kind] += count
        return tuple(found)
