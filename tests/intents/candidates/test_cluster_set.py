"""Cluster sets: the algebra of allow and deny lists is that of the sets they stand for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dovetail.intents.candidates.cluster_set import EVERYWHERE, ClusterSet
from tests.intents.candidates.worlds import CLUSTERS, cluster_sets

ALL = dict.fromkeys(CLUSTERS)
sets = cluster_sets(CLUSTERS)


def meant(some: ClusterSet) -> set[str]:
    return {name for name in CLUSTERS if (name in some.names) != some.denies}


@given(sets, sets)
def test_algebra(one: ClusterSet, two: ClusterSet) -> None:
    assert meant(one & two) == meant(one) & meant(two)
    assert meant(one | two) == meant(one) | meant(two)
    assert meant(one - two) == meant(one) - meant(two)
    assert meant(~one) == set(CLUSTERS) - meant(one)


@given(sets, sets)
def test_nothing_is_expanded(one: ClusterSet, two: ClusterSet) -> None:
    """Whatever is combined, its list has no name that was in neither list."""
    for found in (one & two, one | two, one - two, ~one):
        assert found.names <= one.names | two.names


@given(sets)
def test_size_and_membership(some: ClusterSet) -> None:
    assert some.size(ALL) == len(meant(some))
    assert list(some.within(CLUSTERS)) == [name for name in CLUSTERS if name in meant(some)]
    assert all((name in some) == (name in meant(some)) for name in CLUSTERS)


@given(sets)
def test_the_shorter_form_wins_and_a_tie_is_an_allow_list(some: ClusterSet) -> None:
    found = some.compact(ALL)
    assert meant(found) == meant(some)
    assert len(found.names) == min(len(meant(some)), len(meant(~some)))
    if len(meant(some)) == len(meant(~some)):
        assert not found.denies


@given(st.frozensets(st.sampled_from(CLUSTERS)))
def test_clusters_that_are_not_there_count_for_nothing(names: frozenset[str]) -> None:
    some = ClusterSet.allow({*names, "gone"})
    assert some.size(ALL) == len(names)
    assert (~some).size(ALL) == len(CLUSTERS) - len(names)
    assert "gone" not in some.compact(ALL).names


def test_everywhere() -> None:
    assert all(name in EVERYWHERE for name in CLUSTERS)
