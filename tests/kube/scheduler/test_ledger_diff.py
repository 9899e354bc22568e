"""What a comparison of the ledger with the pods finds."""

from __future__ import annotations

from dovetail.devices.allocation.request import DeviceHolding
from dovetail.kube.classes.pod_annotation import annotations_of
from dovetail.kube.scheduler.ledger_diff import LedgerDiff, ledger_diff_of
from dovetail.podfit.objects import (
    Condition,
    Container,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from dovetail.service.device_claims import HeldBy

NOTHING = LedgerDiff((), (), (), ())


def pod(uid: str, node: str = "", device: str = "", phase: str = "Running", at: str = "") -> Pod:
    notes = annotations_of(node, [DeviceHolding(device, 1, "gpu", "main")]) if device else {}
    asked = ResourceRequirements(requests={"resourceclass.dovetail.dev/gpu": "1"})
    scheduled = Condition(type="PodScheduled", status="True", last_transition_time=at or None)
    return Pod(
        metadata=ObjectMeta(name=uid, namespace="ns", uid=uid, annotations=notes),
        spec=PodSpec(node_name=node, containers=(Container(name="main", resources=asked),)),
        status=PodStatus(phase=phase, conditions=(scheduled,) if at else ()),
    )


def holding(device: str, *, node: str = "n1", is_pod: bool = True) -> HeldBy:
    return HeldBy(is_pod, node, {device: 1})


def found(holders: dict[str, HeldBy], *pods: Pod, busy: frozenset[str] = frozenset()) -> LedgerDiff:
    return ledger_diff_of(holders, {each.metadata.uid: each for each in pods}, busy)


def test_where_both_agree_nothing_is_to_be_done() -> None:
    assert found({"a": holding("g0")}, pod("a", "n1", "g0"), pod("plain")) == NOTHING


def test_claims_of_others_than_pods_are_none_of_our_business() -> None:
    assert found({"vm": holding("g0", is_pod=False)}) == NOTHING


def test_claims_of_pods_that_are_over_are_to_be_released() -> None:
    over = pod("a", "n1", "g0", phase="Succeeded")
    assert found({"a": holding("g0")}, over).over == ("a",)


def test_claims_of_pods_that_run_elsewhere_without_devices_are_to_be_released() -> None:
    assert found({"a": holding("g0", node="n2")}, pod("a", "n1")).over == ("a",)


def test_an_annotation_that_was_taken_away_takes_no_devices_from_the_pod() -> None:
    """It runs with them all the same."""
    assert found({"a": holding("g0")}, pod("a", "n1")) == NOTHING


def test_an_annotation_that_was_edited_moves_no_claim() -> None:
    assert found({"a": holding("g0")}, pod("a", "n1", "g1")) == NOTHING


def test_claims_of_pods_that_are_not_known_are_to_be_looked_into() -> None:
    assert found({"a": holding("g0")}).unknown == ("a",)


def test_claims_of_pods_that_wait_are_to_be_adopted() -> None:
    assert found({"a": holding("g0")}, pod("a", phase="Pending")).unbound == ("a",)


def test_pods_without_their_claim_are_to_be_claimed_for_oldest_binding_first() -> None:
    young, old = (
        pod("a", "n1", "g0", at="2026-01-02T00:00:00Z"),
        pod("b", "n1", "g1", at="2026-01-01T00:00:00Z"),
    )
    assert found({}, young, old).unclaimed == (old, young)


def test_pods_whose_claim_is_on_another_node_are_to_be_claimed_for() -> None:
    here = pod("a", "n1", "g0")
    assert found({"a": holding("g0", node="n2")}, here).unclaimed == (here,)


def test_pods_that_are_being_bound_are_left_alone() -> None:
    busy = frozenset({"a", "b", "c"})
    waiting, bound = pod("a", phase="Pending"), pod("b", "n1", "g1")
    holders = {"a": holding("g0"), "c": holding("g1")}
    assert found(holders, waiting, bound, busy=busy) == NOTHING
