"""Which node is best among those that fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dovetail.podfit.pod_request import pod_request_of
from dovetail.podfit.scores.resources import ScoringStrategy
from tests.podfit.building import PREFERRED, Fleet, node, pod

HOST, ZONE = "kubernetes.io/hostname", "zone"
WEB = {"app": "web"}


@pytest.mark.parametrize(
    ("strategy", "best"),
    [
        (ScoringStrategy.LEAST_ALLOCATED, "empty"),
        (ScoringStrategy.MOST_ALLOCATED, "full"),
        (ScoringStrategy.BALANCED, "full"),
    ],
)
def test_how_full_nodes_are(strategy: ScoringStrategy, best: str) -> None:
    there = [
        pod("one", on="full", requests={"cpu": "2", "memory": "5Gi"}),
        pod("two", on="half", requests={"cpu": "100m", "memory": "4Gi"}),
    ]
    fleet = Fleet([node("half"), node("full"), node("empty")], there, strategy=strategy)
    assert fleet.best(pod("p", requests={"cpu": "1", "memory": "1Gi"})) == best


def test_least_allocated_is_the_mean_share_that_is_left() -> None:
    fleet = Fleet([node("n", cpu="4", memory="8Gi")])
    scores = fleet.scores(pod("p", requests={"cpu": "1", "memory": "4Gi"}))
    assert scores == {"n": pytest.approx(100 * (0.75 + 0.5) / 2)}


def test_most_allocated_is_the_mean_share_in_use() -> None:
    fleet = Fleet([node("n", cpu="4", memory="8Gi")], strategy=ScoringStrategy.MOST_ALLOCATED)
    scores = fleet.scores(pod("p", requests={"cpu": "1", "memory": "4Gi"}))
    assert scores == {"n": pytest.approx(100 * (0.25 + 0.5) / 2)}


def test_balanced_is_best_where_both_are_used_alike() -> None:
    fleet = Fleet([node("n", cpu="4", memory="8Gi")], strategy=ScoringStrategy.BALANCED)
    assert fleet.scores(pod("p", requests={"cpu": "1", "memory": "2Gi"})) == {"n": 100}
    assert fleet.scores(pod("p", requests={"cpu": "1", "memory": "4Gi"})) == {"n": 87.5}


def test_pods_that_ask_for_nothing_spread_too() -> None:
    fleet = Fleet([node("a"), node("b")], [pod("one", on="a")])
    assert fleet.best(pod("p")) == "b"


def test_the_first_of_equals_wins_and_what_does_not_fit_never_does() -> None:
    fleet = Fleet([node("no", unschedulable=True), node("a"), node("b")])
    ask = pod("p")
    assert fleet.best(ask) == "a"
    score = fleet.table.score(pod_request_of(ask), fleet.verdict(ask).mask)
    assert score[0] == -np.inf


def test_nodes_that_ask_pods_to_stay_away_come_last() -> None:
    soft = [{"key": "k", "effect": "PreferNoSchedule"}]
    fleet = Fleet([node("asks", taints=soft), node("b")], [pod("one", on="b")])
    assert fleet.best(pod("p")) == "b"
    assert fleet.best(pod("p", tolerations=[{"operator": "Exists"}])) == "asks"


def like(weight: int, key: str, value: str) -> dict[str, Any]:
    expression = {"key": key, "operator": "In", "values": [value]}
    return {"weight": weight, "preference": {"matchExpressions": [expression]}}


def test_weights_of_preferred_labels_add_up() -> None:
    nodes = [node("none"), node("x", {"x": "1"}), node("yz", {"y": "1", "z": "1"})]
    likes = [like(5, "x", "1"), like(3, "y", "1"), like(3, "z", "1")]
    affinity = {"nodeAffinity": {PREFERRED: likes}}
    scores = Fleet(nodes).scores(pod("p", affinity=affinity))
    base = scores["none"]
    assert scores["yz"] - base == pytest.approx(200)
    assert scores["x"] - base == pytest.approx(200 * 5 / 6)


def weighted(
    kind: str, weight: int, labels: dict[str, str], topology: str = HOST
) -> dict[str, Any]:
    term = {"topologyKey": topology, "labelSelector": {"matchLabels": labels}}
    return {kind: {PREFERRED: [{"weight": weight, "podAffinityTerm": term}]}}


def test_pods_go_near_what_they_like_and_away_from_what_they_do_not() -> None:
    fleet = Fleet([node("a"), node("b"), node("c")], [pod("there", WEB, on="b")])
    assert fleet.best(pod("p", affinity=weighted("podAffinity", 1, WEB))) == "b"
    assert fleet.best(pod("p", affinity=weighted("podAntiAffinity", 1, WEB))) == "a"


def test_what_pods_that_are_there_like_counts_too() -> None:
    likes = weighted("podAffinity", 10, WEB)
    fleet = Fleet([node("a"), node("b")], [pod("fan", on="b", affinity=likes)])
    assert fleet.best(pod("p", WEB)) == "b"
    assert fleet.best(pod("p")) == "a"
    avoids = weighted("podAntiAffinity", 10, WEB)
    fleet = Fleet([node("a"), node("b"), node("c")], [pod("shy", on="a", affinity=avoids)])
    assert fleet.best(pod("p", WEB)) == "b"


def test_soft_spreading_prefers_emptier_domains() -> None:
    nodes = [node("a1", {ZONE: "a"}), node("a2", {ZONE: "a"}), node("b", {ZONE: "b"}), node("bare")]
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": WEB},
    }
    fleet = Fleet(nodes, [pod("one", WEB, on="a1")])
    scores = fleet.scores(pod("p", WEB, topologySpreadConstraints=[constraint]))
    assert max(scores, key=lambda name: scores[name]) == "b"
    assert scores["a2"] > scores["bare"] - 1
