"""Wherever the operator dies, the next plan finds how things stand, and goes on from there."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from dovetail.machines.names import UNIT_GROUP, UNIT_GROUP_SIZE
from dovetail.machines.pods import is_guest
from dovetail.machines.snapshot import UnitRecord
from dovetail.machines.survey import Survey
from dovetail.podfit.objects import Pod
from tests.machines.building import machine, node
from tests.machines.lab import Lab, kind, small
from tests.machines.simulation.cluster import SimulatedCluster
from tests.machines.simulation.operator import SimulatedOperator
from tests.machines.simulation.oracle import check_numbers
from tests.machines.simulation.rest import Rest

HALF = kind("half", 2, 4, spec={"dependence": {"parent": "quad", "availableRatio": 0.5}})
SPEC = small(kind("quad", 4, 3), HALF, nodes={"a": "quad", "b": "quad"})


def begun(seed: int) -> SimulatedOperator:
    nodes = [node("a", cpu=8, memory="1Ti", gpus=0), node("b", cpu=8, memory="1Ti", gpus=0)]
    cluster = SimulatedCluster(machine(SPEC), nodes, random.Random(seed))
    operator = SimulatedOperator(cluster)
    operator.settle()
    return operator


def one_comes(operator: SimulatedOperator) -> None:
    operator.cluster.create_guest("quad")


def a_half_comes(operator: SimulatedOperator) -> None:
    operator.cluster.create_guest("half")


def a_group_comes(operator: SimulatedOperator) -> None:
    for _ in range(3):
        operator.cluster.create_guest(
            "quad", labels={UNIT_GROUP: "three"}, annotations={UNIT_GROUP_SIZE: "3"}
        )


def one_goes_and_another_comes(operator: SimulatedOperator) -> None:
    one_comes(operator)
    operator.settle()
    [guest] = [uid for uid, pod in operator.cluster.pods.items() if is_guest(pod)]
    operator.cluster.end(guest)
    one_comes(operator)


def a_node_fails_as_one_comes(operator: SimulatedOperator) -> None:
    one_comes(operator)
    operator.cluster.set_ready("a", False)


EVENTS = [one_comes, a_half_comes, a_group_comes, one_goes_and_another_comes]
EVENTS.append(a_node_fails_as_one_comes)


@pytest.mark.parametrize("event", EVENTS)
def test_whatever_write_the_operator_dies_after_it_ends_the_same(
    event: Callable[[SimulatedOperator], None],
) -> None:
    """After each write of the first plan, and of the second: nobody is sold twice, and all who can
    be are served."""
    dies_at = 0
    is_over = False
    while not is_over:
        is_over = True
        for seed in range(3):
            operator = begun(seed)
            event(operator)
            left = dies_at
            for _ in range(2):
                operator.cluster.run_stateful_sets()
                operator.look()
                for _ in operator.carrying_out(operator.plan()):
                    check_numbers(operator.cluster, set())
                    if not left:
                        is_over = False
                        break
                    left -= 1
            plan = operator.settle()
            Rest(operator, plan).check()
            assert plan.waiting == {}
        dies_at += 1
    assert dies_at > 4, "sold, written, deleted, lifted"


# -- each case by itself -------------------------------------------------------------------------


def lab() -> Lab:
    return Lab(small(kind("quad", 4, 3), nodes={"a": "quad", "b": "quad"}))


def unit(node_name: str = "a", *, is_stock: bool = False) -> UnitRecord:
    return UnitRecord("quad", node_name, is_stock, 0)


def with_spec(pod: Pod, **changes: Any) -> Pod:
    return replace(pod, spec=replace(pod.spec, **changes))


def names(pods: Any) -> list[str]:
    return [pod.metadata.name for pod in pods]


def test_a_guest_behind_its_gate_waits() -> None:
    found = lab()
    found.ask("guest", "quad")
    survey = Survey(found.snapshot())
    assert (names(survey.waiting), survey.holders) == (["guest"], [])


def test_with_a_unit_its_gate_is_to_be_lifted() -> None:
    found = lab()
    found.ask("guest", "quad")
    found.units["guest"] = unit()
    survey = Survey(found.snapshot())
    assert (survey.waiting, names(survey.holders)) == ([], ["guest"])
    assert [(pod.metadata.name, at) for pod, at in survey.granted] == [("guest", "a")]


def test_let_go_it_holds_its_unit_until_it_is_bound() -> None:
    found = lab()
    found.guests["guest"] = with_spec(found.ask("guest", "quad"), scheduling_gates=())
    found.units["guest"] = unit()
    survey = Survey(found.snapshot())
    assert (names(survey.holders), survey.granted, survey.releases) == (["guest"], [], [])
    assert survey.places == {"guest": "a"}


@pytest.mark.parametrize("known", [None, unit("b"), UnitRecord("other", "a", False, 0)])
def test_bound_without_its_unit_it_is_adopted_where_it_is(known: UnitRecord | None) -> None:
    found = lab()
    bound = with_spec(found.ask("guest", "quad"), scheduling_gates=(), node_name="a")
    found.guests["guest"] = bound
    if known is not None:
        found.units["guest"] = known
    survey = Survey(found.snapshot())
    assert names(survey.adoptions) == ["guest"]
    assert survey.places == {"guest": "a"}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_over_it_gives_its_unit_back(phase: str) -> None:
    found = lab()
    guest = found.sold("guest", "quad")
    found.guests["guest"] = replace(guest, status=replace(guest.status, phase=phase))
    survey = Survey(found.snapshot())
    assert (survey.releases, survey.holders, survey.guests) == (["guest"], [], [])


def test_on_its_way_out_it_keeps_its_unit() -> None:
    found = lab()
    guest = found.sold("guest", "quad")
    meta = replace(guest.metadata, deletion_timestamp="2026-11-16T12:00:00Z")
    found.guests["guest"] = replace(guest, metadata=meta)
    survey = Survey(found.snapshot())
    assert (names(survey.holders), survey.releases) == (["guest"], [])


def test_a_unit_whose_holder_was_not_seen_counts_until_it_is_known_to_be_gone() -> None:
    found = lab()
    found.units["unknown"] = unit()
    snapshot = found.snapshot()
    survey = Survey(snapshot)
    assert (survey.lost, survey.releases) == ([unit()], [])
    survey = Survey(replace(snapshot, gone=frozenset({"unknown"})))
    assert (survey.lost, survey.releases) == ([], ["unknown"])


def test_a_sleeper_that_is_going_holds_no_unit_of_stock() -> None:
    """It may take long to go: its unit can be sold meanwhile, and it is asked to go again."""
    found = lab()
    name, pod = next(iter(found.sleepers.items()))
    meta = replace(pod.metadata, deletion_timestamp="2026-11-16T12:00:00Z")
    found.sleepers[name] = replace(pod, metadata=meta)
    assert name not in {each.uid for each in Survey(found.snapshot()).sleepers}
    plan = found.plan()
    assert plan.releases == (name,)
    assert names(pod for pod, _ in plan.removals) == [name]


def test_a_sleeper_on_a_node_of_another_type_goes() -> None:
    found = lab()
    found.nodes["c"] = node("c")
    name = next(iter(found.sleepers))
    found.move(name, "c")
    survey = Survey(found.snapshot())
    assert [(pod.metadata.name, why) for pod, why in survey.removals] == [
        (name, "node c does not serve quad at present")
    ]


def test_a_sleeper_without_gate_and_without_unit_goes() -> None:
    """Somebody else lifted its gate: nobody knows where it would go."""
    found = lab()
    name, pod = next(iter(found.sleepers.items()))
    found.sleepers[name] = with_spec(pod, node_name="")
    del found.units[name]
    survey = Survey(found.snapshot())
    assert [why for _, why in survey.removals] == ["it was let go without a place"]


def test_stock_stays_on_a_node_whose_marks_are_on_their_way() -> None:
    found = lab()
    bare = found.nodes["a"]
    labels = {"kubernetes.io/hostname": "a"}
    found.set_node(replace(bare, metadata=replace(bare.metadata, labels=labels)), mark=False)
    survey = Survey(found.snapshot())
    assert (survey.unmarked, survey.removals) == (["a"], [])
    assert survey.serving == {"quad": ["b"]}
