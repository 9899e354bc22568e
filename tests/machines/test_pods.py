"""What the planner reads of pods: who is a guest, who counts as used, and who comes first."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dovetail.machines.names import (
    CREATOR,
    INJECT_RESOURCE,
    MACHINE_GROUP,
    MACHINE_TYPE,
    POD_ROLE,
    STOCK_GATE,
    UNIT_GATE,
    UNIT_GROUP_SIZE,
    USER,
)
from dovetail.machines.pods import (
    is_guest,
    is_live_sleeper,
    is_operating,
    is_opted_in,
    is_sleeper,
    line_order,
    ordinal_of,
    other_gates,
    unit_group_size,
    user_of,
)
from dovetail.podfit.objects import Pod
from tests.machines.building import namespace


def pod(meta: dict[str, Any] | None = None, **parts: Any) -> Pod:
    return msgspec.convert({"metadata": {"name": "train", **(meta or {})}, **parts}, Pod)


def guest(*states: dict[str, Any], phase: str = "Running", leaving: bool = False) -> Pod:
    """One that is on a node, with containers in these states."""
    statuses = [{"name": f"c{n}", "state": state} for n, state in enumerate(states)]
    meta = {"deletionTimestamp": "2026-11-16T12:00:00Z"} if leaving else {}
    status = {"phase": phase, "containerStatuses": statuses}
    return pod(meta, spec={"nodeName": "a"}, status=status)


RUNNING = {"running": {"startedAt": "2026-11-16T12:00:00Z"}}
CREATING = {"waiting": {"reason": "ContainerCreating"}}
FAILED = {"waiting": {"reason": "Error"}}
ENDED = {"terminated": {"exitCode": 0}}
EVERY = {MACHINE_GROUP: "general", MACHINE_TYPE: "large", POD_ROLE: "guest"}


# -- roles ---------------------------------------------------------------------------------------


def test_inconsistency_4_a_guest_has_group_type_and_role() -> None:
    """The label `imperator.tenzen-y.io/machine` stands for the three."""
    assert is_guest(pod({"labels": EVERY}))
    assert not is_guest(pod({"labels": {"imperator.tenzen-y.io/machine": "large"}}))
    for key in EVERY:
        assert not is_guest(pod({"labels": {k: v for k, v in EVERY.items() if k != key}}))


def test_letter_k_only_pods_of_the_operators_namespace_hold_stock() -> None:
    labels = {**EVERY, POD_ROLE: "reservation"}
    assert is_sleeper(pod({"labels": labels, "namespace": "dovetail"}), "dovetail")
    assert not is_sleeper(pod({"labels": labels, "namespace": "team"}), "dovetail")


@pytest.mark.parametrize("key", [INJECT_RESOURCE, "imperator.tenzen.io/inject-resource"])
def test_inconsistency_2_both_labels_opt_a_namespace_in(key: str) -> None:
    assert is_opted_in(namespace("team", {key: "enabled"}))
    assert not is_opted_in(namespace("team", {key: "disabled"}))
    assert not is_opted_in(namespace("team"))
    assert not is_opted_in(None)


def test_gates_of_others_are_told_apart() -> None:
    names = [UNIT_GATE, "example.com/quota", STOCK_GATE]
    found = pod(spec={"schedulingGates": [{"name": each} for each in names]})
    assert other_gates(found) == ("example.com/quota",)


# -- counting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("counting", ["bound", "spec"])
def test_inconsistency_19_any_container_counts(counting: str) -> None:
    assert is_operating(guest(ENDED, RUNNING), counting)
    assert is_operating(guest(FAILED, CREATING), counting)


def test_inconsistency_20_a_guest_counts_from_when_it_is_bound_until_it_is_over() -> None:
    for states in ([], [FAILED], [ENDED], [RUNNING]):
        assert is_operating(guest(*states), "bound")
    for phase in ("Succeeded", "Failed"):
        assert not is_operating(guest(RUNNING, phase=phase), "bound")
    assert not is_operating(pod(status={"phase": "Pending"}), "bound")


def test_inconsistency_20_the_rule_to_the_letter_looks_at_containers() -> None:
    assert is_operating(guest(CREATING), "spec")
    for states in ([], [FAILED], [ENDED]):
        assert not is_operating(guest(*states), "spec")
    assert not is_operating(guest(RUNNING, phase="Failed"), "spec")


@pytest.mark.parametrize("counting", ["bound", "spec"])
def test_inconsistency_21_a_guest_that_is_going_counts_while_it_is_bound(counting: str) -> None:
    assert is_operating(guest(ENDED, leaving=True), counting)
    unbound = pod({"deletionTimestamp": "2026-11-16T12:00:00Z"}, status={"phase": "Pending"})
    assert not is_operating(unbound, counting)


def test_a_sleeper_counts_as_reserved_while_it_is_on_a_node_to_stay() -> None:
    assert is_live_sleeper(guest())
    assert not is_live_sleeper(guest(leaving=True))
    assert not is_live_sleeper(guest(phase="Failed"))
    assert not is_live_sleeper(pod())


# -- the line ------------------------------------------------------------------------------------


def waiting(name: str, priority: int, second: int, version: str) -> Pod:
    meta = {
        "name": name,
        "uid": name,
        "creationTimestamp": f"2026-11-16T12:00:{second:02}Z",
        "resourceVersion": version,
    }
    return pod(meta, spec={"priority": priority})


def test_the_line_is_by_priority_then_age_within_a_second_too() -> None:
    line = [
        waiting("urgent", 7, 5, "1001"),
        waiting("first", 0, 1, "1000"),
        waiting("of-one-second", 0, 2, "998"),
        waiting("and-after-it", 0, 2, "999"),
        waiting("and-then", 0, 2, "1002"),
        waiting("late", 0, 3, "997"),
    ]
    by_name = sorted(line, key=lambda each: each.metadata.name)
    assert sorted(by_name, key=line_order) == line


@pytest.mark.parametrize(
    ("text", "size"),
    [("3", 3), ("0", None), ("", None), ("-1", None), ("two", None), ("1.5", None), ("³", None)],
)
def test_the_size_of_a_unit_group_is_a_number_above_nothing(text: str, size: int | None) -> None:
    assert unit_group_size(pod({"annotations": {UNIT_GROUP_SIZE: text}})) == size


def test_a_size_beyond_all_measure_is_none() -> None:
    assert unit_group_size(pod({"annotations": {UNIT_GROUP_SIZE: "9" * 5000}})) is None


def test_the_user_is_the_namespaces_else_who_created_the_pod() -> None:
    found = pod({"annotations": {CREATOR: "ada"}})
    assert user_of(found, namespace("team", annotations={USER: "mei"})) == "mei"
    assert user_of(found, namespace("team")) == "ada"
    assert user_of(found, None) == "ada"


def test_ordinals_are_read_off_names() -> None:
    assert ordinal_of(pod({"name": "large-general-machine-12"})) == 12
    assert ordinal_of(pod({"name": "large-general-machine"})) == 0
