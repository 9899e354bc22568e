"""Steps of an answer, shared out among shapes: a fleet of many kinds is answered for in time."""

from __future__ import annotations

import random

from dovetail.intents.candidates.partitions import PartitionCandidates
from dovetail.intents.fleet import ClusterInventory
from dovetail.intents.hpa.budget import HpaBudget
from dovetail.intents.hpa.shape_decisions import STEPS_TO_ASK
from tests.intents.hpa.building import (
    App,
    Asked,
    app,
    cluster,
    consumer,
    label,
    needs,
    node,
    workload,
)

APPS, SHAPES = 4, 6


def crowded(seed: int) -> tuple[list[App], list[ClusterInventory]]:
    """Apps that contend for nodes of odd sizes, on clusters of which no two are alike."""
    rng = random.Random(seed)
    apps = []
    for at in range(APPS):
        pods = [
            workload(f"w{at}{number}", replicas=3, requests={"cpu": f"{rng.randint(7, 60)}00m"})
            for number in range(3)
        ]
        wishes = (needs("nvidia.com/gpu", 1, optional=5), label("zone", "a", optional=3))
        apps.append(app(f"a{at}", *pods, consumers=[consumer(pods[0], *wishes)]))
    clusters = [
        cluster(
            f"c{number}",
            *(
                node(
                    f"n{at}",
                    {"zone": rng.choice("ab")},
                    cpu=f"{rng.randint(30, 200)}00m",
                    more={"nvidia.com/gpu": rng.choice([0, 1, 4])},
                )
                for at in range(12)
            ),
        )
        for number in range(SHAPES)
    ]
    return apps, clusters


def candidates_of(asked: Asked) -> PartitionCandidates:
    found = asked.answer.candidates
    assert isinstance(found, PartitionCandidates)
    return found


def test_an_answer_ends_with_its_steps() -> None:
    apps, clusters = crowded(1)
    budget = HpaBudget(all_steps=600, least_steps=500)
    asked = Asked(apps, *clusters, budget=budget)
    assert asked.hpa.shapes == SHAPES
    # Every question on a shape may be its last, and apps alone are asked about in any case.
    over = (APPS + 2) * (budget.least_steps + STEPS_TO_ASK)
    assert asked.hpa.steps <= budget.all_steps + SHAPES * over
    assert not candidates_of(asked).is_complete


def test_it_is_the_same_whenever_it_is_asked_for() -> None:
    apps, clusters = crowded(2)
    budget = HpaBudget(all_steps=600, least_steps=500)
    first, second = (Asked(apps, *clusters, budget=budget) for _ in range(2))
    assert first.answer == second.answer


def test_apps_that_fit_alone_are_found_without_any_steps() -> None:
    apps, clusters = crowded(3)
    little = Asked(apps, *clusters, budget=HpaBudget(all_steps=0))
    plenty = Asked(apps, *clusters)
    for each in apps:
        assert little.clusters(each.name) == plenty.clusters(each.name) != ""


def test_what_was_not_looked_at_is_not_called_the_best() -> None:
    pods = workload("w", requests={"cpu": 1})
    wishes = [label(f"l{at}", "x", optional=1) for at in range(6)]
    apps = [app("a", pods, consumers=[consumer(pods, *wishes)])]
    labels = {f"l{at}": "x" for at in range(3)}
    nodes = [node("n1", labels), node("n2", {f"l{at}": "x" for at in range(3, 6)})]
    assert candidates_of(Asked(apps, cluster("c1", *nodes))).is_complete
    little = Asked(apps, cluster("c1", *nodes), budget=HpaBudget(all_steps=0))
    assert not candidates_of(little).is_complete
