"""Ranking: the candidates of a request, best first.

Without a limit, or where trees share providers, all candidates are scored and sorted, up to a
bound. With one, best-first with a bound kept per tree: the best total of each tree is known from
request to request (`best_per_tree`), only the `limit` trees that lead are combined again, and of
each tree only the first `MOST_PER_TREE` candidates that the search finds are looked at. So a
decision costs what changed since the last one, not the fleet, and ends after at most that many
candidates per tree. The first one costs the fleet; out of time, it has the best of what it saw.

Sorted by total score. Where scores are equal trees take turns, in the order of the search, as they
do without ranking: the best of each tree, then the second of each; in a tree nuances of the
policies decide, then the order in which the search finds candidates.
"""

from __future__ import annotations

import msgspec
import numpy as np

from dovetail.core.errors import DovetailError
from dovetail.core.request import Request
from dovetail.engine.combine.round_robin import Block, Blocks
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.rank.best_per_tree import (
    MOST_PER_TREE,
    BestPerTree,
    best_per_tree,
    kept_best,
)
from dovetail.engine.rank.candidates import trees_of
from dovetail.engine.rank.policies.policy import Numbers
from dovetail.engine.rank.pressure.watch import PressureWatch
from dovetail.engine.rank.ranking import Ranking
from dovetail.engine.rank.scores import CandidateScores, Scorer
from dovetail.engine.rank.typical import Typical
from dovetail.engine.search import Search, search
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.work import Work, finished

MOST_CANDIDATES = 250_000
"""What is held at once to be sorted."""

DICTS_PER_STEP = 4096
"""Candidates whose scores are told in one step."""


class TooManyToRank(DovetailError):
    """There are more candidates than can be sorted in one go."""


class RankedCandidates(msgspec.Struct, frozen=True, eq=False):
    rows: Block
    scores: Numbers
    """The total of each candidate."""
    parts: dict[str, Numbers]
    """By policy, the points of each candidate before they are weighed."""

    def as_dicts(self) -> Work[list[dict[str, int]]]:
        """For each candidate the total and the points of each policy."""
        columns = {"total": self.scores, **self.parts}
        found: list[dict[str, int]] = []
        for first in range(0, len(self.scores), DICTS_PER_STEP):
            some = slice(first, first + DICTS_PER_STEP)
            lines = zip(*(column[some].tolist() for column in columns.values()), strict=True)
            found += [dict(zip(columns, line, strict=True)) for line in lines]
            yield
        return found


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
        self._scores: Scorer | None = None
        self.scores: list[dict[str, int]] = []
        """Of each candidate, once they were found."""

        self.unranked_trees = 0
        """Those that there was no time to look at."""

    def best_so_far(self, limit: int) -> Work[Block]:
        """Of each tree that was looked at before time was over the best candidate, as it is known.

        One of each, since time is over: to find the others trees would have to be combined again.
        What is known is kept, so the next request of the kind begins where this one ended.
        """
        if self._scores is None:
            return _no_candidates(self)
        tops = kept_best(self, self._ranking, self._scores)
        stale = tops.stale_trees(self.snapshot, self.trees)
        known = self.trees[~np.isin(self.trees, stale)]
        if not len(known):
            return _no_candidates(self)
        chosen = tops.best(known, limit)
        found = RankedCandidates(*tops.ranked(self.snapshot, chosen, self._scores.names))
        self.scores, self.unranked_trees = (yield from found.as_dicts()), len(stale)
        return found.rows

    def candidates(self, limit: int | None) -> Blocks:
        yield from self.narrow()
        self._scores = yield from Scorer.in_steps(self, self._ranking)
        found = yield from _ranked(self, self._ranking, self._scores, limit)
        self.scores = yield from found.as_dicts()
        if len(found.rows):
            yield found.rows


def best(
    snapshot: Snapshot, request: Request, ranking: Ranking, limit: int | None = None
) -> RankedCandidates:
    return finished(rank_in_steps(search(snapshot, request), ranking, limit))


def rank_in_steps(searching: Search, ranking: Ranking, limit: int | None) -> Work[RankedCandidates]:
    """The `limit` best, in steps, so that a caller can look at the clock."""
    yield from searching.narrow()
    scores = yield from Scorer.in_steps(searching, ranking)
    return (yield from _ranked(searching, ranking, scores, limit))


def _ranked(
    searching: Search, ranking: Ranking, scores: Scorer, limit: int | None
) -> Work[RankedCandidates]:
    if ranking.is_plain:
        lines = yield from _gather(searching, searching.in_search_order(limit))
        scored = yield from scores.score_in_steps(lines)
        return RankedCandidates(lines, scored.totals, scored.parts)
    if limit is None or any(len(slot.shared_tree) for slot in searching.slots):
        lines = yield from _gather(searching, searching.in_search_order(None))
    elif not len(searching.trees):
        lines = _no_candidates(searching)
    else:
        tops = yield from best_per_tree(searching, ranking, scores)
        return (yield from _leading(searching, scores, tops, searching.trees, limit))
    return (yield from _sorted(searching, scores, lines, limit))


def _leading(
    searching: Search, scores: Scorer, tops: BestPerTree, trees: RowNumbers, limit: int
) -> Work[RankedCandidates]:
    """The best of those trees that lead, given the best of each."""
    chosen = tops.best(trees, limit)
    if limit == 1 and tops.exact:
        return RankedCandidates(*tops.ranked(searching.snapshot, chosen, scores.names))
    blocks = searching.first_per_tree(np.sort(chosen), max(MOST_PER_TREE, limit))
    lines = yield from _gather(searching, blocks)
    return (yield from _sorted(searching, scores, lines, limit))


def _sorted(
    searching: Search, scores: Scorer, lines: Block, limit: int | None
) -> Work[RankedCandidates]:
    scored = yield from scores.score_in_steps(lines)
    order = _order_of(searching, lines, scored)[:limit]
    parts = {name: points[order] for name, points in scored.parts.items()}
    return RankedCandidates(lines[order], scored.totals[order], parts)


def _gather(searching: Search, blocks: Blocks) -> Work[Block]:
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


def _order_of(searching: Search, lines: Block, scored: CandidateScores) -> Numbers:
    """The order of the candidates; those of a tree come in the order in which they were found."""
    if not len(lines):
        return np.empty(0, np.int64)
    turns_of = _turns_of_trees(searching, trees_of(searching.snapshot, lines))
    order = np.lexsort((-scored.nuances, -scored.totals, turns_of))
    totals, turns_of = scored.totals[order], turns_of[order]
    places = np.arange(len(lines))
    fresh = np.ones(len(lines), np.bool_)
    fresh[1:] = (totals[1:] != totals[:-1]) | (turns_of[1:] != turns_of[:-1])
    rounds = places - np.maximum.accumulate(np.where(fresh, places, 0))
    found: Numbers = order[np.lexsort((turns_of, rounds, -totals))]
    return found


def _turns_of_trees(searching: Search, home: RowNumbers) -> Numbers:
    """For the tree of each candidate a number, the lower the earlier its turn comes.

    Trees take turns in the order in which the search comes to them: their fixed one, which is that
    of their roots, or the one that it was turned to. The tree of a candidate that sharing providers
    serve alone may be none of those; it stays where it is in the fixed order.
    """
    found = searching.snapshot.tree_root_id.values.copy()
    asked = np.zeros(len(found), np.bool_)
    asked[home] = True
    trees = searching.trees.compress(asked.take(searching.trees))
    found[trees] = np.sort(found.take(trees))
    return found.take(home)
