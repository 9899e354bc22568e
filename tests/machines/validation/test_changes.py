"""Changes of an accepted Machine: ratcheting, deletion, and what is sold."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.machines.validation import findings
from tests.machines.building import GONE, changed, machine
from tests.machines.validation.worlds import faults, world

HOLDERS = {"compute-medium": ["vision/train-0", "speech/train-0"]}


def test_letter_j_a_node_that_vanished_later_is_no_fault_of_a_change() -> None:
    around = world(accepted=machine(), without=["eriri"])
    assert faults({"machineTypes[0].available": 3}, around) == []


def test_letter_j_it_is_a_fault_of_a_new_machine() -> None:
    assert faults({}, world(without=["eriri"])) == [
        ("spec.nodePool[2].name", "there is no node 'eriri'")
    ]


def test_letter_j_what_is_moved_within_a_list_has_not_changed() -> None:
    spec = changed({})
    spec["nodePool"].reverse()
    around = world(accepted=machine(), without=["eriri"])
    assert findings(machine(spec), around) == ()


def test_letter_j_a_node_that_is_added_is_looked_at() -> None:
    new = {"name": "ran", "machineType": [{"name": "compute-medium"}]}
    around = world(accepted=machine(), without=["eriri"])
    assert faults({"nodePool[3]": new}, around) == [
        ("spec.nodePool[3].name", "there is no node 'ran'")
    ]


def test_letter_j_a_fault_that_changes_is_a_fault() -> None:
    """A host shrank below the limit: that may stay, but not become worse."""
    accepted = machine(changed({"machineTypes[0].spec.hostLimit": 0.01}))
    around = world(accepted=accepted)
    assert faults({"machineTypes[0].spec.hostLimit": 0.01}, around) == []
    assert faults({"machineTypes[0].spec.hostLimit": 0.02}, around) != []


def test_letter_j_nothing_is_in_the_way_of_deletion() -> None:
    going = machine(
        changed({"nodePool[0].name": "ran", "machineTypes[0].spec.cpu": "x"}),
        group=None,
        deletionTimestamp="2026-11-16T09:00:00Z",
    )
    assert findings(going, world(accepted=machine(), sold=HOLDERS)) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"machineTypes[0].spec.cpu": "7"},
        {"machineTypes[0].spec.memory": "49Gi"},
        {"machineTypes[0].spec.gpu.num": 2},
        {"machineTypes[0].spec.gpu": {"type": "nvidia.com/gpu", "num": 1, "family": "volta"}},
        {"machineTypes[0].spec.gpu": GONE},
    ],
)
def test_letter_n_a_shape_does_not_change_while_units_are_sold(changes: dict[str, Any]) -> None:
    around = world(accepted=machine(), sold=HOLDERS)
    assert faults(changes, around) == [
        (
            "spec.machineTypes[0].spec",
            "the shape cannot change while units are sold: speech/train-0, vision/train-0",
        )
    ]
    assert faults(changes, world(accepted=machine())) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"machineTypes[0].spec.cpu": 6},
        {"machineTypes[0].spec.memory": "49152Mi"},
        {"machineTypes[0].spec.hostLimit": 0.5},
        {"machineTypes[1].spec.cpu": 41},
        {"machineTypes[0].maxDuration": "8h"},
    ],
)
def test_letter_n_the_same_shape_written_otherwise_is_the_same(changes: dict[str, Any]) -> None:
    assert faults(changes, world(accepted=machine(), sold=HOLDERS)) == []


def test_letter_n_a_share_of_another_parent_is_another_shape() -> None:
    """The units that are sold have been taken from the stock of the old one."""
    shape = {"cpu": 1, "memory": "1Gi"}
    types: list[dict[str, Any]] = [
        {"name": "whole", "spec": {"cpu": 2, "memory": "2Gi"}, "available": 1},
        {"name": "half", "spec": shape, "available": 1},
    ]
    before = machine({"machineTypes": types})
    dependence = {"parent": "whole", "availableRatio": 0.5}
    after = [types[0], {**types[1], "spec": {**shape, "dependence": dependence}}]
    [fault] = findings(
        machine({"machineTypes": after}), world(accepted=before, sold={"half": ["a/b"]})
    )
    assert str(fault) == (
        "spec.machineTypes[1].spec: the shape cannot change while units are sold: a/b"
    )


def test_a_type_does_not_go_while_units_are_sold() -> None:
    spec = changed({})
    spec["nodePool"] = spec["nodePool"][:1]
    del spec["machineTypes"][0]
    [fault] = findings(machine(spec), world(accepted=machine(), sold=HOLDERS))
    assert str(fault) == (
        "spec.machineTypes: type 'compute-medium' cannot go while units are sold:"
        " speech/train-0, vision/train-0"
    )
    assert findings(machine(spec), world(accepted=machine(), sold={"compute-medium": []})) == ()


def test_the_group_does_not_change_while_units_are_sold() -> None:
    around = world(accepted=machine(), sold=HOLDERS)
    [fault] = findings(machine(group="other"), around)
    assert fault.path == "metadata.labels[imperator.tenzen-y.io/machine-group]"
    assert "from 'general-machine' while units are sold" in fault.message
    assert findings(machine(group="other"), world(accepted=machine())) == ()


def test_inconsistency_22_a_stock_may_be_lowered_below_what_is_sold() -> None:
    around = world(accepted=machine(), sold=HOLDERS)
    assert faults({"machineTypes[0].available": 1}, around) == []


def test_of_many_holders_a_few_are_named() -> None:
    sold = {"compute-medium": [f"vision/train-{n}" for n in range(9)]}
    [(_, message)] = faults({"machineTypes[0].spec.cpu": 7}, world(accepted=machine(), sold=sold))
    assert message.endswith(
        "vision/train-0, vision/train-1, vision/train-2, vision/train-3, vision/train-4 and 4 more"
    )
