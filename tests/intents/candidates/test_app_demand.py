"""Demands of an app: counts and parts of all controllers together."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.intents.candidates.app_demand import contingency_tables, demand_of, shortage_of
from dovetail.intents.candidates.cluster_set import EVERYWHERE, ClusterSet
from dovetail.intents.candidates.partitions import AppClusters, Part
from tests.intents.candidates.oracle import is_served
from tests.intents.candidates.worlds import CLUSTERS, app_clusters

ALL = dict.fromkeys(CLUSTERS)


def allow(*names: str) -> ClusterSet:
    return ClusterSet.allow(names)


def one(count: int, clusters: ClusterSet, *, is_counted: bool = True) -> AppClusters:
    return AppClusters(parts=(Part(count, clusters),), is_counted=is_counted)


def several(*parts: tuple[int, ClusterSet]) -> AppClusters:
    return AppClusters(parts=tuple(Part(count, clusters) for count, clusters in parts))


@settings(max_examples=300, deadline=None)
@given(st.lists(app_clusters(CLUSTERS), min_size=1, max_size=3))
def test_it_is_served_by_what_serves_every_answer(answers: list[AppClusters]) -> None:
    demand = demand_of(answers)
    assert demand.is_complete
    for some in map(frozenset, combinations(CLUSTERS, demand.count)):
        served = any(is_served(AppClusters(parts=parts), some) for parts in demand.tables)
        assert served == all(is_served(each, some) for each in answers)


def test_the_largest_count_that_is_said_wins() -> None:
    answers = [one(1, EVERYWHERE), one(3, EVERYWHERE), one(9, EVERYWHERE, is_counted=False)]
    assert demand_of(answers).count == 3


def test_where_nobody_says_how_many_it_is_one() -> None:
    assert demand_of([one(5, EVERYWHERE, is_counted=False)]).count == 1
    assert demand_of([]).count == 1


def test_more_than_the_parts_say_come_from_any_of_them() -> None:
    parts = several((1, allow("c1")), (1, allow("c2", "c3")))
    demand = demand_of([parts, one(3, ClusterSet.deny(("c4",)))])
    assert demand.tables == (
        (
            Part(1, allow("c2", "c3")),
            Part(1, allow("c1")),
            Part(1, allow("c1", "c2", "c3")),
        ),
    )


def test_every_one_of_some_clusters_is_one_part() -> None:
    """However they are named: by themselves, or in lists of which all are wanted."""
    every = several((1, allow("c1")), (1, allow("c2")), (2, allow("c3", "c4")))
    assert demand_of([every]).tables == ((Part(4, allow(*CLUSTERS)),),)


def test_hall() -> None:
    """Two parts that have one cluster between them, though each has one for itself."""
    parts = (Part(1, allow("c1")), Part(1, allow("c1")), Part(1, EVERYWHERE))
    assert shortage_of(parts, ALL) == "count 2 > 1 clusters"
    assert shortage_of((Part(4, ClusterSet.deny(("c1",))),), ALL) == "count 4 > 3 clusters"
    assert not shortage_of((Part(2, allow("c1", "c2")), Part(2, EVERYWHERE)), ALL)


def test_contingency_tables() -> None:
    found = list(contingency_tables([1, 2], [2, 1]))
    assert found == [((1, 0), (1, 1)), ((0, 1), (2, 0))]
    for rows, columns in (([2, 2], [1, 3]), ([1, 1, 1], [3]), ([3], [1, 1, 1])):
        for table in contingency_tables(rows, columns):
            assert [sum(row) for row in table] == rows
            assert [sum(column) for column in zip(*table, strict=True)] == columns
