"""Ranking: the candidates of a request, best first.

Without a limit, or where trees share providers, all candidates are scored and sorted, up to a
bound. With one, best-first with a bound kept per tree: the best total of each tree is known from
request to request (`best_per_tree`), only the `limit` trees that lead are combined again, and of
each tree only the first `MOST_PER_TREE` candidates that the search finds are looked at. So a
decision costs what changed since the last one, not the fleet, and ends after at most that many
candidates per tree.

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
from dovetail.engine.rank.best_per_tree import MOST_PER_TREE, best_per_tree
from dovetail.engine.rank.candidates import trees_of
from dovetail.engine.rank.policies.policy import Numbers
from dovetail.engine.rank.pressure.watch import PressureWatch
from dovetail.engine.rank.ranking import Ranking
from dovetail.engine.rank.scores import CandidateScores, Scorer
from dovetail.engine.rank.typical import Typical
from dovetail.engine.search import Search, search
from dovetail.engine.snapshot import Snapshot

MOST_CANDIDATES = 250_000
"""What is held at once to be sorted."""

RankingSteps = Generator[None, None, "RankedCandidates"]
"""Yields now and then, so that a caller can look at the clock; returns what was found."""


class TooManyToRank(DovetailError):
    """There are more candidates than can be sorted in one go."""


class RankedCandidates(msgspec.Struct, frozen=True, eq=False):
    rows: Block
    scores: Numbers
    """The total of each candidate."""
    parts: dict[str, Numbers]
    """By policy, the points of each candidate before they are weighed."""

    def as_dicts(self) -> list[dict[str, int]]:
        """For each candidate the total and the points of each policy."""
        columns = {"total": self.scores, **self.parts}
        lines = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, line, strict=True)) for line in lines]


class RankedSearch(Search):
    """A search whose candidates come best first, as the request says."""

    def __init__(
        self,
        snapshot: Snapshot,
        request: Request,
        typical: Typical,
        watch: PressureWatch | None = None,
    ) -> None:
        super().__init__(snapshot, request)
        self._ranking = Ranking(request.rank, typical, watch)
        self.scores: list[dict[str, int]] = []
        """Of each candidate, once they were found."""

    def candidates(self, limit: int | None) -> Blocks:
        found = yield from rank_in_steps(self, self._ranking, limit)
        self.scores = found.as_dicts()
        if len(found.rows):
            yield found.rows


def best(
    snapshot: Snapshot, request: Request, ranking: Ranking, limit: int | None = None
) -> RankedCandidates:
    steps = rank_in_steps(search(snapshot, request), ranking, limit)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            found: RankedCandidates = stop.value
            return found


def rank_in_steps(searching: Search, ranking: Ranking, limit: int | None) -> RankingSteps:
    """The `limit` best, in steps, so that a caller can look at the clock."""
    scores = Scorer(searching, ranking)
    if ranking.is_plain:
        lines = yield from _gather(searching, searching.in_search_order(limit))
        scored = scores.score(lines)
        return RankedCandidates(lines, scored.totals, scored.parts)
    if limit is None or any(len(slot.shared_tree) for slot in searching.slots):
        lines = yield from _gather(searching, searching.in_search_order(None))
    elif not len(searching.trees):
        lines = _no_candidates(searching)
    else:
        tops = yield from best_per_tree(searching, ranking, scores)
        chosen = tops.best(searching.trees, limit)
        if limit == 1 and tops.exact:
            return RankedCandidates(
                tops.lines[chosen], tops.totals[chosen], tops.parts_of(chosen, ranking)
            )
        blocks = searching.first_per_tree(np.sort(chosen), max(MOST_PER_TREE, limit))
        lines = yield from _gather(searching, blocks)
    scored = scores.score(lines)
    order = _order_of(searching.snapshot, lines, scored)[:limit]
    parts = {name: points[order] for name, points in scored.parts.items()}
    return RankedCandidates(lines[order], scored.totals[order], parts)


def _gather(searching: Search, blocks: Blocks) -> Generator[None, None, Block]:
    found, count = [], 0
    for block in blocks:
        if block is not None and len(block):
            found.append(block)
            count += len(block)
        if count > MOST_CANDIDATES:
            raise TooManyToRank(
                f"There are more than {MOST_CANDIDATES} allocation candidates to rank"
            )
        yield
    return np.concatenate(found) if found else _no_candidates(searching)


def _no_candidates(searching: Search) -> Block:
    return np.empty((0, len(searching.slots)), np.int32)


def _order_of(snapshot: Snapshot, lines: Block, scored: CandidateScores) -> Numbers:
    """The order of the candidates; those of a tree come in the order in which they were found."""
    if not len(lines):
        return np.empty(0, np.int64)
    roots = snapshot.tree_root_id.values[trees_of(snapshot, lines)]
    order = np.lexsort((-scored.nuances, -scored.totals, roots))
    totals, roots = scored.totals[order], roots[order]
    places = np.arange(len(lines))
    fresh = np.ones(len(lines), np.bool_)
    fresh[1:] = (totals[1:] != totals[:-1]) | (roots[1:] != roots[:-1])
    turns = places - np.maximum.accumulate(np.where(fresh, places, 0))
    found: Numbers = order[np.lexsort((roots, turns, -totals))]
    return found
