"""Frequency sketch of requests: what the fleet is typically asked for; rankings weigh by it.

Learned from the requests that found a place. Bounded, in number and in what they name all
together: rare requests are forgotten first, old ones count ever less. The summary that rankings use
is made anew only now and then, so that what they keep between requests stays of use.
"""

from __future__ import annotations

from collections.abc import Hashable

from dovetail.core.request import Request
from dovetail.core.selectors.selector import Selector
from dovetail.engine.rank.typical import NOTHING_TYPICAL, Typical
from dovetail.engine.request_key import request_key

RENEWED_AFTER = 1024
HALVED_AT = 65_536
MOST_SHAPES = 1024
MOST_NAMES = 100_000
"""Of groups, classes, traits, aggregates and conditions in all requests that are remembered: a
caller chooses how large its requests are. They take some 20 MB."""
WORTH_CHANGING = 50
"""Thousandths of all requests that have to be others than they were."""


class TypicalRequests:
    """Used on the event loop only."""

    def __init__(self, given: Typical | None = None) -> None:
        """With typical requests given, nothing is learned."""
        self._given = given
        self._learned = NOTHING_TYPICAL
        self._due = False
        self._counts: dict[Hashable, tuple[Request, int]] = {}
        self._seen = self._names = 0

    @property
    def typical(self) -> Typical:
        if self._given is not None:
            return self._given
        if self._due:
            self._due = False
            fresh = Typical.of(self._counts.values())
            if difference(shares(fresh), shares(self._learned)) > WORTH_CHANGING:
                self._learned = fresh
        return self._learned

    def learn(self, request: Request) -> None:
        """From a request that found a place."""
        if self._given is not None or any(group.in_tree for group in request.groups):
            return
        key = request_key(request)
        first, count = self._counts.get(key, (request, 0))
        if not count:
            self._names += names_in(request)
        self._counts[key] = first, count + 1
        self._seen += 1
        if len(self._counts) > MOST_SHAPES or self._seen >= HALVED_AT:
            self._halve()
        while self._names > MOST_NAMES:
            self._halve()
        # The first few are learned from at once: a new server should not be blind for long.
        if self._seen % RENEWED_AFTER == 0 or self._seen & (self._seen - 1) == 0:
            self._due = True

    def _halve(self) -> None:
        """Let every request count half; those seen once are forgotten."""
        halves = {key: (first, count // 2) for key, (first, count) in self._counts.items()}
        self._counts = {key: each for key, each in halves.items() if each[1]}
        self._seen = sum(count for _, count in self._counts.values())
        self._names = sum(names_in(first) for first, _ in self._counts.values())


def names_in(request: Request) -> int:
    """How many names a request is made of: what it costs to remember it."""
    sets = [request.root_required, request.root_member_of]
    flat = [request.isolated, request.root_forbidden, request.root_not_member_of]
    for group in request.groups:
        sets += [group.required, group.member_of]
        flat += [group.forbidden, group.not_member_of]
    return (
        len(request.groups)
        + sum(len(each.together) + len(each.apart) for each in request.affinities)
        + sum(len(each.resources) + len(each.classes) for each in request.groups)
        + sum(values_in(selector) for each in request.groups for selector in each.selectors)
        + sum(len(names) for alternatives in sets for names in alternatives)
        + sum(map(len, flat))
    )


def values_in(selector: Selector) -> int:
    return sum(1 + len(condition.values) for branch in selector for condition in branch)


def shares(typical: Typical) -> dict[Hashable, int]:
    """How often each request comes, in thousandths of all."""
    weight = sum(count for _, count in typical.requests)
    return {request_key(request): 1000 * count // weight for request, count in typical.requests}


def difference(one: dict[Hashable, int], other: dict[Hashable, int]) -> int:
    return sum(abs(one.get(key, 0) - other.get(key, 0)) for key in one.keys() | other.keys())
