"""Why no node fits, counted, in the way that users of kube-scheduler know."""

from __future__ import annotations

from tests.podfit.building import Fleet, node, pod


def test_each_node_counts_for_the_first_thing_it_misses() -> None:
    taint = [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]
    nodes = [
        node("small-1", cpu="1"),
        node("small-2", cpu="1"),
        node("small-3", cpu="1"),
        node("tainted-1", taints=taint, cpu="1"),
        node("tainted-2", taints=taint),
    ]
    assert str(Fleet(nodes).verdict(pod("p", requests={"cpu": "2"}))) == (
        "0/5 nodes are available: 3 Insufficient cpu,"
        " 2 node(s) had untolerated taint {dedicated: db}."
    )


def test_a_node_that_lacks_two_resources_counts_for_both() -> None:
    fleet = Fleet([node("n", cpu="1", memory="1Gi", pods="0")])
    assert fleet.verdict(pod("p", requests={"cpu": "2", "memory": "2Gi"})).reasons() == {
        "Too many pods": 1,
        "Insufficient cpu": 1,
        "Insufficient memory": 1,
    }


def test_every_filter_has_its_words() -> None:
    zone, host = "zone", "kubernetes.io/hostname"
    web = {"matchLabels": {"app": "web"}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    port = {"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}
    apart = {"podAntiAffinity": {required: [{"topologyKey": host, "labelSelector": web}]}}
    spread = {
        "topologyKey": zone,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": web,
    }
    nodes = [
        node("cordoned", unschedulable=True),
        node("other", {"kind": "other"}),
        node("busy", {"kind": "right"}),
        node("unlabelled", {"kind": "right"}),
        node("shy", {"kind": "right", zone: "a"}),
        node("crowded", {"kind": "right", zone: "b"}),
        node("empty", {"kind": "other", zone: "c"}),
    ]
    there = [
        pod("port", on="busy", containers=[port]),
        pod("shy", on="shy", affinity=apart),
        pod("w1", {"app": "web"}, on="crowded"),
        pod("w2", {"app": "web"}, on="crowded"),
    ]
    ask = pod(
        "p",
        {"app": "web"},
        containers=[port],
        nodeSelector={"kind": "right"},
        topologySpreadConstraints=[spread],
    )
    assert str(Fleet(nodes, there).verdict(ask)) == (
        "0/7 nodes are available: 2 node(s) didn't match Pod's node affinity/selector,"
        " 1 node(s) didn't have free ports for the requested pod ports,"
        " 1 node(s) didn't match pod topology spread constraints,"
        " 1 node(s) didn't match pod topology spread constraints (missing required label),"
        " 1 node(s) didn't satisfy existing pods anti-affinity rules,"
        " 1 node(s) were unschedulable."
    )
    near = {"podAffinity": {required: [{"topologyKey": zone, "labelSelector": web}]}}
    assert str(Fleet(nodes[4:5], there).verdict(pod("p", affinity=near))) == (
        "0/1 nodes are available: 1 node(s) didn't match pod affinity rules."
    )
    assert str(Fleet(nodes[5:6], there).verdict(pod("p", affinity=apart))) == (
        "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules."
    )


def test_no_nodes() -> None:
    assert str(Fleet([]).verdict(pod("p"))) == (
        "0/0 nodes are available: no nodes available to schedule pods."
    )


def test_nodes_that_fit_are_counted() -> None:
    assert str(Fleet([node("a"), node("b")]).verdict(pod("p"))) == "2/2 nodes are available."
