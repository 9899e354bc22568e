"""The best candidate of every tree, kept from request to request.

Only trees that changed since a request of the same shape was last ranked are looked at again. If
all candidates of a tree score alike, one of them tells.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from dovetail.engine.columns import Rows
from dovetail.engine.combine.round_robin import Block
from dovetail.engine.rank.cache import kept, longer, names
from dovetail.engine.rank.candidate_tree import homes
from dovetail.engine.rank.policies.policy import Numbers
from dovetail.engine.rank.ranking import Ranking
from dovetail.engine.rank.scores import Scores
from dovetail.engine.rank.typical import shape
from dovetail.engine.search import Search
from dovetail.engine.snapshot import Snapshot

NONE_THERE = -(2**62)
"""The total of a tree without a candidate."""

LOOKED_AT = 128
"""Candidates of a tree that a limited answer looks at, the first ones that the search finds."""

STRIDE = 512
"""Trees that are looked at before others get a turn."""


class Leaders:
    """By number of the tree: its best candidate and what that scores."""

    def __init__(self, slots: int, policies: int, exact: bool) -> None:
        self.exact = exact
        """Whether the lines are the best of their trees, not just any."""
        self._versions: Numbers = np.zeros(0, np.int64)
        self.totals: Numbers = np.zeros(0, np.int64)
        self.lines: Block = np.zeros((0, slots), np.int32)
        self.parts: list[Numbers] = [np.zeros(0, np.int64) for _ in range(policies)]
        """The points of each policy."""

    def stale(self, snapshot: Snapshot, trees: Rows) -> Rows:
        """Those of the trees that changed; what is known of them is forgotten."""
        versions = snapshot.tree_version.values
        missing = len(versions) - len(self._versions)
        if missing:
            self._versions = longer(self._versions, missing)
            self.totals = longer(self.totals, missing)
            self.lines = longer(self.lines, missing)
            self.parts = [longer(points, missing) for points in self.parts]
        found: Rows = trees.compress(self._versions.take(trees) != versions.take(trees))
        return found

    def learn(self, snapshot: Snapshot, trees: Rows, scores: Scores, lines: Block) -> None:
        """Take in candidates of these trees, in which those of a tree are in order."""
        self._versions[trees] = snapshot.tree_version.values[trees]
        self.totals[trees] = NONE_THERE
        if len(lines):
            # Written last is what stays: of each tree the best, the first of equals.
            lines = lines[::-1]
            verdict = scores.judge(lines)
            order = np.lexsort((verdict.nuances, verdict.totals))
            lines = lines.take(order, axis=0)
            home = homes(snapshot, lines)
            self.totals[home] = verdict.totals.take(order)
            self.lines[home] = lines
            for known, points in zip(self.parts, verdict.parts.values(), strict=True):
                known[home] = points.take(order)

    def parts_of(self, trees: Rows, ranking: Ranking) -> dict[str, Numbers]:
        return {name: self.parts[at][trees] for at, (name, _) in enumerate(ranking.terms)}

    def best(self, trees: Rows, limit: int) -> Rows:
        """Those of some trees, in their fixed order, that lead the answer; best first."""
        totals = self.totals.take(trees)
        if limit == 1:
            at = int(totals.argmax())
            return trees[at : at + 1] if totals[at] > NONE_THERE else trees[:0]
        there = totals > NONE_THERE
        if not there.all():
            trees, totals = trees.compress(there), totals.compress(there)
        if limit < len(trees):
            least = np.partition(totals, len(totals) - limit)[len(totals) - limit]
            above = totals >= least
            trees, totals = trees.compress(above), totals.compress(above)
        return trees[np.argsort(-totals, kind="stable")[:limit]]


def leaders(searching: Search, ranking: Ranking, scores: Scores) -> Generator[None, None, Leaders]:
    """The leaders of all trees that the search left, up to date."""
    snapshot = searching.snapshot
    key = (shape(searching.request), ranking.terms, scores.basis, names(snapshot))
    slots, exact = len(searching.slots), not scores.even
    found: Leaders = kept(snapshot, key, lambda: Leaders(slots, len(ranking.terms), exact))
    stale = found.stale(snapshot, searching.trees)
    for low in range(0, len(stale), STRIDE):
        some = stale[low : low + STRIDE]
        lines = []
        for block in searching.first(some, LOOKED_AT if exact else 1):
            if block is None:
                yield
            elif len(block):
                lines.append(block)
        found.learn(snapshot, some, scores, joined(lines, slots))
        yield
    return found


def joined(blocks: list[Block], slots: int) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    return np.concatenate(blocks) if blocks else np.empty((0, slots), np.int32)
