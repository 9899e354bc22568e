"""The candidates of a request, best first.

Sorted by total score. Where scores are equal trees take turns, in their fixed order, as they do
without ranking: the best of each tree, then the second of each; in a tree nuances of the policies
decide, then the order in which the search finds candidates.
"""

from __future__ import annotations

from collections.abc import Generator

import msgspec
import numpy as np

from dovetail.core.errors import DovetailError
from dovetail.core.request import Request
from dovetail.engine.combine.round_robin import Block, Blocks
from dovetail.engine.rank.best_per_tree import LOOKED_AT, leaders
from dovetail.engine.rank.candidate_tree import homes
from dovetail.engine.rank.policies.policy import Numbers
from dovetail.engine.rank.ranking import Ranking
from dovetail.engine.rank.scores import Scores, Verdict
from dovetail.engine.rank.typical import Typical
from dovetail.engine.search import Search, search
from dovetail.engine.snapshot import Snapshot

MOST_RANKED = 250_000
"""What is held at once to be sorted."""

Steps = Generator[None, None, "Found"]
"""Gives way now and then; returns what was found."""


class TooManyToRank(DovetailError):
    """There are more candidates than can be sorted in one go."""


class Found(msgspec.Struct, frozen=True, eq=False):
    rows: Block
    scores: Numbers
    """The total of each candidate."""
    parts: dict[str, Numbers]
    """By policy, the points of each candidate before they are weighed."""

    def told(self) -> list[dict[str, int]]:
        """For each candidate the total and the points of each policy."""
        columns = {"total": self.scores, **self.parts}
        lines = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, line, strict=True)) for line in lines]


class RankedSearch(Search):
    """A search whose candidates come best first, as the request says."""

    def __init__(self, snapshot: Snapshot, request: Request, typical: Typical) -> None:
        super().__init__(snapshot, request)
        self._ranking = Ranking(request.rank, typical)
        self.scores: list[dict[str, int]] = []
        """Of each candidate, once they were found."""

    def blocks(self) -> Blocks:
        found = yield from ranked(self, self._ranking, self.request.limit)
        self.scores = found.told()
        if len(found.rows):
            yield found.rows


def best(snapshot: Snapshot, request: Request, ranking: Ranking, limit: int | None = None) -> Found:
    steps = ranked(search(snapshot, request), ranking, limit)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            found: Found = stop.value
            return found


def ranked(searching: Search, ranking: Ranking, limit: int | None) -> Steps:
    """The `limit` best, in steps, so that a caller can look at the clock."""
    scores = Scores(searching, ranking)
    if ranking.plain:
        lines = yield from gathered(searching, searching.limited(limit))
        verdict = scores.judge(lines)
        return Found(lines, verdict.totals, verdict.parts)
    if limit is None or any(len(slot.shared_tree) for slot in searching.slots):
        lines = yield from gathered(searching, searching.everything())
    elif not len(searching.trees):
        lines = nothing(searching)
    else:
        tops = yield from leaders(searching, ranking, scores)
        chosen = tops.best(searching.trees, limit)
        if limit == 1 and tops.exact:
            return Found(tops.lines[chosen], tops.totals[chosen], tops.parts_of(chosen, ranking))
        blocks = searching.first(np.sort(chosen), max(LOOKED_AT, limit))
        lines = yield from gathered(searching, blocks)
    verdict = scores.judge(lines)
    order = arranged(searching.snapshot, lines, verdict)[:limit]
    parts = {name: points[order] for name, points in verdict.parts.items()}
    return Found(lines[order], verdict.totals[order], parts)


def gathered(searching: Search, blocks: Blocks) -> Generator[None, None, Block]:
    found, count = [], 0
    for block in blocks:
        if block is not None and len(block):
            found.append(block)
            count += len(block)
        if count > MOST_RANKED:
            raise TooManyToRank(f"There are more than {MOST_RANKED} allocation candidates to rank")
        yield
    return np.concatenate(found) if found else nothing(searching)


def nothing(searching: Search) -> Block:
    return np.empty((0, len(searching.slots)), np.int32)


def arranged(snapshot: Snapshot, lines: Block, verdict: Verdict) -> Numbers:
    """The order of the candidates; those of a tree come in the order in which they were found."""
    if not len(lines):
        return np.empty(0, np.int64)
    roots = snapshot.tree_root_id.values[homes(snapshot, lines)]
    order = np.lexsort((-verdict.nuances, -verdict.totals, roots))
    totals, roots = verdict.totals[order], roots[order]
    places = np.arange(len(lines))
    fresh = np.ones(len(lines), np.bool_)
    fresh[1:] = (totals[1:] != totals[:-1]) | (roots[1:] != roots[:-1])
    turns = places - np.maximum.accumulate(np.where(fresh, places, 0))
    found: Numbers = order[np.lexsort((roots, turns, -totals))]
    return found
