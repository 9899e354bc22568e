"""Cache of the best candidate of every tree, from request to request: the bound of ranking.

Only trees that changed since the same request (`request_key`) was last ranked are looked at
again, at most `MOST_PER_TREE` candidates of each; of many, one of each kind (`tree_kinds`). If all
candidates of a tree score alike, one tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from dovetail.engine.combine.round_robin import Block
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.rank.cache import cache_entry, names_version, with_zeros
from dovetail.engine.rank.candidates import trees_of
from dovetail.engine.rank.policies.policy import Numbers
from dovetail.engine.rank.ranking import Ranking
from dovetail.engine.rank.scores import Scorer
from dovetail.engine.request_key import request_key
from dovetail.engine.search import Search
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.tree_kinds import WORTH_KINDS, kinds_in_steps, samples_of
from dovetail.engine.work import Work

NO_CANDIDATE = -(2**62)
"""The total of a tree without a candidate."""

MOST_PER_TREE = 128
"""Candidates of a tree that a limited answer looks at, the first ones that the search finds."""

CELLS_PER_STEP = 2048
"""Trees times slots that are looked at before others get a turn."""


class BestPerTree:
    """By number of the tree: its best candidate and what that scores."""

    def __init__(self, slots: int, policies: int, exact: bool) -> None:
        self.exact = exact
        """Whether the lines are the best of their trees, not just any."""
        self._versions: Numbers = np.zeros(0, np.int64)
        self.totals: Numbers = np.zeros(0, np.int64)
        self.lines: Block = np.zeros((0, slots), np.int32)
        self.parts: list[Numbers] = [np.zeros(0, np.int64) for _ in range(policies)]
        """The points of each policy."""

    @property
    def nbytes(self) -> int:
        of_parts = sum(points.nbytes for points in self.parts)
        return self._versions.nbytes + self.totals.nbytes + self.lines.nbytes + of_parts

    def stale_trees(self, snapshot: Snapshot, trees: RowNumbers) -> RowNumbers:
        """Those of the trees that changed; what is known of them is forgotten."""
        versions = snapshot.tree_version.values
        missing = len(versions) - len(self._versions)
        if missing:
            self._versions = with_zeros(self._versions, missing)
            self.totals = with_zeros(self.totals, missing)
            self.lines = with_zeros(self.lines, missing)
            self.parts = [with_zeros(points, missing) for points in self.parts]
        found: RowNumbers = trees.compress(self._versions.take(trees) != versions.take(trees))
        return found

    def update(
        self, snapshot: Snapshot, trees: RowNumbers, scores: Scorer, lines: Block
    ) -> Work[None]:
        """Take in candidates of these trees, in which those of a tree are in order."""
        # Written last is what stays: of each tree the best, the first of equals.
        lines = lines[::-1]
        scored = yield from scores.score_in_steps(lines)
        self._versions[trees] = snapshot.tree_version.values[trees]
        self.totals[trees] = NO_CANDIDATE
        if len(lines):
            order = np.lexsort((scored.nuances, scored.totals))
            lines = lines.take(order, axis=0)
            home = trees_of(snapshot, lines)
            self.totals[home] = scored.totals.take(order)
            self.lines[home] = lines
            for known, points in zip(self.parts, scored.parts.values(), strict=True):
                known[home] = points.take(order)

    def spread(self, snapshot: Snapshot, trees: RowNumbers, samples: RowNumbers) -> None:
        """Take over for trees what is known of those that are of the same kind, one for each."""
        self._versions[trees] = snapshot.tree_version.values.take(trees)
        self.totals[trees] = self.totals.take(samples)
        starts = snapshot.tree_start.values
        shifts = starts.take(trees) - starts.take(samples)
        self.lines[trees] = self.lines.take(samples, axis=0) + shifts[:, None]
        for known in self.parts:
            known[trees] = known.take(samples)

    def parts_of(self, trees: RowNumbers, policies: Iterable[str]) -> dict[str, Numbers]:
        return {name: self.parts[at][trees] for at, name in enumerate(policies)}

    def best(self, trees: RowNumbers, limit: int) -> RowNumbers:
        """Those of some trees, in their fixed order, that lead the answer; best first."""
        totals = self.totals.take(trees)
        if limit == 1:
            at = int(totals.argmax())
            return trees[at : at + 1] if totals[at] > NO_CANDIDATE else trees[:0]
        there = totals > NO_CANDIDATE
        if not there.all():
            trees, totals = trees.compress(there), totals.compress(there)
        if limit < len(trees):
            least = totals.max()
            if np.count_nonzero(totals == least) < limit:
                # Slow where many are equal, as those on top often are.
                least = np.partition(totals, len(totals) - limit)[len(totals) - limit]
            above = totals >= least
            trees, totals = trees.compress(above), totals.compress(above)
        return trees[np.argsort(-totals, kind="stable")[:limit]]


def kept_best(searching: Search, ranking: Ranking, scores: Scorer) -> BestPerTree:
    """As far as it is known; some of its trees may have changed since."""
    snapshot = searching.snapshot
    key = (request_key(searching.request), ranking.terms, scores.basis, names_version(snapshot))
    slots, exact = len(searching.slots), not scores.is_even
    return cache_entry(snapshot, key, lambda: BestPerTree(slots, len(ranking.terms), exact))


def best_per_tree(searching: Search, ranking: Ranking, scores: Scorer) -> Work[BestPerTree]:
    """Of all feasible trees, up to date. What is given up in the middle is kept so far."""
    snapshot, slots = searching.snapshot, len(searching.slots)
    found = kept_best(searching, ranking, scores)
    stale = found.stale_trees(snapshot, searching.trees)
    alike = yield from _alike(searching, stale)
    most = max(CELLS_PER_STEP // slots, 1)
    for low in range(0, len(alike.samples), most):
        some = alike.samples[low : low + most]
        lines = []
        for block in searching.first_per_tree(some, MOST_PER_TREE if found.exact else 1):
            if block is None:
                yield
            elif len(block):
                lines.append(block)
        yield from found.update(snapshot, some, scores, _join_blocks(lines, slots))
        found.spread(snapshot, *alike.members(low, low + len(some)))
        yield
    return found


class _Alike(NamedTuple):
    """Trees by kind: one of each is scored for all, which is exact while nothing is shared."""

    samples: RowNumbers
    trees: RowNumbers
    """All of them, those of the first sample's kind first."""
    ends: Numbers
    """Where in `trees` those of each kind end."""

    def members(self, low: int, high: int) -> tuple[RowNumbers, RowNumbers]:
        """The trees of some kinds, and for each its sample."""
        edges = np.concatenate(([0], self.ends))[low : high + 1]
        counts = np.diff(edges)
        return self.trees[edges[0] : edges[-1]], self.samples[low:high].repeat(counts)


def _alike(searching: Search, trees: RowNumbers) -> Work[_Alike]:
    """Ranking with a limit, which asks for it, is only for trees that nothing is shared with."""
    if len(trees) <= WORTH_KINDS:
        return _Alike(trees, trees, np.arange(1, len(trees) + 1))
    kinds = yield from kinds_in_steps(searching.snapshot)
    firsts, which = samples_of(kinds.take(trees))
    order = np.argsort(which, kind="stable")
    return _Alike(trees.take(firsts), trees.take(order), np.bincount(which).cumsum())


def _join_blocks(blocks: list[Block], slots: int) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    return np.concatenate(blocks) if blocks else np.empty((0, slots), np.int32)
