"""Scorer: the points of all policies of a ranking, summed by their weights."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import reduce
from typing import NamedTuple

import numpy as np

from dovetail.engine.combine.round_robin import Block
from dovetail.engine.rank.policies.policy import Numbers, PolicyCase, RankingPolicy
from dovetail.engine.rank.policies.registry import POLICIES
from dovetail.engine.rank.ranking import Ranking
from dovetail.engine.search import Search
from dovetail.engine.work import Work

MOST_CELLS = 16_384
"""Candidates times slots that are scored in one step."""


class CandidateScores(NamedTuple):
    """Of each candidate."""

    totals: Numbers
    nuances: Numbers
    parts: dict[str, Numbers]
    """By policy, the points before they are weighed."""


class Scorer:
    def __init__(self, weights: dict[str, int], policies: dict[str, RankingPolicy]) -> None:
        self._weights, self._policies = weights, policies

    @classmethod
    def in_steps(cls, searching: Search, ranking: Ranking) -> Work[Scorer]:
        """For a search that was narrowed."""
        weights, policies = dict(ranking.terms), {}
        # Where no row qualifies nothing will be scored, and there may be nothing to look at.
        if all(len(slot.own) or len(slot.shared_row) for slot in searching.slots):
            case = PolicyCase(searching.snapshot, searching.slots, ranking.typical, ranking.watch)
            for name in weights:
                policies[name] = yield from POLICIES[name](case)
        return cls(weights, policies)

    @property
    def names(self) -> Iterable[str]:
        """Of the policies, in the order of the ranking."""
        return self._weights.keys()

    @property
    def is_even(self) -> bool:
        return all(policy.is_even for policy in self._policies.values())

    @property
    def basis(self) -> Hashable:
        return tuple(policy.basis for policy in self._policies.values())

    def score_in_steps(self, lines: Block) -> Work[CandidateScores]:
        """Some candidates at a time."""
        most = max(MOST_CELLS // max(lines.shape[1], 1), 1)
        found = [(yield from self._score(lines[:most]))]
        for first in range(most, len(lines), most):
            yield
            found.append((yield from self._score(lines[first : first + most])))
        if len(found) == 1:
            return found[0]
        return CandidateScores(
            np.concatenate([each.totals for each in found]),
            np.concatenate([each.nuances for each in found]),
            {name: np.concatenate([e.parts[name] for e in found]) for name in self._weights},
        )

    def _score(self, lines: Block) -> Work[CandidateScores]:
        if not len(lines):
            nothing = np.zeros(0, np.int64)
            return CandidateScores(nothing, nothing, dict.fromkeys(self._weights, nothing))
        judged = {}
        for name, policy in self._policies.items():
            judged[name] = yield from policy.score(lines)
        points = [each.points * self._weights[name] for name, each in judged.items()]
        nuances = [each.nuance * self._weights[name] for name, each in judged.items()]
        parts = {name: each.points for name, each in judged.items()}
        return CandidateScores(reduce(np.add, points), reduce(np.add, nuances), parts)
