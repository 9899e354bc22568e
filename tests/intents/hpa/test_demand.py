"""Demand: what pods of an app ask for, by manifests and intents."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dovetail.intents.group import DeploymentGroup, HpaIntent
from dovetail.intents.hpa.demand import UnknownIntentApp, WorkloadDemand, demands_of
from dovetail.intents.manifests.errors import UnknownContainer, UnknownWorkload
from tests.intents.hpa.building import (
    Asked,
    app,
    cluster,
    consumer,
    devices,
    group,
    label,
    needing,
    needs,
    node,
    workload,
)

GPU = "nvidia.com/gpu"


def demand_of(asked: DeploymentGroup, granted: int = 0) -> WorkloadDemand:
    """Of the only workload."""
    ((demand,),) = [each.demands(granted) for each in demands_of(asked)]
    return demand


def amounts_of(asked: DeploymentGroup, granted: int = 0) -> dict[str, int]:
    return dict(demand_of(asked, granted).request.amounts)


def test_a_consumer_of_no_object_says_what_there_is() -> None:
    made = workload("real")
    wrong = replace(consumer(made, needs("cpu", 1)), object_name="unreal")
    with pytest.raises(UnknownWorkload) as error:
        demands_of(group(app("a", made, consumers=[wrong])))
    assert str(error.value) == (
        "consumer real: there is no Deployment unreal among the app's workloads: Deployment real"
    )


def test_a_container_that_is_not_there_is_told() -> None:
    made = workload("real")
    for requirement in (needs("cpu", 1), devices("any")):
        wrong = consumer(made, requirement, container="side")
        with pytest.raises(UnknownContainer, match="no container 'side': there are main"):
            demands_of(group(app("a", made, consumers=[wrong])))


def test_what_is_wrong_with_an_option_is_told_at_once() -> None:
    made = workload("real")
    wrong = consumer(made, needs("cpu", 1, optional=3), container="side")
    with pytest.raises(UnknownContainer):
        demands_of(group(app("a", made, consumers=[wrong])))


def test_an_intent_for_no_app_of_the_group() -> None:
    asked = replace(group(app("a", workload("w"))), hpa=(HpaIntent(name="i", app="b"),))
    with pytest.raises(UnknownIntentApp, match="there is no app 'b': the group has a"):
        demands_of(asked)


def test_of_option_and_mandatory_amount_the_larger_applies() -> None:
    asked = group(
        needing("a", needs("cpu", 2, name="must"), needs("cpu", 3, name="may", optional=5))
    )
    assert amounts_of(asked)["cpu"] == 2000
    assert amounts_of(asked, 1)["cpu"] == 3000
    less = group(
        needing("a", needs("cpu", 2, name="must"), needs("cpu", 1, name="may", optional=5))
    )
    assert amounts_of(less, 1)["cpu"] == 2000


def test_several_intents_for_one_app_all_count() -> None:
    made = workload("w")
    one, other = (
        consumer(made, needs("cpu", 2), needs("memory", 10)),
        consumer(made, needs("cpu", 3)),
    )
    asked = replace(
        group(app("a", made)),
        hpa=(
            HpaIntent(name="first", app="a", consumers=(one,)),
            HpaIntent(name="second", app="a", consumers=(other,)),
        ),
    )
    assert amounts_of(asked) == {"pods": 1, "cpu": 3000, "memory": 10}


def test_limits_alone_stand_for_requests() -> None:
    made = workload("w", limits={"memory": "1Gi"})
    asked = group(app("a", made, consumers=[consumer(made, needs(GPU, 1, 1))]))
    assert amounts_of(asked) == {"pods": 1, "memory": 2**30, GPU: 1}


def test_init_containers_and_sidecars_count_as_kubernetes_sums_up() -> None:
    spec: dict[str, Any] = {
        "initContainers": [
            {"name": "setup", "resources": {"requests": {"cpu": 5}}},
            {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": 1}}},
        ]
    }
    made = workload("w", **spec)
    assert amounts_of(group(app("a", made)))["cpu"] == 5000
    asked = group(app("a", made, consumers=[consumer(made, needs("cpu", 6))]))
    assert amounts_of(asked)["cpu"] == 7000
    by_init = consumer(made, needs("cpu", 8), container="setup")
    assert amounts_of(group(app("a", made, consumers=[by_init])))["cpu"] == 8000


def test_devices_of_init_containers_are_used_again() -> None:
    made = workload("w", initContainers=[{"name": "setup"}])
    both = [
        consumer(made, devices("any", 3), container="setup", name="one"),
        consumer(made, devices("any", 2), name="other"),
    ]
    found = demand_of(group(app("a", made, consumers=both))).devices
    assert [(each.container, each.count) for each in found] == [("setup", 1), ("main", 2)]


def test_different_requirements_get_different_devices() -> None:
    asked = group(needing("a", devices("any", 1, name="one"), devices("any", 2, name="other")))
    assert [each.count for each in demand_of(asked).devices] == [3]


def test_devices_that_a_chart_asks_for_count() -> None:
    made = workload("w", requests={"resourceclass.dovetail.dev/any": 2})
    assert [each.count for each in demand_of(group(app("a", made))).devices] == [2]
    asked = group(app("a", made, consumers=[consumer(made, devices("any", 1))]))
    assert [each.count for each in demand_of(asked).devices] == [1]


def test_an_option_that_is_a_label_is_a_preference_in_the_manifest() -> None:
    asked = group(needing("a", label("zone", "x", optional=4)))
    found = demand_of(asked, 1)
    assert [each.key for each in found.request.node_labels] == ["zone"]
    assert found.written.node_labels == ()
    assert demand_of(asked).request.node_labels == ()


def test_a_chart_is_not_led_elsewhere_by_an_option() -> None:
    """What the chart selects stays selected, so a label with another value is never granted."""
    wanting = needing("a", label("zone", "y", optional=4), nodeSelector={"zone": "x"})
    asked = Asked([wanting], cluster("c1", node("n1", {"zone": "x"}), node("n2", {"zone": "y"})))
    assert asked.score("a", "c1") == 0
    assert asked.nodes("c1", "a") == {"a": {"n1": 1}}


def test_an_option_below_the_charts_request_is_granted() -> None:
    wanting = needing("a", needs("cpu", 1, optional=4), requests={"cpu": 6})
    asked = Asked([wanting], cluster("c1", node("n1", cpu=4)))
    assert asked.clusters("a") == "c1"
    assert asked.score("a", "c1") == 4


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("Deployment", 3),
        ("StatefulSet", 3),
        ("ReplicaSet", 3),
        ("Job", 3),
        ("CronJob", 3),
        ("Pod", 1),
    ],
)
def test_every_kind_makes_its_pods(kind: str, count: int) -> None:
    demand = demand_of(group(app("a", workload("w", kind, replicas=3, requests={"cpu": 1}))))
    assert demand.workload.count == count
