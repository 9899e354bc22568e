"""Candidates one by one: together exactly what is feasible, in order, as many as wanted."""

from __future__ import annotations

from itertools import combinations, islice, product

import orjson
from hypothesis import given, settings

from dovetail.intents.candidates.combining import combine
from dovetail.intents.candidates.expanding import (
    MOST_TRIED,
    admissible_alternatives,
    candidates_document,
    candidates_of,
    departures,
    expanded,
    number_of_candidates,
)
from dovetail.intents.candidates.partitions import (
    AppClusters,
    ContendedCluster,
    ControllerAnswer,
    PartitionCandidates,
)
from tests.intents.candidates.oracle import Literal, is_served
from tests.intents.candidates.section8 import APPS, CLUSTERS, HPA, affinity, allow, listed, lists
from tests.intents.candidates.worlds import World, crowded_worlds, worlds


def are_all_that_is_feasible(world: World) -> None:
    literal = Literal(world.answers, world.apps, world.clusters)
    alternatives = admissible_alternatives(combine(world.answers, world.apps, world.clusters))
    candidates = list(candidates_of(alternatives, tries=10**6))
    found = set()
    for candidate in candidates:
        options = [
            [
                frozenset(some)
                for some in combinations(world.clusters, sum(part.count for part in parts))
                if is_served(AppClusters(parts=parts), frozenset(some))
            ]
            for parts in (candidate[app] for app in world.apps)
        ]
        for held in product(*options):
            where = dict(zip(world.apps, held, strict=True))
            if all(where[app] <= where[other] for app, other in literal.required):
                found.add(held)
    assert found == {tuple(each[app] for app in world.apps) for each in literal.assignments()}
    number = number_of_candidates(alternatives)
    # Of many, those that have too few clusters for an app are counted, too.
    assert len(candidates) == number or MOST_TRIED < number >= len(candidates)


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_the_union_of_candidates_is_all_that_is_feasible(world: World) -> None:
    are_all_that_is_feasible(world)


@settings(max_examples=60, deadline=None)
@given(crowded_worlds())
def test_the_union_of_candidates_where_everybody_is_in_the_way(world: World) -> None:
    are_all_that_is_feasible(world)


def test_fewest_departures_first_then_in_order() -> None:
    """Of three clusters with two, three and two sets."""
    found = [dict(steps) for steps in departures([2, 3, 2])]
    assert len(found) == 12
    assert found[:8] == [
        {},
        *({0: 1}, {1: 1}, {2: 1}),
        *({0: 1, 1: 1}, {0: 1, 2: 1}, {1: 2}, {1: 1, 2: 1}),
    ]
    assert [sum(each.values()) for each in found] == sorted(sum(each.values()) for each in found)


def test_what_has_too_few_clusters_is_not_counted() -> None:
    """fwall may go to c2 alone, so c2 is not given to analytics: there is one candidate."""
    only_c2 = lists("generic", fwall=listed(allow("c2")))
    found = expanded(combine([HPA, only_c2], APPS, CLUSTERS))
    assert (len(found.candidates), found.more) == (1, 0)


def test_very_many_are_counted_and_not_made() -> None:
    clusters = [f"c{n:04}" for n in range(4000)]
    two = (frozenset("a"), frozenset("b"))
    answer = ControllerAnswer(
        controller="hpa",
        candidates=PartitionCandidates(
            alternatives=({},), contended=tuple(ContendedCluster(each, two) for each in clusters)
        ),
    )
    combined = combine([answer], tuple("ab"), clusters)
    found = expanded(combined, most=3)
    assert found.more == 2**4000 - 3
    # Where a gets every cluster, nothing is left to b: that is none.
    given_to_b = [candidate["b"][0].clusters.names for candidate in found.candidates]
    assert given_to_b == [{"c0000"}, {"c0001"}, {"c0002"}]
    document = candidates_document(combined)
    assert document["more"] == "about 10^1204"
    assert document["contended"] == [{"deny": [], "sets": [["a"], ["b"]]}]
    assert len(orjson.dumps(document)) < 2_000


def test_a_document_says_all_of_it() -> None:
    rules = affinity(denied=[("a", "b")], required=[("c", "a")])
    document = candidates_document(combine([rules], tuple("abc"), ("c1", "c2")))
    assert document == {
        "apps": [
            {
                "a": {"count": 1, "deny": []},
                "b": {"count": 1, "deny": []},
                "c": {"count": 1, "deny": []},
            }
        ],
        "contended": [],
        "deny": {"a": ["b"], "b": ["a"]},
        "require": {"c": ["a"]},
        "candidates": [
            {
                "a": {"count": 1, "allow": [first]},
                "b": {"count": 1, "allow": [second]},
                "c": {"count": 1, "allow": [first]},
            }
            for first, second in (("c2", "c1"), ("c1", "c2"))
        ],
        "more": 0,
    }


def test_lists_are_as_short_as_they_can_be() -> None:
    clusters = [f"c{n:04}" for n in range(1000)]
    document = candidates_document(combine([], ("a",), clusters))
    assert document["apps"] == [{"a": {"count": 1, "deny": []}}]


def test_they_are_lazy() -> None:
    sizes = [2] * 5_000
    assert list(islice(departures(sizes), 3)) == [(), ((0, 1),), ((1, 1),)]
