"""Nodes that differ only in what no pod could use are one class."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.podfit.packing.conflicts import apart_marks, by_reach
from dovetail.podfit.packing.question import Question
from tests.podfit.building import REQUIRED, Fleet, Json, node, pod
from tests.podfit.packing.brute import Kinds, to_pack


def classes(fleet: Fleet, *kinds: Kinds) -> int:
    question = Question(fleet.table.nodes, to_pack(*kinds), None)
    on_node, _ = by_reach(question)
    marks = apart_marks(question, on_node)
    return len(question.node_classes(marks, np.zeros(len(question.rows), np.int32)))


TWO_CPUS = {"cpu": "2", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"cpu": "7300m"}, {"cpu": "6"}, 1),
        ({"cpu": "8"}, {"cpu": "7"}, 2),
        ({"cpu": "6", "memory": "20Gi"}, {"cpu": "6", "memory": "50Gi"}, 1),
        ({"cpu": "6", "memory": "2Gi"}, {"cpu": "6", "memory": "50Gi"}, 2),
        ({"cpu": "80", "memory": "80Gi"}, {"cpu": "90", "memory": "90Gi"}, 1),
        ({"pods": "3", "cpu": "8"}, {"pods": "110", "cpu": "6"}, 1),
    ],
)
def test_only_what_pods_can_use_makes_a_difference(
    one: dict[str, str], other: dict[str, str], expected: int
) -> None:
    two = Fleet(
        [
            node("a", {}, taints=(), unschedulable=False, **one),
            node("b", {}, taints=(), unschedulable=False, **other),
        ]
    )
    assert classes(two, [(pod("p", requests=TWO_CPUS), 10)]) == expected


def test_sums_of_several_kinds_count() -> None:
    """With pods of 2 and 5 CPUs, 8.9 are as good as 8, but 9 are not."""
    nodes = [node("a", cpu="8900m"), node("b", cpu="8"), node("c", cpu="9")]
    kinds = [(pod(f"p{cpu}", requests={"cpu": cpu}), 9) for cpu in ("2", "5")]
    assert classes(Fleet(nodes), kinds) == 2


def test_a_resource_that_nobody_asks_for_makes_no_difference() -> None:
    nodes = [node("a", example__gpu="8"), node("b")]
    assert classes(Fleet(nodes), [(pod("p", requests={"cpu": "1"}), 3)]) == 1


def test_nodes_that_take_other_kinds_are_of_other_classes() -> None:
    nodes = [node("a", {"size": "s"}), node("b", {"size": "l"}), node("c", {"size": "l"})]
    kinds = [(pod("p"), 1), (pod("q", nodeSelector={"size": "l"}), 1)]
    assert classes(Fleet(nodes), kinds) == 2


def test_nodes_without_the_label_of_an_anti_affinity_are_of_another_class() -> None:
    apart: Json = {
        "podAntiAffinity": {
            REQUIRED: [{"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "spot"}]
        }
    }
    nodes = [node("a", {"spot": "1"}), node("b", {"spot": "2"}), node("c")]
    assert classes(Fleet(nodes), [(pod("p", {"app": "x"}, affinity=apart), 2)]) == 2
