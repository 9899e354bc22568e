"""The generic placement controller: names, labels, counts and preference, of the fleet there is."""

from __future__ import annotations

from typing import Any

from dovetail.intents.candidates.cluster_set import EVERYWHERE, ClusterSet
from dovetail.intents.candidates.partitions import AppClusters, Part, PartitionCandidates
from dovetail.intents.fleet import ClusterInventory
from dovetail.intents.generic import generic_answer
from dovetail.intents.group import (
    AppPlacementRule,
    ClusterTerm,
    DeploymentGroup,
    GroupApp,
    PlacementGroup,
)

LABELS: dict[str, tuple[str, ...]] = {
    "p1+c1": ("edge",),
    "p1+c2": ("edge", "west"),
    "p1+c3": ("west",),
    "p2+c1": ("edge",),
}
FLEET = {
    name: ClusterInventory(name=name, labels=frozenset(labels)) for name, labels in LABELS.items()
}


def term(cluster: str = "", label: str = "") -> ClusterTerm:
    return ClusterTerm(provider="p1", cluster=cluster, label=label)


def every(*terms: ClusterTerm) -> PlacementGroup:
    return PlacementGroup(terms=terms, count=None)


def some(count: int, *terms: ClusterTerm) -> PlacementGroup:
    return PlacementGroup(terms=terms, count=count)


def answer_for(*groups: PlacementGroup, only: set[str] | None = None, **rule: Any) -> AppClusters:
    rules = (AppPlacementRule(app="fwall", groups=groups, **rule),)
    group = DeploymentGroup(
        name="projects/p/composite-apps/c/v1/deployment-intent-groups/g",
        apps=(GroupApp(name="fwall"), GroupApp(name="other")),
        placement=rules,
        only_clusters=None if only is None else frozenset(only),
    )
    answer = generic_answer(group, FLEET)
    assert answer.controller == "generic"
    assert isinstance(answer.candidates, PartitionCandidates)
    (candidate,) = answer.candidates.alternatives
    assert list(candidate) == ["fwall", "other"]
    return candidate["fwall"]


def allow(*names: str) -> ClusterSet:
    return ClusterSet.allow(f"p1+{name}" for name in names)


def test_an_app_that_no_intent_names_can_go_anywhere_and_says_no_count() -> None:
    assert answer_for() == AppClusters(parts=(Part(1, EVERYWHERE),), is_counted=False)


def test_any_of_is_one_cluster_of_all_that_are_named_or_labelled() -> None:
    found = answer_for(some(1, term("c3"), term(label="edge")))
    assert found == AppClusters(parts=(Part(1, allow("c1", "c2", "c3")),))


def test_a_provider_alone_is_all_of_its_clusters() -> None:
    assert answer_for(some(1, term())).parts == (Part(1, allow("c1", "c2", "c3")),)


def test_all_of_is_every_cluster_and_one_that_is_named_twice_counts_once() -> None:
    found = answer_for(every(term("c1")), every(term(label="edge")))
    assert found.parts == (Part(2, allow("c1", "c2")),)


def test_each_group_gets_clusters_of_its_own() -> None:
    found = answer_for(every(term("c1")), some(1, term("c2"), term("c3")))
    assert found.parts == (Part(1, allow("c1")), Part(1, allow("c2", "c3")))


def test_v2_a_count_of_the_app_is_of_all_its_clusters() -> None:
    assert answer_for(some(1, term(label="edge")), count=2).parts == (Part(2, allow("c1", "c2")),)
    assert answer_for(count=4) == AppClusters(parts=(Part(4, EVERYWHERE),))
    with_all_of = answer_for(every(term("c1")), some(1, term("c2"), term("c3")), count=3)
    assert with_all_of.parts == (Part(1, allow("c1")), Part(2, allow("c2", "c3")))


def test_a_count_that_is_smaller_than_what_all_of_names_is_none() -> None:
    found = answer_for(every(term("c1")), every(term("c2")), count=1)
    assert found.parts == (Part(2, allow("c1", "c2")),)


def test_more_than_all_of_names_cannot_be_had() -> None:
    """More is asked for than there are, which the combination refuses with both numbers."""
    assert answer_for(every(term("c1")), count=4).parts == (Part(4, allow("c1")),)


def test_a_label_that_no_cluster_has_cannot_be_had() -> None:
    assert answer_for(every(term(label="moon"))).parts == (Part(1, allow()),)
    assert answer_for(every(term("c1")), every(term(label="moon"))).parts == (Part(2, allow("c1")),)


def test_preference_is_told_in_its_order() -> None:
    found = answer_for(preference=((term("c3"),), (term(label="edge"),)))
    assert found.preference == (allow("c3"), allow("c1", "c2"))


def test_only_clusters_of_the_logical_cloud_are_left() -> None:
    assert answer_for(some(1, term()), only={"p1+c1"}).parts == (Part(1, allow("c1")),)
    assert answer_for(only={"p1+c1"}).parts == (Part(1, allow("c1")),)


def test_clusters_that_are_named_and_cannot_be_used_are_told() -> None:
    group = DeploymentGroup(
        name="g",
        apps=(GroupApp(name="fwall"),),
        placement=(
            AppPlacementRule(app="fwall", groups=(some(1, term("c1"), term("c2"), term("gone")),)),
        ),
        only_clusters=frozenset({"p1+c1"}),
    )
    refusals = generic_answer(group, FLEET).refusals["fwall"]
    assert {name: why.token for name, why in refusals.items()} == {
        "p1+c2": "logical_cloud",
        "p1+gone": "unknown_cluster",
    }
    assert refusals["p1+gone"].words == "no such cluster"
