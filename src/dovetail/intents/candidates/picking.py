"""Picking: one choice of clusters for every app, the best of all candidates, with its scores.

A plan calls `pick` with what all controllers say together. The same answers give the same pick, in
whatever order they came. What is best is told in `solver/objective.py`; how it is found, in
`solver/search.py`. Where there is none, `conflicts` says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from dovetail.intents.candidates.admissible import AdmissibleSets
from dovetail.intents.candidates.app_sets import AppMask, apps_of
from dovetail.intents.candidates.combining import CombinedCandidates
from dovetail.intents.candidates.conflicts import NoPick, explained
from dovetail.intents.candidates.solver.budget import STEPS, PickBudget
from dovetail.intents.candidates.solver.objective import Objective
from dovetail.intents.candidates.solver.problem import (
    JointScores,
    PickProblem,
    ProblemChoices,
    ScoreOfSet,
)
from dovetail.intents.candidates.solver.search import PickSolution, SearchResult, search
from dovetail.intents.names import ClusterName

CONFLICT_STEPS = 1_000
"""To see whether some of the apps, or of the controllers, have no pick either."""


class PickedCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster that an app gets."""

    cluster: ClusterName
    score: int
    """What the app adds there to the score of the apps listed before it."""
    rank: int
    """By preference; 0 is the first."""


class Pick(msgspec.Struct, frozen=True, kw_only=True):
    clusters: Mapping[str, tuple[PickedCluster, ...]]
    """By app, in the order of the group; its clusters in the order of their names."""
    score: int
    """Of all apps on all clusters."""
    rank: int
    """Summed up likewise."""
    departures: int
    """From the candidate that gives every contended cluster to the apps listed first."""
    is_proven: bool
    """That no pick is better. False: to prove it would have taken too long, or controllers did not
    tell all of their candidates."""

    def apps_by_cluster(self) -> dict[ClusterName, frozenset[str]]:
        """In the order of the names of clusters."""
        found: dict[ClusterName, set[str]] = {}
        for app, clusters in self.clusters.items():
            for each in clusters:
                found.setdefault(each.cluster, set()).add(app)
        return {cluster: frozenset(found[cluster]) for cluster in sorted(found)}


def pick(
    combined: CombinedCandidates, score_of_set: ScoreOfSet | None = None, steps: int = STEPS
) -> Pick | NoPick:
    """`score_of_set`: what contended clusters give apps together; it should be no more than what
    the parts of any division of the set get there by themselves, or the best may be missed."""
    result = _search(combined, score_of_set, steps)
    if result.solution is not None:
        return _pick(combined, result.solution, result)

    def is_impossible(part: CombinedCandidates) -> bool:
        found = _search(part, score_of_set, min(steps, CONFLICT_STEPS))
        return found.solution is None and found.is_decided

    return explained(
        combined, is_impossible, is_decided=result.is_decided, is_proven=result.is_proven
    )


def _search(
    combined: CombinedCandidates, score_of_set: ScoreOfSet | None, steps: int
) -> SearchResult:
    if combined.refusals:
        return SearchResult(solution=None, is_decided=True, is_proven=combined.is_complete, steps=0)
    alternatives = list(combined.alternatives())
    objective = Objective(combined, alternatives)
    joint = JointScores(combined, objective, score_of_set)

    is_complete = combined.is_complete

    def problems() -> Iterator[PickProblem]:
        nonlocal is_complete
        for demands in alternatives:
            choices = ProblemChoices(AdmissibleSets(combined, demands), objective, joint)
            is_complete &= choices.is_complete
            yield from choices.problems()

    result = search(problems(), PickBudget(steps))
    return msgspec.structs.replace(result, is_proven=result.is_decided and is_complete)


def _pick(combined: CombinedCandidates, solution: PickSolution, result: SearchResult) -> Pick:
    problem, objective = solution.problem, solution.problem.objective
    names = tuple(combined.clusters)
    there: dict[int, AppMask] = {}
    for unit, held in zip(problem.units, solution.held, strict=True):
        for cluster in held:
            there[cluster] = there.get(cluster, 0) | unit.mask
    found: list[list[PickedCluster]] = [[] for _ in combined.apps]
    for cluster in sorted(there):
        before, loss = 0, 0
        for app in apps_of(there[cluster]):
            before |= 1 << app
            lost = problem.joint.loss(cluster, before) or 0
            found[app].append(
                PickedCluster(
                    cluster=names[cluster],
                    score=int(objective.scores[app, cluster]) - lost + loss,
                    rank=problem.rank(app, cluster),
                )
            )
            loss = lost
    rank, departures = objective.digits(solution.cost)
    return Pick(
        clusters={app: tuple(of) for app, of in zip(combined.apps, found, strict=True)},
        score=sum(each.score for of in found for each in of),
        rank=rank,
        departures=departures,
        is_proven=result.is_proven,
    )
