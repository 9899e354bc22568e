"""The acceptance scenario as far as the HPA controller goes: base case and variants."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from dovetail.intents.candidates.cluster_set import ClusterSet
from dovetail.intents.candidates.partitions import PartitionCandidates
from dovetail.intents.fleet import FleetSnapshot
from dovetail.intents.hpa.answer import HpaAnswer, hpa_answer
from dovetail.intents.hpa.cluster_shape import stock_of
from dovetail.intents.hpa.placement import AppPlacement, ClusterPlacement
from tests.support.intents import scenario
from tests.support.intents.scenario import ANALYTICS, C1, C2, C3, C4, FWALL, Scenario


def answered(asked: Scenario) -> HpaAnswer:
    return hpa_answer(asked.group, asked.fleet)


def listed(found: HpaAnswer, app: str) -> ClusterSet:
    candidates = found.answer.candidates
    assert isinstance(candidates, PartitionCandidates)
    (alternative,) = candidates.alternatives
    (part,) = alternative[app].parts
    return part.clusters


def feasible(found: HpaAnswer, app: str) -> list[str]:
    return list(listed(found, app).within((C1, C2, C3, C4)))


def placed(found: HpaAnswer, cluster: str, *apps: str) -> ClusterPlacement:
    placement = found.placement(cluster, apps)
    assert placement is not None
    return placement


def test_base_case_each_app_alone() -> None:
    found = answered(scenario.base())
    assert listed(found, FWALL) == ClusterSet.deny([C3])
    assert listed(found, ANALYTICS) == ClusterSet.deny([C1])
    assert found.answer.scores == {FWALL: {C1: 9}}
    assert found.answer.controller == "hpa"


def test_base_case_c2_takes_one_of_the_two() -> None:
    candidates = answered(scenario.base()).answer.candidates
    assert isinstance(candidates, PartitionCandidates)
    (contended,) = candidates.contended
    assert contended.cluster == C2
    assert contended.fitting == (frozenset([FWALL]), frozenset([ANALYTICS]))
    assert contended.why == "fwall+analytics: cpu"
    assert candidates.is_complete


def test_base_case_both_together() -> None:
    found = answered(scenario.base())
    joint = {each: found.score_of_set(each, (FWALL, ANALYTICS)) for each in (C1, C2, C3, C4)}
    assert joint == {C1: None, C2: None, C3: None, C4: 0}


def test_base_case_says_why_not() -> None:
    refusals = answered(scenario.base()).answer.refusals
    assert refusals[FWALL][C3].words == "cpu: need 4 on one node, largest free 3 (n1,n2,n3)"
    assert refusals[ANALYTICS][C1].words == "intel.com/qat: need 1, none"
    assert {app: list(found) for app, found in refusals.items()} == {FWALL: [C3], ANALYTICS: [C1]}


def test_c1_gives_the_gpu_to_core_fwall() -> None:
    (app,) = placed(answered(scenario.base()), C1, FWALL).apps
    core, api = app.workloads
    assert core.nodes == {"n1": 1}
    assert core.amounts["nvidia.com/gpu"] == 1
    assert [(each.requirement, each.granted) for each in app.options] == [
        ("core-fwall-gpu-needs", True)
    ]
    assert core.exclusivity.qos == "Guaranteed"
    assert core.exclusivity.exclusive == {"palo-alto-e3000": 4}
    assert api.exclusivity.qos == "Burstable"
    assert (core.pin, api.pin) == (None, None)


def test_c2_pins_api_server_away_from_the_node_of_core_fwall() -> None:
    placement = placed(answered(scenario.base()), C2, FWALL)
    core, api = placement.apps[0].workloads
    assert (core.nodes, api.nodes) == ({"n1": 1}, {"n2": 1})
    assert core.pin is None
    assert api.pin is not None
    assert api.pin.nodes == ("n2",)
    assert api.pin.why == "elsewhere api-server could take the room of core-fwall on n1"
    assert placement.unproved == ()


def test_c3_serves_analytics_without_pins() -> None:
    placement = placed(answered(scenario.base()), C3, ANALYTICS)
    ai_model, logger = placement.apps[0].workloads
    assert logger.nodes == {"n3": 1}
    assert (ai_model.pin, logger.pin) == (None, None)
    assert (ai_model.exclusivity.qos, logger.exclusivity.qos) == ("Burstable", "BestEffort")


@pytest.mark.parametrize("changed", [scenario.v1_away(), scenario.v1_cordoned()])
def test_v1_without_c1_there_is_no_gpu(changed: Scenario) -> None:
    found = answered(changed)
    assert feasible(found, FWALL) == [C2, C4]
    assert feasible(found, ANALYTICS) == [C2, C3, C4]
    assert found.answer.scores == {}
    (core, _) = placed(found, C2, FWALL).apps[0].workloads
    assert "nvidia.com/gpu" not in core.amounts


def test_v1_a_cluster_that_does_not_answer_is_named() -> None:
    refusals = answered(scenario.v1_away()).answer.refusals
    assert {refusals[app][C1].token for app in (FWALL, ANALYTICS)} == {"away"}
    assert refusals[FWALL][C1].words == "the cluster does not answer: connection refused"


def test_v1_cordoned_nodes_are_named() -> None:
    refusals = answered(scenario.v1_cordoned()).answer.refusals
    assert refusals[FWALL][C1].token == "unschedulable"


def test_v3_two_replicas_share_no_single_gpu() -> None:
    found = answered(scenario.v3())
    assert feasible(found, FWALL) == [C1, C4]
    assert found.answer.scores == {}
    core, _ = placed(found, C1, FWALL).apps[0].workloads
    assert core.nodes == {"n1": 2}
    assert "nvidia.com/gpu" not in core.amounts
    assert found.answer.refusals[FWALL][C2].words == "cpu: need 9 in all, free 5"


def test_v4_a_mandatory_gpu_leaves_c1() -> None:
    found = answered(scenario.v4())
    assert listed(found, FWALL) == ClusterSet.allow([C1])
    assert found.answer.refusals[FWALL][C4].words == "nvidia.com/gpu: need 1, none"


def test_v5_and_v6_are_nothing_to_hardware() -> None:
    base = answered(scenario.base()).answer
    assert answered(scenario.v5()).answer == base
    assert answered(scenario.v6()).answer == base


def test_v7_six_groups_and_one_gpu() -> None:
    """One after another, each on the first cluster of best score; what is placed is held."""
    asked = scenario.v7()
    fleet, taken = asked.fleet, []
    while True:
        found = hpa_answer(asked.group, fleet)
        clusters = feasible(found, FWALL)
        if not clusters:
            break
        scores = found.answer.scores.get(FWALL, {})
        best = max(clusters, key=lambda each: scores.get(each, 0))
        (app,) = placed(found, best, FWALL).apps
        taken.append((best, app.score))
        fleet = _with_claim(fleet, best, app)
    assert taken == [(C1, 9), (C1, 0), (C2, 0), (C4, 0), (C4, 0), (C4, 0)]


def _with_claim(fleet: FleetSnapshot, cluster: str, app: AppPlacement) -> FleetSnapshot:
    """The fleet with what the app takes held in the ledger; its pods are to come."""
    there, charges = fleet.clusters[cluster], app.charges()
    nodes = []
    for node in there.nodes:
        stock, more = stock_of(node), charges.get(node.node.metadata.name, {})
        held = {
            name: stock.pods.get(name, 0) + stock.aside.get(name, 0) + more.get(name, 0)
            for name in _names(stock.pods, stock.aside, more)
        }
        nodes.append(replace(node, held=held))
    changed = replace(there, nodes=tuple(nodes))
    return replace(fleet, clusters={**fleet.clusters, cluster: changed})


def _names(*mappings: Iterable[str]) -> set[str]:
    return {name for each in mappings for name in each}


def test_v8_half_a_cpu() -> None:
    found = answered(scenario.v8())
    assert feasible(found, FWALL) == [C1, C2, C4]
    assert feasible(found, ANALYTICS) == [C2, C3, C4]
    _, api = placed(found, C1, FWALL).apps[0].workloads
    assert api.amounts["cpu"] == 500


@pytest.mark.parametrize(("free", "clusters"), [("500m", [C1, C2, C4]), ("499m", [C1, C4])])
def test_v8_to_the_last_thousandth(free: str, clusters: list[str]) -> None:
    assert feasible(answered(scenario.v8(free)), FWALL) == clusters


@pytest.mark.parametrize(("units", "amount"), [("GB", 2 * 10**9), ("GiB", 2 * 2**30)])
def test_v10_units_of_memory(units: str, amount: int) -> None:
    core, _ = placed(answered(scenario.v10(units)), C1, FWALL).apps[0].workloads
    assert core.amounts["memory"] == amount
    assert feasible(answered(scenario.v10(units)), FWALL) == [C1, C2, C4]


def test_the_same_on_every_run() -> None:
    asked = scenario.base()
    assert hpa_answer(asked.group, asked.fleet).answer == answered(asked).answer
