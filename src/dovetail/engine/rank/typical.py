"""Typical requests: the most frequent ones that a fleet gets, up to nearly all of them.

`service` counts requests and hands the summary to rankings.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from dovetail.core.request import Request
from dovetail.engine.request_key import request_key

COVERED = 95
"""Percent of the requests seen that the summary accounts for."""

MOST_KINDS = 256

MOST_NEEDS = 4096
"""Of all these requests together: whoever asks chooses how many a request has, and measuring a tree
costs what there are."""

MOST_SEEN = 1024
"""Kinds in all, with those that come rarely."""


class Typical:
    """Requests and how often each was seen, most frequent first; compared by identity."""

    def __init__(
        self,
        requests: tuple[tuple[Request, int], ...] = (),
        rare: tuple[tuple[Request, int], ...] = (),
    ) -> None:
        self.requests = requests
        self.rare = rare
        """The others that were seen: each comes rarely, but may ask for much."""

    @classmethod
    def of(cls, counted: Iterable[tuple[Request, int]]) -> Typical:
        """The summary of these requests; those that ask for the same are counted together."""
        seen: dict[Hashable, tuple[Request, int]] = {}
        for request, count in counted:
            key = request_key(request)
            first, before = seen.get(key, (request, 0))
            seen[key] = first, before + count
        # Sorting is stable: of two that are equally frequent the one seen first leads.
        ordered = sorted(seen.values(), key=lambda each: -each[1])
        wanted = COVERED * sum(count for _, count in ordered)
        chosen, rare, covered = Chosen(MOST_KINDS), [], 0
        for request, count in ordered:
            if 100 * covered < wanted and chosen.add(request, count):
                covered += count
            else:
                rare.append((request, count))
        return cls(tuple(chosen.requests), tuple(rare[: MOST_SEEN - len(chosen.requests)]))


class Chosen:
    """Requests, so many and `MOST_NEEDS` at the most: one with too many leaves room for others."""

    def __init__(self, most: int) -> None:
        self._most, self._needs = most, 0
        self.requests: list[tuple[Request, int]] = []

    def add(self, request: Request, count: int) -> bool:
        """Whether there is a place for it."""
        needs = self._needs + most_needs(request)
        if len(self.requests) == self._most or needs > MOST_NEEDS:
            return False
        self.requests.append((request, count))
        self._needs = needs
        return True


def most_needs(request: Request) -> int:
    """How many needs it has at the most: a group of its own is one, else each class and trait."""
    return sum(
        1 if group.suffix else len(group.resources) + len(group.required)
        for group in request.groups
    )


NOTHING_TYPICAL = Typical()
