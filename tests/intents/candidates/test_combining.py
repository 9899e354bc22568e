"""Answers of controllers combined: by intersection, whatever their order."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given, settings

from dovetail.intents.candidates.cluster_set import EVERYWHERE, ClusterSet
from dovetail.intents.candidates.combining import combine
from dovetail.intents.candidates.expanding import candidates_document
from dovetail.intents.candidates.partitions import (
    ContendedCluster,
    ControllerAnswer,
    PartitionCandidates,
)
from dovetail.intents.candidates.picking import Pick, pick
from tests.intents.candidates.section8 import affinity, listed, lists
from tests.intents.candidates.worlds import World, worlds

THREE = ("c1", "c2", "c3")


def contending(controller: str, cluster: str, *sets: str) -> ControllerAnswer:
    return ControllerAnswer(
        controller=controller,
        candidates=PartitionCandidates(
            alternatives=({},),
            contended=(ContendedCluster(cluster, tuple(map(frozenset, sets))),),
        ),
    )


@settings(max_examples=50, deadline=None)
@given(worlds())
def test_the_order_of_answers_does_not_matter(world: World) -> None:
    found = [
        candidates_document(combine(answers, world.apps, world.clusters))
        for answers in permutations(world.answers)
    ]
    assert all(each == found[0] for each in found)


def test_contended_clusters_of_two_controllers() -> None:
    """One takes a and b, or b and c; the other b alone, or a and c: so any of them, alone."""
    of = combine(
        [contending("x", "c1", "ab", "bc"), contending("y", "c1", "b", "ac")], tuple("abc"), THREE
    )
    assert candidates_document(of)["contended"] == [
        {"allow": ["c1"], "sets": [["a"], ["b"], ["c"]]}
    ]


def test_an_app_that_a_controller_does_not_mention_is_not_contended_by_it() -> None:
    of = combine([contending("x", "c1", "a", "b")], tuple("abc"), THREE)
    assert candidates_document(of)["contended"] == [
        {"allow": ["c1"], "sets": [["a", "c"], ["b", "c"]]}
    ]


def test_contended_clusters_that_do_not_exist_count_for_nothing() -> None:
    of = combine([contending("x", "gone", "a", "b")], tuple("ab"), THREE)
    assert not of.families


def test_alternatives_of_several_controllers() -> None:
    """Either way round by one, and the other has its own two: those that nobody forbids remain."""

    def either(controller: str, one: str, two: str) -> ControllerAnswer:
        first = {"a": listed(ClusterSet.allow({one})), "b": listed(ClusterSet.allow({two}))}
        second = {"a": listed(ClusterSet.allow({two})), "b": listed(ClusterSet.allow({one}))}
        return ControllerAnswer(
            controller=controller, candidates=PartitionCandidates(alternatives=(first, second))
        )

    of = combine([either("x", "c1", "c2"), either("y", "c2", "c1")], tuple("ab"), THREE)
    assert not of.refusals
    assert candidates_document(of)["candidates"] == [
        {"a": {"count": 1, "allow": ["c1"]}, "b": {"count": 1, "allow": ["c2"]}},
        {"a": {"count": 1, "allow": ["c2"]}, "b": {"count": 1, "allow": ["c1"]}},
    ]
    found = pick(of)
    assert isinstance(found, Pick)
    assert found.apps_by_cluster() == {"c1": frozenset("a"), "c2": frozenset("b")}


def test_refusals_are_told_when_no_alternative_is_without() -> None:
    none = lists("x", a=listed(ClusterSet.allow(())))
    assert [each.words for each in combine([none], ("a",), THREE).refusals] == [
        "count 1 > 0 clusters"
    ]


def test_a_controller_without_candidates() -> None:
    nothing = ControllerAnswer(controller="x", candidates=PartitionCandidates(alternatives=()))
    assert [(each.token, each.words) for each in combine([nothing], ("a",), THREE).refusals] == [
        ("candidates", "x leaves no candidate")
    ]


def test_an_app_on_more_clusters_than_the_one_it_requires() -> None:
    counts = lists("generic", a=listed(EVERYWHERE, 2), b=listed(EVERYWHERE, 1))
    of = combine([counts, affinity(required=[("a", "b")])], tuple("ab"), THREE)
    assert [(each.apps, each.words) for each in of.refusals] == [
        (("a", "b"), "a requires b: count 2 > count 1")
    ]


def test_relations_that_contradict() -> None:
    rules = affinity(denied=[("a", "b")], required=[("a", "b")])
    assert [each.token for each in combine([rules], tuple("ab"), THREE).refusals] == ["relations"]


def test_whether_there_may_be_more() -> None:
    some = ControllerAnswer(
        controller="x",
        candidates=PartitionCandidates(alternatives=({},), is_complete=False),
    )
    assert not combine([some], ("a",), THREE).is_complete
    assert candidates_document(combine([some], ("a",), THREE))["isComplete"] is False
    assert combine([], ("a",), THREE).is_complete
