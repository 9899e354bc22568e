"""The flow: a bound that no assignment is below, and the best where clusters only count units."""

from __future__ import annotations

from hypothesis import given, settings

from dovetail.intents.candidates.admissible import AdmissibleSets
from dovetail.intents.candidates.combining import combine
from dovetail.intents.candidates.picking import Pick, pick
from dovetail.intents.candidates.solver.budget import PickBudget
from dovetail.intents.candidates.solver.capacity_flow import CapacityFlow
from dovetail.intents.candidates.solver.choices import Restrictions, UnitChoices
from dovetail.intents.candidates.solver.objective import Objective
from dovetail.intents.candidates.solver.problem import JointScores, ProblemChoices
from tests.intents.candidates.section8 import affinity
from tests.intents.candidates.test_picking import hardware
from tests.intents.candidates.worlds import World, crowded_worlds

LARGE = 10**6


def flows(world: World) -> list[CapacityFlow]:
    """Of all problems that have one."""
    combined = combine(world.answers, world.apps, world.clusters)
    if combined.refusals:
        return []
    alternatives = list(combined.alternatives())
    objective = Objective(combined, alternatives)
    joint = JointScores(combined, objective, world.score_of_set)
    found = []
    for demands in alternatives:
        sets = AdmissibleSets(combined, demands)
        for problem in ProblemChoices(sets, objective, joint).problems():
            nothing = Restrictions.none(len(problem.units))
            flow = CapacityFlow(problem, UnitChoices(problem), nothing, PickBudget(LARGE))
            if flow.solve():
                found.append(flow)
    return found


@settings(max_examples=150, deadline=None)
@given(crowded_worlds())
def test_it_is_a_bound(world: World) -> None:
    found = pick(combine(world.answers, world.apps, world.clusters), world.score_of_set)
    if isinstance(found, Pick):
        [flow] = flows(world)
        rank, score, departures = found.rank, found.score, found.departures
        objective = flow.problem.objective
        held = sum(len(of) for of in found.clusters.values())
        best = (
            (rank << objective.rank_shift)
            + ((held * objective.highest - score) << objective.loss_shift)
            + (departures << objective.departure_shift)
        )
        assert objective.primary(flow.cost) <= objective.primary(best)


@settings(max_examples=150, deadline=None)
@given(crowded_worlds())
def test_nobody_is_too_many(world: World) -> None:
    for flow in flows(world):
        problem = flow.problem
        assert flow.cost == sum(
            problem.cost(unit, cluster) for unit, held in enumerate(flow.held) for cluster in held
        )
        for cluster, units in flow.there.items():
            for group in problem.groups(cluster):
                assert (units & group.units).bit_count() <= group.most
        for unit, held in zip(problem.units, flow.held, strict=True):
            assert len(held) == unit.count


def test_where_each_cluster_takes_one_it_is_the_best() -> None:
    """Three apps that all like c1 best: c gives up least by c3, b by c2."""
    scores = {
        "a": {"c1": 9, "c2": 1, "c3": 1},
        "b": {"c1": 9, "c2": 7, "c3": 2},
        "c": {"c1": 9, "c2": 8, "c3": 7},
    }
    apart = affinity(denied=[("a", "b"), ("a", "c"), ("b", "c")])
    world = World(tuple("abc"), ("c1", "c2", "c3"), (hardware({}, scores), apart), {})
    [flow] = flows(world)
    assert [list(held) for held in flow.held] == [[0], [1], [2]]


def test_more_than_there_is_room_for() -> None:
    contended = {name: ["a", "b", "c"] for name in ("c1", "c2")}
    world = World(tuple("abc"), ("c1", "c2"), (hardware(contended),), {})
    assert flows(world) == []
