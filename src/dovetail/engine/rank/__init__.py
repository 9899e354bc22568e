"""Ranking: candidates in the order of named policies, each a module of `policies`.

`best(snapshot, request, ranking)` answers with the candidates best first, their scores, and the
points that each policy gave. All of it is whole numbers and depends on the snapshot alone.
"""

from dovetail.engine.rank.best import RankedCandidates, RankedSearch, TooManyToRank, best
from dovetail.engine.rank.policies.registry import POLICIES
from dovetail.engine.rank.pressure.watch import PressureWatch
from dovetail.engine.rank.ranking import Ranking
from dovetail.engine.rank.typical import Typical

__all__ = [
    "POLICIES",
    "PressureWatch",
    "RankedCandidates",
    "RankedSearch",
    "Ranking",
    "TooManyToRank",
    "Typical",
    "best",
]
