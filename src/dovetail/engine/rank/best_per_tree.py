"""Cache of the best candidate of every tree, from request to request: the bound of ranking.

Only trees that changed since the same request (`request_key`) was last ranked are looked at
again, at most `MOST_PER_TREE` candidates of each; of many, one of each kind (`tree_kinds`). If all
candidates of a tree score alike, one tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dovetail.core.columns import FIRST_TABLE, enlarged
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
    """By number of the tree: what its best candidate scores, and where in a table that stands.

    The table has a line for each tree that was looked at: the rows that were chosen, counted from
    the first of the tree, then the points of each policy. Trees of a kind share the line of one.
    """

    def __init__(self, slots: int, policies: int, exact: bool) -> None:
        self.exact = exact
        """Whether the candidates are the best of their trees, not just any."""
        self._slots = slots
        self._versions: Numbers = np.zeros(0, np.int64)
        self._totals: Numbers = np.zeros(0, np.int64)
        self._entries: RowNumbers = np.zeros(0, np.int32)
        self._table: Numbers = np.zeros((FIRST_TABLE, slots + policies), np.int64)
        self.lines = 0
        """Of the table that are in use, or were until trees changed."""

    @property
    def nbytes(self) -> int:
        of_trees = self._versions.nbytes + self._totals.nbytes + self._entries.nbytes
        return of_trees + self._table.nbytes

    def stale_trees(self, snapshot: Snapshot, trees: RowNumbers) -> RowNumbers:
        """Those of the trees that changed; what is known of them is forgotten."""
        versions = snapshot.tree_version.values
        missing = len(versions) - len(self._versions)
        if missing:
            self._versions = with_zeros(self._versions, missing)
            self._totals = with_zeros(self._totals, missing)
            self._entries = with_zeros(self._entries, missing)
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
        self._totals[trees] = NO_CANDIDATE
        self._entries[trees] = self._new_entries(len(trees))
        if len(lines):
            order = np.lexsort((scored.nuances, scored.totals))
            lines = lines.take(order, axis=0)
            home = trees_of(snapshot, lines)
            self._totals[home] = scored.totals.take(order)
            entries = self._entries.take(home)
            starts = snapshot.tree_start.values.take(home)
            self._table[entries, : self._slots] = lines - starts[:, None]
            for at, points in enumerate(scored.parts.values(), self._slots):
                self._table[entries, at] = points.take(order)

    def _new_entries(self, count: int) -> RowNumbers:
        """Lines of the table for so many trees."""
        if self.lines + count > 2 * len(self._entries) + FIRST_TABLE:
            # Half of them are left behind by trees that changed since.
            kept, which = np.unique(self._entries, return_inverse=True)
            self._entries = which.astype(np.int32)
            self._table[: len(kept)] = self._table.take(kept, axis=0)
            self.lines = len(kept)
        first, self.lines = self.lines, self.lines + count
        self._table = enlarged(self._table, self.lines, self._table.shape[1])
        return np.arange(first, self.lines, dtype=np.int32)

    def spread(self, snapshot: Snapshot, trees: RowNumbers, samples: RowNumbers) -> None:
        """Take over for trees what is known of those that are of the same kind, one for each."""
        self._versions[trees] = snapshot.tree_version.values.take(trees)
        self._totals[trees] = self._totals.take(samples)
        self._entries[trees] = self._entries.take(samples)

    def ranked(
        self, snapshot: Snapshot, trees: RowNumbers, policies: Iterable[str]
    ) -> tuple[Block, Numbers, dict[str, Numbers]]:
        """The best candidates of some trees: rows, totals, and by policy the points."""
        found = self._table.take(self._entries.take(trees), axis=0)
        starts = snapshot.tree_start.values.take(trees)
        lines = (found[:, : self._slots] + starts[:, None]).astype(np.int32)
        parts = {name: found[:, at] for at, name in enumerate(policies, self._slots)}
        return lines, self._totals.take(trees), parts

    def best(self, trees: RowNumbers, limit: int) -> RowNumbers:
        """Those of some trees, in their fixed order, that lead the answer; best first."""
        totals = self._totals.take(trees)
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
    which: NDArray[np.intp]
    """For each tree which of the samples stands for it."""

    def members(self, low: int, high: int) -> tuple[RowNumbers, RowNumbers]:
        """The trees of some kinds, and for each its sample."""
        if low == 0 and high == len(self.samples):
            return self.trees, self.samples.take(self.which)
        mine = np.flatnonzero((self.which >= low) & (self.which < high))
        return self.trees.take(mine), self.samples.take(self.which.take(mine))


def _alike(searching: Search, trees: RowNumbers) -> Work[_Alike]:
    """Ranking with a limit, which asks for it, is only for trees that nothing is shared with."""
    if len(trees) <= WORTH_KINDS:
        return _Alike(trees, trees, np.arange(len(trees)))
    kinds = yield from kinds_in_steps(searching.snapshot)
    firsts, which = samples_of(kinds.take(trees))
    return _Alike(trees.take(firsts), trees, which)


def _join_blocks(blocks: list[Block], slots: int) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    return np.concatenate(blocks) if blocks else np.empty((0, slots), np.int32)
