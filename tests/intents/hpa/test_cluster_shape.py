"""Shapes: clusters that are the same but for names are decided once, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dovetail.intents.fleet import ClusterInventory, ClusterNode
from dovetail.intents.hpa.cluster_shape import ShapeSorter, sight_of
from dovetail.intents.hpa.demand import demands_of
from tests.intents.hpa.building import (
    App,
    Asked,
    cluster,
    device_class,
    devices,
    gpu,
    group,
    label,
    needing,
    needs,
    node,
    pod,
)

PLAIN = needing("a", needs("cpu", 1))
APART: dict[str, Any] = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app": "a"}},
            }
        ]
    }
}


def shapes(asked: App, *clusters: ClusterInventory) -> int:
    sorter = ShapeSorter(sight_of(demands_of(group(asked))))
    for each in clusters:
        sorter.shaped(each)
    return len(sorter.shapes)


def two(of: App, one: ClusterNode, other: ClusterNode) -> int:
    """How many shapes clusters of these single nodes have."""
    return shapes(of, cluster("c1", one), cluster("c2", other))


def test_names_and_order_of_nodes_are_no_matter() -> None:
    one = cluster("c1", node("x1", cpu=4), node("x2", cpu=8))
    other = cluster("c2", node("y1", cpu=8), node("y2", cpu=4))
    assert shapes(PLAIN, one, other) == 1
    assert shapes(needing("a", needs("cpu", 1), affinity=APART), one, other) == 1


def test_names_matter_to_pods_that_ask_for_one() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["x1"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    choosy = needing(
        "a",
        needs("cpu", 1),
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
    )
    assert two(choosy, node("x1"), node("x2")) == 2
    by_label = needing("a", needs("cpu", 1), nodeSelector={"kubernetes.io/hostname": "x1"})
    assert two(by_label, node("x1"), node("x2")) == 2
    asked = Asked([by_label], cluster("c1", node("x1")), cluster("c2", node("x2")))
    assert asked.clusters("a") == "c1"


def test_what_nobody_asks_for_is_no_matter() -> None:
    plain = node("n1")
    more = node("n1", {"rack": "r7"}, more={"nvidia.com/gpu": 4}, devices=[gpu("g1")])
    assert two(PLAIN, plain, more) == 1
    assert two(needing("a", needs("nvidia.com/gpu", 1)), plain, more) == 2
    assert two(needing("a", label("rack", "r7")), plain, more) == 2
    assert two(needing("a", devices("any")), plain, more) == 2


@pytest.mark.parametrize(
    "changed",
    [
        node("n1", cpu=5),
        node("n1", pods=[pod("p", "n1", requests={"cpu": "1m"})]),
        node("n1", held={"cpu": 1}),
        node("n1", unschedulable=True),
        node("n1", is_ready=False),
        node("n1", taints=[{"key": "k", "effect": "NoSchedule"}]),
    ],
)
def test_what_pods_notice_matters(changed: ClusterNode) -> None:
    assert two(PLAIN, node("n1"), changed) == 2


def test_free_is_what_matters_however_it_came_about() -> None:
    pods = [pod("p", "n1", requests={"cpu": 1})]
    assert (
        two(PLAIN, node("n1", cpu=4, pods=pods), node("n1", cpu=4, held={"cpu": 1000, "pods": 1}))
        == 1
    )


def test_pods_that_keep_others_away_matter() -> None:
    ours = {"matchLabels": {"app": "a"}}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": ours}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    hostile = pod("p", "n1", affinity={"podAntiAffinity": required})
    peaceful = pod("p", "n1")
    assert two(PLAIN, node("n1", pods=[hostile]), node("n1", pods=[peaceful])) == 2
    asked = Asked([PLAIN], cluster("c1", node("n1", pods=[hostile])))
    assert asked.clusters("a") == ""
    assert asked.token("a", "c1") == "existing_anti_affinity"


def test_features_and_disks_matter_to_pods_that_need_them() -> None:
    plain = node("n1")
    status = replace(plain.node.status, declared_features=("UserNamespacesHostNetworkSupport",))
    declaring = replace(plain, node=replace(plain.node, status=status))
    inside = needing("a", needs("cpu", 1), hostNetwork=True, hostUsers=False)
    assert two(PLAIN, plain, declaring) == 1
    assert two(inside, plain, declaring) == 2
    asked = Asked([inside], cluster("c1", plain), cluster("c2", declaring))
    assert asked.clusters("a") == "c2"
    disk = {"name": "d", "awsElasticBlockStore": {"volumeID": "v1"}}
    writing = needing("a", needs("cpu", 1), volumes=[disk])
    taken = node("n1", pods=[pod("p", "n1", volumes=[disk])])
    free = node("n1", pods=[pod("p", "n1")])
    assert two(PLAIN, taken, free) == 1
    assert two(writing, taken, free) == 2


def test_devices_matter_by_the_properties_that_are_asked_for() -> None:
    fast = devices(device_class("fast", model="b"))
    one = node("n1", devices=[gpu("g1", model="b", serial="1"), gpu("g2", model="c")])
    other = node("n1", devices=[gpu("x1", model="d"), gpu("x2", model="b", serial="2")])
    assert two(needing("a", fast), one, other) == 2
    same = node("n1", devices=[gpu("x1", model="c"), gpu("x2", model="b", serial="2")])
    assert two(needing("a", fast), one, same) == 1
    assert two(needing("a", fast), one, replace(same, held_devices=frozenset(["x1"]))) == 2


def test_placements_and_words_have_the_names_of_each_cluster() -> None:
    large = needing("a", needs("cpu", 6), kind="StatefulSet")
    asked = Asked(
        [large, needing("b", needs("cpu", 9))],
        cluster("c1", node("x1", cpu=4), node("x2", cpu=8)),
        cluster("c2", node("y1", cpu=8), node("y2", cpu=4)),
    )
    assert asked.nodes("c1", "a") == {"a": {"x2": 1}}
    assert asked.nodes("c2", "a") == {"a": {"y1": 1}}
    assert asked.words("b", "c1") == "cpu: need 9 on one node, largest free 8 (x2)"
    assert asked.words("b", "c2") == "cpu: need 9 on one node, largest free 8 (y1)"
