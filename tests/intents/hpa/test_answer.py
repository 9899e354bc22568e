"""The answer in cases of its own: workloads of every sort, gangs, other apps, and what is cut."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dovetail.intents.candidates.partitions import PartitionCandidates
from dovetail.intents.hpa import packer
from dovetail.intents.hpa.budget import HpaBudget
from dovetail.podfit.packing.solver.problem import BudgetSpent
from tests.intents.hpa.building import (
    Asked,
    app,
    cluster,
    consumer,
    group,
    label,
    needing,
    needs,
    node,
    pod,
    workload,
)

GPU = "nvidia.com/gpu"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOSTNAME = "kubernetes.io/hostname"


def near(**labels: str) -> dict[str, Any]:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": labels}}
    return {"podAffinity": {REQUIRED: [term]}}


# -- workloads


def test_no_replicas_need_nothing() -> None:
    asleep = needing("a", needs(GPU, 8), label("zone", "nowhere"), replicas=0)
    asked = Asked([asleep], cluster("c1", node("n1")), cluster("c2"))
    assert asked.clusters("a") == "c1 c2"
    assert asked.nodes("c1", "a") == {"a": {}}


def test_replicas_of_the_consumer_come_before_those_of_the_object() -> None:
    made = workload("w", replicas=9)
    fewer = app("a", made, consumers=[consumer(made, needs("cpu", 2), replicas=2)])
    assert Asked([fewer], cluster("c1", node("n1"))).nodes("c1", "a") == {"w": {"n1": 2}}


def test_an_app_without_pods_fits_everywhere() -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    asked = Asked([app("a", settings), app("b")], cluster("c1"), cluster("c2", node("n1")))
    assert asked.clusters("a") == asked.clusters("b") == "c1 c2"
    assert asked.nodes("c1", "a", "b") == {}


def test_apps_without_intents_count_with_what_their_charts_say() -> None:
    plain = app("plain", workload("w", requests={"cpu": 3}))
    asked = Asked([plain, needing("b", needs("cpu", 2))], cluster("c1", node("n1", cpu=4)))
    assert asked.sets("c1") == ["plain", "b"]


def test_workloads_without_consumers_count() -> None:
    served, other = workload("served"), workload("other", requests={"cpu": 3})
    both = app("a", served, other, consumers=[consumer(served, needs("cpu", 2))])
    asked = Asked([both], cluster("c1", node("n1", cpu=4)), cluster("c2", node("n1", cpu=5)))
    assert asked.clusters("a") == "c2"


def test_amounts_beyond_all_bounds() -> None:
    asked = Asked(
        [needing("a", needs("memory", 10**40)), needing("b", needs("cpu", 10**30))],
        cluster("c1", node("n1", memory="1E")),
    )
    assert asked.clusters("a") == asked.clusters("b") == ""
    assert asked.token("a", "c1") == "amount"


def test_nodes_that_were_given_too_much_have_nothing() -> None:
    busy = [pod("p", "n1", requests={"cpu": 6})]
    asked = Asked([needing("a", needs("cpu", 1))], cluster("c1", node("n1", cpu=4, pods=busy)))
    assert asked.words("a", "c1") == "cpu: need 1 on one node, largest free 0 (n1)"


def test_a_pod_without_a_uid_counts_as_well() -> None:
    """As in a snapshot that somebody wrote by hand."""
    nameless = [
        replace(each, metadata=replace(each.metadata, uid=""))
        for each in (pod(name, "n1", requests={"cpu": 2}) for name in "pq")
    ]
    asked = Asked([needing("a", needs("cpu", 1))], cluster("c1", node("n1", cpu=4, pods=nameless)))
    assert asked.clusters("a") == ""


def test_ports_of_the_host_are_taken_once_on_a_node() -> None:
    web = workload("web", replicas=2)
    web["spec"]["template"]["spec"]["containers"][0]["ports"] = [
        {"containerPort": 80, "hostPort": 80}
    ]
    asked = Asked([app("a", web)], cluster("c1", node("n1")), cluster("c2", node("n1"), node("n2")))
    assert asked.clusters("a") == "c2"
    assert asked.token("a", "c1") == "host_port"
    assert asked.words("a", "c1") == "host ports: pods cannot be on nodes all at once"


def test_replicas_that_keep_apart_need_nodes_of_their_own() -> None:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "a"}}}
    apart = needing(
        "a", needs("cpu", 1), replicas=2, affinity={"podAntiAffinity": {REQUIRED: [term]}}
    )
    asked = Asked([apart], cluster("c1", node("n1")), cluster("c2", node("n1"), node("n2")))
    assert asked.clusters("a") == "c2"
    assert asked.token("a", "c1") == "pod_anti_affinity"


def test_tolerations_and_selectors_of_the_chart_hold() -> None:
    taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    tolerant = needing(
        "a",
        needs("cpu", 1),
        tolerations=[{"key": "dedicated", "operator": "Exists"}],
        nodeSelector={"zone": "x"},
    )
    asked = Asked(
        [tolerant],
        cluster("c1", node("n1", {"zone": "x"}, taints=[taint])),
        cluster("c2", node("n1", {"zone": "y"})),
    )
    assert asked.clusters("a") == "c1"
    assert asked.words("a", "c2") == "zone=x: no node has it"


# -- DaemonSets


def test_a_daemonset_has_a_pod_on_every_node_that_it_matches() -> None:
    agent = needing("a", needs("cpu", 1), kind="DaemonSet")
    asked = Asked(
        [agent],
        cluster("c1", node("n1"), node("n2", unschedulable=True), node("n3", is_ready=False)),
        cluster("c2", node("n1"), node("n2", cpu="500m")),
    )
    assert asked.nodes("c1", "a") == {"a": {"n1": 1, "n2": 1}}
    assert asked.clusters("a") == "c1"
    assert asked.words("a", "c2") == "cpu: need 1 on every node, least free 500m (n2)"


def test_a_daemonset_that_demands_something_of_nodes_needs_one() -> None:
    picky = needing("picky", label("zone", "x"), kind="DaemonSet")
    idle = app("idle", workload("idle", "DaemonSet", nodeSelector={"zone": "x"}))
    asked = Asked(
        [picky, idle],
        cluster("c1", node("n1", {"zone": "x"}), node("n2", {"zone": "y"})),
        cluster("c2", node("n1", {"zone": "y"})),
    )
    assert asked.nodes("c1", "picky") == {"picky": {"n1": 1}}
    assert asked.clusters("picky") == "c1"
    assert asked.clusters("idle") == "c1 c2"


def test_an_optional_label_of_a_daemonset_holds_on_all_its_nodes_or_not() -> None:
    agent = needing("a", label("zone", "x", optional=5), kind="DaemonSet")
    asked = Asked(
        [agent],
        cluster("c1", node("n1", {"zone": "x"}), node("n2", {"zone": "x"})),
        cluster("c2", node("n1", {"zone": "x"}), node("n2", {"zone": "y"})),
    )
    assert [asked.score("a", each) for each in ("c1", "c2")] == [5, 0]
    assert asked.nodes("c2", "a") == {"a": {"n1": 1, "n2": 1}}


# -- gangs


def test_a_gang_stays_on_one_fabric() -> None:
    gang = needing("a", needs("cpu", 2), replicas=4, within_one="fabric")
    halves = [node(f"n{at}", {"fabric": "xy"[at % 2]}, cpu=2 + 2 * (at // 2)) for at in range(4)]
    asked = Asked(
        [gang],
        cluster("c1", *halves),
        cluster("c2", *halves, node("n4", {"fabric": "y"}, cpu=2)),
        cluster("c3", *(node(f"n{at}", cpu=8) for at in range(3))),
    )
    assert asked.clusters("a") == "c2"
    assert asked.words("a", "c1") == "fabric: no one value has room for all of a"
    assert asked.words("a", "c3") == "fabric Exists: no node has it"
    placed = asked.hpa.placement("p1+c2", ("a",))
    assert placed is not None
    (gang_placed,) = placed.apps[0].workloads
    assert gang_placed.fabrics == {"fabric": "y"}
    assert set(gang_placed.nodes) <= {"n1", "n3", "n4"}
    assert placed.apps[0].consumers[0].within_one == "y"


def test_two_gangs_find_fabrics_that_suit_both() -> None:
    """The first that the one tries leaves no fabric for the other."""
    apps = [
        needing("one", needs("cpu", 1), replicas=2, within_one="fabric"),
        needing("two", needs("cpu", 3), replicas=2, within_one="fabric"),
    ]
    asked = Asked(
        apps,
        cluster(
            "c1",
            *(node(f"x{at}", {"fabric": "x"}, cpu=3) for at in range(2)),
            *(node(f"y{at}", {"fabric": "y"}, cpu=1) for at in range(2)),
        ),
    )
    placed = asked.hpa.placement("p1+c1", ("one", "two"))
    assert placed is not None
    assert [app.workloads[0].fabrics["fabric"] for app in placed.apps] == ["y", "x"]


def test_a_daemonset_as_a_gang_is_on_one_fabric() -> None:
    gang = needing("a", needs("cpu", 1), kind="DaemonSet", within_one="fabric")
    asked = Asked(
        [gang],
        cluster("c1", node("n1", {"fabric": "x"}, cpu=0), node("n2", {"fabric": "y"})),
        cluster("c2", node("n1")),
    )
    assert asked.nodes("c1", "a") == {"a": {"n2": 1}}
    assert asked.clusters("a") == "c1"


# -- apps together


def test_apps_get_less_together_than_each_alone() -> None:
    """A GPU that both would like: both fit, one gets it, and the cluster counts as contended."""
    apps = [needing(name, needs(GPU, 1, optional=at + 4)) for at, name in enumerate("ab")]
    asked = Asked(
        apps,
        cluster("c1", node("n1", more={GPU: 1})),
        cluster("c2", node("n1", more={GPU: 2})),
    )
    assert (asked.score("a", "c1"), asked.score("b", "c1")) == (4, 5)
    assert asked.sets("c1") == ["a+b"]
    assert asked.why("c1") == "a+b: nvidia.com/gpu"
    assert [asked.joint(each, "a", "b") for each in ("c1", "c2")] == [5, 9]
    assert asked.sets("c2") == []


def test_an_app_that_wants_to_be_near_another_fits_with_it() -> None:
    """By itself it fits nowhere; the pick is told so by the scores of sets."""
    leader, follower = needing("a", needs("cpu", 1)), needing("b", affinity=near(app="a"))
    asked = Asked([leader, follower], cluster("c1", node("n1")), cluster("c2"))
    assert asked.clusters("b") == "c1"
    assert asked.joint("c1", "b") is None
    assert asked.joint("c1", "a") == 0
    assert asked.joint("c1", "a", "b") == 0
    assert "a+b" in asked.sets("c1")
    assert asked.nodes("c1", "a", "b") == {"a": {"n1": 1}, "b": {"n1": 1}}


def test_clusters_outside_of_the_logical_cloud_are_not_looked_at() -> None:
    only = group(needing("a", needs("cpu", 1)), only=["c2"])
    asked = Asked(only, cluster("c1", node("n1")), cluster("c2", node("n1")))
    assert asked.clusters("a") == "c2"
    assert asked.token("a", "c1") == "outside_cloud"
    assert asked.hpa.placement("p1+c1", ("a",)) is None
    assert asked.joint("c1", "a") is None


def test_a_cluster_that_nobody_knows() -> None:
    asked = Asked([needing("a", needs("cpu", 1))], cluster("c1", node("n1")))
    assert asked.joint("c9", "a") is None
    assert asked.hpa.placement("p1+c9", ("a",)) is None


# -- what is cut


def test_what_is_undecided_is_refused_and_never_said_to_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def give_up(*_: object) -> None:
        raise BudgetSpent

    monkeypatch.setattr(packer, "assignment_of", give_up)
    apart = needing("a", needs("cpu", 1), affinity=near(app="a"))
    asked = Asked([apart, needing("b", needs("cpu", 1))], cluster("c1", node("n1")))
    assert asked.clusters("a") == ""
    assert asked.token("a", "c1") == "undecided"
    assert asked.clusters("b") == "c1"
    assert asked.joint("c1", "a") is None
    assert asked.hpa.placement("p1+c1", ("a",)) is None


def test_many_sets_are_cut_and_nobody_is_left_out() -> None:
    apps = [needing(f"a{at}", needs("cpu", 1)) for at in range(8)]
    asked = Asked(apps, cluster("c1", node("n1", cpu=4)), budget=HpaBudget(sets=5))
    candidates = asked.answer.candidates
    assert isinstance(candidates, PartitionCandidates)
    assert not candidates.is_complete
    sets = [set(each.split("+")) for each in asked.sets("c1")]
    assert all(len(each) == 4 for each in sets)
    assert set.union(*sets) == {each.name for each in apps}


def test_an_answer_that_nobody_wants_ends() -> None:
    class Cancelled(Exception):
        pass

    def cancel() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        Asked(
            [needing("a", needs("cpu", 1))],
            cluster("c1", node("n1")),
            budget=HpaBudget(check=cancel),
        )
