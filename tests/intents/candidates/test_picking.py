"""The pick: the best of all assignments, whatever the order of answers."""

from __future__ import annotations

import random
from itertools import permutations

from hypothesis import given, settings

from dovetail.intents.candidates.cluster_set import EVERYWHERE, ClusterSet
from dovetail.intents.candidates.combining import combine
from dovetail.intents.candidates.conflicts import NoPick
from dovetail.intents.candidates.partitions import (
    AppClusters,
    ContendedCluster,
    ControllerAnswer,
    Part,
    PartitionCandidates,
)
from dovetail.intents.candidates.picking import Pick, pick
from dovetail.intents.candidates.solver.problem import ScoreOfSet
from tests.intents.candidates.oracle import Literal
from tests.intents.candidates.section8 import affinity, listed, lists
from tests.intents.candidates.worlds import World, crowded_worlds, worlds

FOUR = ("c1", "c2", "c3", "c4")


def chosen(
    answers: list[ControllerAnswer],
    apps: str = "ab",
    clusters: tuple[str, ...] = FOUR,
    score_of_set: ScoreOfSet | None = None,
) -> dict[str, list[str]]:
    found = pick(combine(answers, tuple(apps), clusters), score_of_set)
    assert isinstance(found, Pick), found
    assert found.is_proven
    return {app: [each.cluster for each in of] for app, of in found.clusters.items()}


def hardware(
    contended: dict[str, list[str]], scores: dict[str, dict[str, int]] | None = None
) -> ControllerAnswer:
    """Clusters that take these sets of apps, each app a letter."""
    return ControllerAnswer(
        controller="hpa",
        candidates=PartitionCandidates(
            alternatives=({},),
            contended=tuple(
                ContendedCluster(name, tuple(map(frozenset, sets)))
                for name, sets in contended.items()
            ),
        ),
        scores=scores or {},
    )


def is_best(world: World) -> None:
    literal = Literal(world.answers, world.apps, world.clusters, world.score_of_set)
    found = pick(combine(world.answers, world.apps, world.clusters), world.score_of_set)
    best = literal.best()
    assert found.is_proven
    if best is None:
        assert isinstance(found, NoPick)
        return
    assert isinstance(found, Pick)
    held = {app: frozenset(each.cluster for each in of) for app, of in found.clusters.items()}
    values = [
        literal.value(choice, each)
        for choice in literal.choices()
        for each in literal.assignments_of(choice)
        if each == held
    ]
    assert min(values) == best
    assert (found.rank, -found.score, found.departures) == best[:3]


@settings(max_examples=200, deadline=None)
@given(worlds())
def test_it_is_the_best_of_all(world: World) -> None:
    is_best(world)


@settings(max_examples=200, deadline=None)
@given(crowded_worlds())
def test_it_is_the_best_where_everybody_is_in_the_way(world: World) -> None:
    is_best(world)


@settings(max_examples=50, deadline=None)
@given(worlds())
def test_the_order_of_answers_does_not_matter(world: World) -> None:
    found = [
        pick(combine(answers, world.apps, world.clusters[::-1]), world.score_of_set)
        for answers in permutations(world.answers)
    ]
    assert all(each == found[0] for each in found)


def test_scores_first_then_names() -> None:
    scores = {"a": {"c3": 1}}
    assert chosen([hardware({}, scores)]) == {"a": ["c3"], "b": ["c1"]}


def test_preference_comes_before_scores() -> None:
    """And what is in none of the preferred sets comes last."""
    prefers = listed(EVERYWHERE, 1, preference=(ClusterSet.allow({"c4"}), ClusterSet.allow({"c3"})))
    assert chosen([hardware({}, {"a": {"c1": 9}}), lists("generic", a=prefers)], "a") == {
        "a": ["c4"]
    }


def test_overflow_only_when_the_first_is_full() -> None:
    """c4 takes two of three apps that prefer it: the third gets the next best, which is c3."""
    prefers = listed(EVERYWHERE, 1, preference=(ClusterSet.allow({"c4"}), ClusterSet.allow({"c3"})))
    full = hardware({"c4": ["ab", "ac", "bc"]}, {"a": {"c1": 9}})
    assert chosen([full, lists("generic", a=prefers, b=prefers, c=prefers)], "abc") == {
        "a": ["c4"],
        "b": ["c4"],
        "c": ["c3"],
    }


def test_a_contended_cluster_goes_to_the_app_listed_first() -> None:
    only = hardware({"c1": ["b", "a"]})
    assert chosen([only], "ab", ("c1", "c2")) == {"a": ["c1"], "b": ["c2"]}
    assert chosen([only], "ba", ("c1", "c2")) == {"b": ["c1"], "a": ["c2"]}


def test_but_not_at_the_cost_of_a_score() -> None:
    scored = hardware({"c1": ["a", "b"]}, {"b": {"c1": 5}})
    assert chosen([scored], "ab", ("c1", "c2")) == {"a": ["c2"], "b": ["c1"]}


def test_counts_and_parts() -> None:
    """All of c1, and two of the others; parts get different clusters."""
    parts = AppClusters(
        parts=(Part(1, ClusterSet.allow({"c1"})), Part(2, ClusterSet.allow(FOUR))),
    )
    scores = {"a": {"c4": 2, "c3": 1}}
    assert chosen([hardware({}, scores), lists("generic", a=parts)], "a") == {
        "a": ["c1", "c3", "c4"]
    }


def test_parts_that_overlap_are_dealt_out_anew() -> None:
    """c1 is best for both parts, and the second part has nothing else."""
    parts = AppClusters(
        parts=(Part(1, ClusterSet.allow({"c1", "c2"})), Part(1, ClusterSet.allow({"c1"}))),
    )
    assert chosen([lists("generic", a=parts)], "a") == {"a": ["c1", "c2"]}


def test_apps_apart() -> None:
    apart = affinity(denied=[("a", "b"), ("b", "c"), ("a", "c")])
    assert chosen([apart], "abc") == {"a": ["c1"], "b": ["c2"], "c": ["c3"]}


def test_apps_together_in_a_chain() -> None:
    """c is required by b, and b by a: all go where a and c alone would not."""
    chain = affinity(required=[("a", "b"), ("b", "c")])
    some = lists("generic", a=listed(ClusterSet.deny({"c1"})), c=listed(ClusterSet.deny({"c2"})))
    assert chosen([chain, some], "abc") == {"a": ["c3"], "b": ["c3"], "c": ["c3"]}


def test_an_app_on_fewer_clusters_than_the_one_it_requires() -> None:
    """b is on two clusters, and best on c3 and c4; a must be with it, and is best on c1."""
    rule = affinity(required=[("a", "b")])
    counts = lists("generic", a=listed(EVERYWHERE, 1), b=listed(EVERYWHERE, 2))
    scored = hardware({}, {"a": {"c1": 3}, "b": {"c3": 2, "c4": 4}})
    assert chosen([rule, counts, scored]) == {"a": ["c1"], "b": ["c1", "c4"]}


def test_joint_scores() -> None:
    """One GPU on each of two clusters that take everybody: two apps get one, and others nothing."""
    scores = {app: {"c3": 9, "c4": 9} for app in "abc"}
    gpus = hardware({"c3": ["abc"], "c4": ["abc"]}, scores)
    found = pick(combine([gpus], tuple("abc"), FOUR), lambda *_: 9)
    assert isinstance(found, Pick)
    assert found.score == 18
    assert found.is_proven
    assert [(each.cluster, each.score) for each in found.clusters["a"]] == [("c3", 9)]
    assert [(each.cluster, each.score) for each in found.clusters["b"]] == [("c4", 9)]
    assert found.clusters["c"][0].score == 0


def test_a_set_that_does_not_fit_after_all() -> None:
    wide = hardware({"c1": ["ab"]}, {"a": {"c1": 1}, "b": {"c1": 1}})

    def score_of_set(cluster: str, apps: frozenset[str]) -> int | None:
        return 1 if len(apps) == 1 else None

    assert chosen([wide], score_of_set=score_of_set) == {"a": ["c1"], "b": ["c2"]}


def test_an_app_that_does_not_fit_alone_after_all() -> None:
    """Its pods want to be near those of another: it is not left without them."""
    wide = hardware({"c1": ["ab"]}, {"a": {"c1": 1}})
    elsewhere = lists("generic", b=listed(ClusterSet.deny({"c1"})))

    def score_of_set(cluster: str, apps: frozenset[str]) -> int | None:
        return None if apps == {"a"} else 1

    assert chosen([wide, elsewhere], score_of_set=score_of_set) == {"a": ["c2"], "b": ["c2"]}


def test_a_budget_that_is_spent_still_gives_a_pick() -> None:
    """Three GPUs that a dozen apps would like: who gets them is found at once, that it is the best
    would take long to prove, and that is what is said."""
    apps = tuple("abcdefghijkl")
    weights = {app: number % 7 + 1 for number, app in enumerate(apps)}
    scores = {app: dict.fromkeys(("c1", "c2", "c3"), weight) for app, weight in weights.items()}
    gpus = hardware({name: ["".join(apps)] for name in ("c1", "c2", "c3")}, scores)

    def score_of_set(cluster: str, there: frozenset[str]) -> int:
        return max(weights[app] for app in there)

    combined = combine([gpus], apps, FOUR)
    found = pick(combined, score_of_set, steps=300)
    assert isinstance(found, Pick)
    assert not found.is_proven
    assert found.score == 7 + 6 + 5
    assert pick(combined, score_of_set, steps=300) == found


def test_many_apps_on_few_clusters() -> None:
    """Every cluster takes certain sets of three: the rules are kept, and a search with less effort
    finds nothing better."""
    seed = random.Random(5)
    apps = tuple("abcdefghij")
    clusters = tuple(f"c{n}" for n in range(5))
    contended = {name: ["".join(seed.sample(apps, 3)) for _ in range(6)] for name in clusters}
    scores = {app: {name: seed.randint(0, 9) for name in clusters} for app in apps}
    combined = combine([hardware(contended, scores)], apps, clusters)
    found = pick(combined)
    assert isinstance(found, Pick)
    assert found.is_proven
    for cluster, there in found.apps_by_cluster().items():
        rivals = there & frozenset("".join(contended[cluster]))
        assert any(rivals <= frozenset(some) for some in contended[cluster])
    early = pick(combined, steps=40)
    assert isinstance(early, Pick)
    assert early.score <= found.score


def test_candidates_that_controllers_did_not_tell_may_be_better() -> None:
    cut = ControllerAnswer(
        controller="hpa",
        candidates=PartitionCandidates(alternatives=({},), is_complete=False),
    )
    found = pick(combine([cut], tuple("a"), FOUR))
    assert isinstance(found, Pick)
    assert not found.is_proven


def test_who_is_where() -> None:
    found = pick(combine([affinity(denied=[("a", "b")])], tuple("abc"), ("c1", "c2")))
    assert isinstance(found, Pick)
    assert found.apps_by_cluster() == {"c1": frozenset("ac"), "c2": frozenset("b")}


def test_without_any_clusters() -> None:
    found = pick(combine([], ("a",), ()))
    assert isinstance(found, NoPick)
    assert found.words == "a: count 1 > 0 clusters"
