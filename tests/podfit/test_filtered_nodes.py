"""Why no node fits, counted, in the way that users of kube-scheduler know."""

from __future__ import annotations

from dovetail.core.explanation import Counted, Reason, Verdict
from dovetail.core.explanation_text import FILTER_TEXTS
from dovetail.podfit.filters import FILTERS
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


# -- the explanation -------------------------------------------------------------------------------


def test_a_pod_that_fits_is_explained_by_the_funnel() -> None:
    told = Fleet([node("a"), node("b", cpu="1")]).verdict(pod("p", requests={"cpu": "2"}))
    explanation = told.explanation()
    assert (explanation.verdict, explanation.of) == (Verdict.FITS, Counted.NODES)
    assert (explanation.total, explanation.fitting) == (2, 1)
    assert explanation.summary == str(told)
    assert [(each.reason, each.left) for each in explanation.funnel] == [(Reason.AMOUNT, 1)]
    assert explanation.nearest == ()


def test_the_nearest_nodes_say_what_is_short_and_by_how_much() -> None:
    taint = [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]
    fleet = Fleet(
        [node("far", taints=taint, cpu="1"), node("small", cpu="1"), node("near", cpu="1500m")]
    )
    told = fleet.verdict(pod("p", requests={"cpu": "2"})).explanation(nearest=3)
    assert [(each.reason, each.left, each.words) for each in told.funnel] == [
        (Reason.TAINT, 2, "no taint that the pod does not tolerate"),
        (Reason.AMOUNT, 0, "room for the pod's requests"),
    ]
    assert [each.name for each in told.nearest] == ["near", "small", "far"]
    (finding,) = told.nearest[0].findings
    assert (finding.reason, finding.constraint, finding.provider) == ("amount", "cpu:2", "near")
    assert (finding.wanted, finding.free) == (2000, 1500)
    assert (finding.capacity, finding.short) == (1500, 500)
    assert finding.words == "Insufficient cpu: wants 2, free 1500m of 1500m, 500m short"
    assert [each.reason for each in told.nearest[2].findings] == [Reason.TAINT, Reason.AMOUNT]


def test_what_is_in_use_can_be_freed_and_what_is_not_there_cannot() -> None:
    big = pod("big", requests={"cpu": "3"}, on="n")
    ask = pod("p", requests={"cpu": "2"})
    busy = Fleet([node("n", cpu="4")], [big]).verdict(ask).explanation()
    assert (busy.verdict, busy.nearest[0].findings[0].ever) == (Verdict.NOT_NOW, True)
    small = Fleet([node("n", cpu="1")]).verdict(ask).explanation()
    assert (small.verdict, small.nearest[0].findings[0].ever) == (Verdict.NEVER, False)
    cordoned = Fleet([node("n", unschedulable=True)]).verdict(ask).explanation()
    assert (cordoned.verdict, cordoned.nearest[0].findings[0].ever) == (Verdict.NEVER, False)
    none = Fleet([]).verdict(ask).explanation()
    assert (none.verdict, none.nearest) == (Verdict.NEVER, ())


def test_pods_that_are_there_may_leave_and_others_may_come() -> None:
    web = {"matchLabels": {"app": "web"}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    apart = {"podAntiAffinity": {required: [{"topologyKey": "zone", "labelSelector": web}]}}
    near = {"podAffinity": {required: [{"topologyKey": "zone", "labelSelector": web}]}}
    port = {"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}
    fleet = Fleet([node("n", {"zone": "a"})], [pod("w", {"app": "web"}, on="n", containers=[port])])
    alone = Fleet([node("n", {"zone": "a"}), node("bare")])
    for world, ask, token in (
        (fleet, pod("p", affinity=apart), Reason.POD_ANTI_AFFINITY),
        (fleet, pod("p", containers=[port]), Reason.HOST_PORT),
        (alone, pod("p", affinity=near), Reason.POD_AFFINITY),
    ):
        told = world.verdict(ask).explanation()
        (finding,) = told.nearest[0].findings
        assert (told.verdict, finding.reason, finding.ever) == (Verdict.NOT_NOW, token, True)
    bare = Fleet([node("bare")]).verdict(pod("p", affinity=near)).explanation()
    assert bare.verdict is Verdict.NEVER


def test_every_filter_has_a_token_of_its_own_and_words_for_it() -> None:
    tokens = [each.TOKEN for each in FILTERS]
    assert sorted(set(tokens)) == sorted(tokens)
    assert set(tokens) == set(FILTER_TEXTS)
