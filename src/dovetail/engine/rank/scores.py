"""The points of all policies of a ranking, put together by their weights."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from dovetail.engine.rank.policy import Case, Numbers
from dovetail.engine.rank.ranking import Ranking
from dovetail.engine.rank.registry import POLICIES
from dovetail.engine.search import Search
from dovetail.engine.turns import Block


class Scores:
    def __init__(self, searching: Search, ranking: Ranking) -> None:
        self._weights = dict(ranking.terms)
        # Where no row qualifies nothing will be scored, and there may be nothing to look at.
        possible = all(len(slot.own) or len(slot.shared_row) for slot in searching.slots)
        case = Case(searching.snapshot, searching.slots, ranking.typical)
        self._policies = {name: POLICIES[name](case) for name in self._weights if possible}

    @property
    def even(self) -> bool:
        return all(policy.even for policy in self._policies.values())

    @property
    def basis(self) -> Hashable:
        return tuple(policy.basis for policy in self._policies.values())

    def parts(self, lines: Block) -> dict[str, Numbers]:
        if not len(lines):
            return {name: np.zeros(0, np.int64) for name in self._weights}
        return {name: policy.points(lines) for name, policy in self._policies.items()}

    def weighed(self, parts: Mapping[str, Numbers]) -> Numbers:
        found: Numbers = np.add.reduce([parts[name] * w for name, w in self._weights.items()])
        return found

    def nuances(self, lines: Block) -> Numbers:
        found: Numbers = np.add.reduce(
            [policy.nuance(lines) * self._weights[name] for name, policy in self._policies.items()]
        )
        return found
