"""Small random groups: a few apps and clusters, and what controllers say of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from hypothesis import strategies as st

from dovetail.intents.candidates.cluster_set import ClusterSet
from dovetail.intents.candidates.partitions import (
    AppClusters,
    AppCompatibility,
    ContendedCluster,
    ControllerAnswer,
    Part,
    PartitionCandidates,
)

APPS = ("a", "b", "c", "d")
CLUSTERS = ("c1", "c2", "c3", "c4")


class World(msgspec.Struct, frozen=True):
    apps: tuple[str, ...]
    clusters: tuple[str, ...]
    answers: tuple[ControllerAnswer, ...]
    granted: Mapping[str, int]
    """By cluster: how many of the apps there get their score at once."""

    def score_of_set(self, cluster: str, apps: frozenset[str]) -> int | None:
        """Of the controller `hpa`, which gives the best of them what they would like."""
        scores = self.answers[0].scores
        best = sorted((scores.get(app, {}).get(cluster, 0) for app in apps), reverse=True)
        return sum(best[: self.granted.get(cluster, len(apps))])


def cluster_sets(clusters: tuple[str, ...]) -> st.SearchStrategy[ClusterSet]:
    names = st.frozensets(st.sampled_from(clusters))
    return st.builds(ClusterSet, names, st.booleans())


@st.composite
def app_clusters(draw: st.DrawFn, clusters: tuple[str, ...]) -> AppClusters:
    counts = draw(st.sampled_from([(1,), (1,), (1,), (2,), (1, 1), (1, 2)]))
    return AppClusters(
        parts=tuple(Part(count, draw(cluster_sets(clusters))) for count in counts),
        is_counted=draw(st.booleans()),
        preference=tuple(draw(st.lists(cluster_sets(clusters), max_size=2))),
    )


@st.composite
def partition_answers(
    draw: st.DrawFn, controller: str, apps: tuple[str, ...], clusters: tuple[str, ...]
) -> ControllerAnswer:
    def alternative() -> dict[str, AppClusters]:
        return {app: draw(app_clusters(clusters)) for app in draw(st.sets(st.sampled_from(apps)))}

    contended = [
        ContendedCluster(cluster, tuple(draw(st.lists(some_apps, min_size=1, max_size=3))))
        for some_apps in [st.frozensets(st.sampled_from(apps), min_size=1)]
        for cluster in sorted(draw(st.sets(st.sampled_from(clusters))))
    ]
    scores: dict[str, dict[str, int]] = {
        app: draw(st.dictionaries(st.sampled_from(clusters), st.integers(0, 3)))
        for app in draw(st.sets(st.sampled_from(apps)))
    }
    return ControllerAnswer(
        controller=controller,
        candidates=PartitionCandidates(
            alternatives=tuple(alternative() for _ in range(draw(st.sampled_from([1, 1, 1, 2])))),
            contended=tuple(contended),
        ),
        scores=scores,
    )


@st.composite
def compatibilities(draw: st.DrawFn, apps: tuple[str, ...]) -> ControllerAnswer:
    pairs = st.tuples(st.sampled_from(apps), st.sampled_from(apps)).filter(lambda p: p[0] != p[1])
    none: st.SearchStrategy[Any] = st.just(frozenset())
    some = st.frozensets(pairs, max_size=3) if len(apps) > 1 else none
    denied = frozenset((min(pair), max(pair)) for pair in draw(some))
    return ControllerAnswer(
        controller="affinity",
        candidates=AppCompatibility(denied=denied, required=draw(some)),
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    apps = APPS[: draw(st.integers(1, 4))]
    clusters = CLUSTERS[: draw(st.integers(2, 4))]
    answers = [draw(partition_answers("hpa", apps, clusters))]
    if draw(st.booleans()):
        answers.append(draw(partition_answers("generic", apps, clusters)))
    if draw(st.booleans()):
        answers.append(draw(compatibilities(apps)))
    granted = draw(st.dictionaries(st.sampled_from(clusters), st.integers(0, 2)))
    return World(apps, clusters, tuple(answers), granted)


@st.composite
def crowded_worlds(draw: st.DrawFn) -> World:
    """Everybody may go nearly everywhere, and is in the others' way: what has to be searched."""
    apps = APPS[: draw(st.integers(3, 4))]
    clusters = CLUSTERS[: draw(st.integers(2, 4))]
    few = st.frozensets(st.sampled_from(apps), min_size=1, max_size=3)
    counts = st.sampled_from([1, 1, 1, 2, 3])
    lists = {
        app: AppClusters(
            parts=(
                Part(
                    min(draw(counts), len(clusters)),
                    ClusterSet.deny(draw(st.sampled_from([(), (), clusters[:1], clusters[1:2]]))),
                ),
            )
        )
        for app in apps
    }
    hpa = ControllerAnswer(
        controller="hpa",
        candidates=PartitionCandidates(
            alternatives=(lists,),
            contended=tuple(
                ContendedCluster(name, tuple(draw(st.lists(few, min_size=2, max_size=4))))
                for name in clusters
            ),
        ),
        scores={app: {name: draw(st.integers(0, 4)) for name in clusters} for app in apps},
    )
    pairs = st.tuples(st.sampled_from(apps), st.sampled_from(apps)).filter(lambda p: p[0] < p[1])
    rules = ControllerAnswer(
        controller="affinity",
        candidates=AppCompatibility(
            denied=draw(st.frozensets(pairs, max_size=1)),
            required=draw(st.frozensets(pairs, max_size=1)),
        ),
    )
    granted = draw(st.dictionaries(st.sampled_from(clusters), st.integers(0, 2)))
    return World(apps, clusters, (hpa, rules), granted)
