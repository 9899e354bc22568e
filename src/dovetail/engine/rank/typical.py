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
        chosen, covered = [], 0
        for request, count in ordered[:MOST_KINDS]:
            if 100 * covered >= wanted:
                break
            chosen.append((request, count))
            covered += count
        return cls(tuple(chosen), tuple(ordered[len(chosen) : MOST_SEEN]))


NOTHING_TYPICAL = Typical()
