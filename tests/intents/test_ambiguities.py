"""Rows of the table of ambiguities that are about what documents mean, by their numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from dovetail.intents.affinity import affinity_answer
from dovetail.intents.assembling import WrittenDocument, requirement_of
from dovetail.intents.candidates.cluster_set import ClusterSet
from dovetail.intents.candidates.combining import combine
from dovetail.intents.candidates.partitions import AppCompatibility, PartitionCandidates
from dovetail.intents.group import (
    AllocatableRequirement,
    AppAffinityRule,
    DeploymentGroup,
    GroupApp,
    HpaIntent,
    ResourceConsumer,
)
from dovetail.intents.hpa.answer import hpa_answer
from dovetail.intents.manifests.editing import edited
from dovetail.intents.manifests.grants import AppGrants
from dovetail.intents.manifests.quantities import amount_of
from dovetail.intents.manifests.workloads import KINDS, pods_of, with_requirements
from tests.intents.candidates.section8 import listed, lists
from tests.intents.manifests.charts import app, workload
from tests.support.intents import scenario
from tests.support.intents.hardware import GPU
from tests.support.intents.scenario import ANALYTICS, C2, C3, C4, FWALL

THREE = ("c1", "c2", "c3")


def written(**spec: Any) -> AllocatableRequirement:
    found = requirement_of(WrittenDocument("x/r", "hpa-requirement", {"spec": spec}))
    assert isinstance(found, AllocatableRequirement)
    return found


def test_row_4_replicas_of_a_consumer_override_those_of_the_object() -> None:
    [made] = pods_of(app(workload("Deployment")), "default")
    for said, count in ((None, made.count), (3, 3)):
        consumer = ResourceConsumer(name="k", kind="", object_name=made.name, replicas=said)
        assert with_requirements(made, consumer, ()).count == count


def test_row_14_all_kinds_that_make_pods_are_consumers() -> None:
    made = app(*(workload(kind) for kind in KINDS))
    assert [each.kind for each in pods_of(made, "default")] == list(KINDS)
    assert {"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod"} <= set(KINDS)


def test_row_15_mandatory_weight_and_units_are_read() -> None:
    memory = {"name": "memory", "requests": 2, "units": "GiB"}
    found = written(allocatable=True, mandatory=False, weight=7, resource=memory)
    assert (found.mandatory, found.weight, found.requests) == (False, 7, Fraction(2**31))
    silent = written(allocatable=True, resource=memory)
    assert (silent.mandatory, silent.weight) == (True, 1)


def test_row_16_the_shorter_list_wins_and_a_tie_is_allow() -> None:
    four = ("c1", "c2", "c3", "c4")
    assert ClusterSet.allow(four[:3]).compact(four) == ClusterSet.deny(four[3:])
    assert ClusterSet.deny(four[:2]).compact(four) == ClusterSet.allow(four[2:])


def test_row_19_amounts_are_exact_whatever_the_unit() -> None:
    assert amount_of("memory", 2, "GB") == amount_of("memory", 2000, "MB") == 2 * 10**9
    assert amount_of("memory", 1000) == 10**9
    assert amount_of("cpu", "500m") == Fraction(1, 2)


def test_row_21_every_pod_has_a_node_with_all_that_it_needs() -> None:
    """c3 has nine CPUs, and none of its nodes the four of core-fwall."""
    found = hpa_answer(scenario.base().group, scenario.base().fleet)
    assert found.placement(C3, [FWALL]) is None
    placement = found.placement(C2, [FWALL])
    assert placement is not None
    [fwall] = placement.apps
    assert {each.name: dict(each.nodes) for each in fwall.workloads} == {
        "core-fwall": {"n1": 1},
        "api-server": {"n2": 1},
    }


def test_row_22_a_cluster_that_takes_both_apps_is_in_both_lists() -> None:
    candidates = hpa_answer(scenario.base().group, scenario.base().fleet).answer.candidates
    assert isinstance(candidates, PartitionCandidates)
    (alternative,) = candidates.alternatives
    assert all(
        C4 in part.clusters for name in (FWALL, ANALYTICS) for part in alternative[name].parts
    )
    assert [each.cluster for each in candidates.contended] == [C2]


def test_row_23_the_largest_count_wins_and_has_to_be_there() -> None:
    def counted(*counts: int) -> list[str]:
        answers = [
            lists(f"controller-{at}", a=listed(ClusterSet.allow(THREE), count))
            for at, count in enumerate(counts)
        ]
        return [each.words for each in combine(answers, ("a",), THREE).refusals]

    assert counted(1, 3) == []
    assert counted(1, 4) == ["count 4 > 3 clusters"]


def test_row_24_deny_is_read_both_ways_round_and_require_is_not() -> None:
    apps = tuple(GroupApp(name=name) for name in ("a", "b"))

    def said(rule: AppAffinityRule) -> object:
        return affinity_answer(DeploymentGroup(name="g", apps=apps, affinity=(rule,))).candidates

    denied = AppCompatibility(denied=frozenset({("a", "b")}))
    assert said(AppAffinityRule(app="a", deny=("b",))) == denied
    assert said(AppAffinityRule(app="b", deny=("a",))) == denied
    required = AppCompatibility(required=frozenset({("b", "a")}))
    assert said(AppAffinityRule(app="b", require=("a",))) == required


@pytest.mark.parametrize("resource", [GPU, "hugepages-2Mi"])
def test_row_25_what_cannot_be_overcommitted_gets_the_larger_as_both(resource: str) -> None:
    of = app(workload("Deployment"))
    [made] = pods_of(of, "default")
    wanted = AllocatableRequirement(
        name="r", resource=resource, requests=Fraction(2**21), limits=Fraction(2**22)
    )
    consumer = ResourceConsumer(
        name="k", kind="", object_name=made.name, container="main", requirements=(wanted,)
    )
    intent = HpaIntent(name="i", app=of.name, consumers=(consumer,))
    found = edited(of, [intent], AppGrants(deployment="d"), "default")
    resources = found.objects[0]["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert resources["requests"] == resources["limits"]
    assert amount_of(resource, resources["limits"][resource]) == 2**22
