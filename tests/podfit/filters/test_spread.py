"""Topology spread constraints that must hold, after the examples of Kubernetes' page on them."""

from __future__ import annotations

from typing import Any

from tests.podfit.building import REQUIRED, Fleet, node, pod

FOO = {"foo": "bar"}
ZONES = (
    node("node1", {"zone": "zoneA"}),
    node("node2", {"zone": "zoneA"}),
    node("node3", {"zone": "zoneB"}),
    node("node4", {"zone": "zoneB"}),
)


def spread(key: str, skew: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": FOO},
        **more,
    }


def three_pods() -> Fleet:
    return Fleet(
        ZONES, [pod("one", FOO, on="node1"), pod("two", FOO, on="node2"), pod("x", FOO, on="node3")]
    )


def test_one_constraint() -> None:
    ask = pod("mypod", FOO, topologySpreadConstraints=[spread("zone")])
    fleet = three_pods()
    assert fleet.fitting(ask) == "node3 node4"
    assert (
        fleet.why(ask, "node1") == "spreading: zone=zoneA would be 2 above the emptiest, 1 may be"
    )


def test_a_larger_skew_allows_more() -> None:
    ask = pod("mypod", FOO, topologySpreadConstraints=[spread("zone", 2)])
    assert three_pods().fitting(ask) == "node1 node2 node3 node4"


def test_two_constraints_have_to_hold_both() -> None:
    both = [spread("zone"), spread("kubernetes.io/hostname")]
    assert three_pods().fitting(pod("mypod", FOO, topologySpreadConstraints=both)) == "node4"


def test_two_constraints_can_be_in_each_others_way() -> None:
    nodes, names = ZONES[:3], ("node1", "node1", "node2", "node3", "node3")
    there = [pod(f"p{n}", FOO, on=name) for n, name in enumerate(names)]
    both = [spread("zone"), spread("kubernetes.io/hostname")]
    assert Fleet(nodes, there).fitting(pod("mypod", FOO, topologySpreadConstraints=both)) == ""


def test_nodes_the_pod_cannot_go_to_are_no_domains() -> None:
    """zoneC is emptier, but node affinity keeps the pod out of it."""
    nodes = [*ZONES, node("node5", {"zone": "zoneC"})]
    expression = {"key": "zone", "operator": "NotIn", "values": ["zoneC"]}
    term = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {REQUIRED: term}}
    there = [pod("one", FOO, on="node1"), pod("two", FOO, on="node2"), pod("x", FOO, on="node3")]
    fleet = Fleet(nodes, there)

    def fitting(**more: Any) -> str:
        constraints = [spread("zone", **more)]
        return fleet.fitting(
            pod("mypod", FOO, affinity=affinity, topologySpreadConstraints=constraints)
        )

    assert fitting() == "node3 node4"
    assert fitting(nodeAffinityPolicy="Ignore") == ""


def test_tainted_nodes_are_domains_unless_taints_are_honored() -> None:
    empty = node("tainted", {"zone": "zoneC"}, taints=[{"key": "k", "effect": "NoSchedule"}])
    fleet = Fleet([*ZONES, empty], [pod("one", FOO, on="node1"), pod("two", FOO, on="node3")])
    ignored = [spread("zone")]
    honored = [spread("zone", nodeTaintsPolicy="Honor")]
    assert fleet.fitting(pod("p", FOO, topologySpreadConstraints=ignored)) == ""
    assert fleet.fitting(pod("p", FOO, topologySpreadConstraints=honored)) == (
        "node1 node2 node3 node4"
    )


def test_fewer_domains_than_wanted_count_as_an_empty_one() -> None:
    fleet = Fleet(ZONES, [pod("one", FOO, on="node1"), pod("two", FOO, on="node3")])
    enough = [spread("zone", minDomains=2)]
    too_few = [spread("zone", minDomains=3)]
    assert fleet.fitting(pod("p", FOO, topologySpreadConstraints=enough)) != ""
    assert fleet.fitting(pod("p", FOO, topologySpreadConstraints=too_few)) == ""


def test_nodes_without_the_label_get_none_of_the_pods_and_theirs_do_not_count() -> None:
    fleet = Fleet([node("bare"), *ZONES], [pod("one", FOO, on="bare"), pod("two", FOO, on="node3")])
    ask = pod("p", FOO, topologySpreadConstraints=[spread("zone")])
    assert fleet.fitting(ask) == "node1 node2"
    assert fleet.why(ask, "bare") == "spreading wants label zone, which the node has not"


def test_only_pods_of_the_namespace_that_stay_are_counted() -> None:
    there = [pod("one", FOO, on="node1", leaving=True), pod("two", FOO, on="node2", namespace="x")]
    ask = pod("p", FOO, topologySpreadConstraints=[spread("zone")])
    assert Fleet(ZONES, there).fitting(ask) == "node1 node2 node3 node4"


def test_match_label_keys_spread_each_revision_by_itself() -> None:
    old, new = {**FOO, "hash": "1"}, {**FOO, "hash": "2"}
    constraints = [spread("zone", matchLabelKeys=["hash"])]
    fleet = Fleet(ZONES, [pod("old", old, on="node1")])
    assert fleet.fitting(pod("p", old, topologySpreadConstraints=constraints)) == "node3 node4"
    assert fleet.fitting(pod("p", new, topologySpreadConstraints=constraints)) == (
        "node1 node2 node3 node4"
    )


def test_an_empty_selector_counts_no_pod() -> None:
    """As kube-scheduler does, though the same selector elsewhere means all pods."""
    constraints = [spread("zone", labelSelector={})]
    fleet = Fleet(ZONES, [pod("one", on="node1"), pod("two", on="node1")])
    assert fleet.fitting(pod("p", topologySpreadConstraints=constraints)) == (
        "node1 node2 node3 node4"
    )


def test_a_constraint_that_may_be_broken_rules_out_no_node() -> None:
    soft = [spread("zone", whenUnsatisfiable="ScheduleAnyway")]
    assert three_pods().fitting(pod("p", FOO, topologySpreadConstraints=soft)) == (
        "node1 node2 node3 node4"
    )
