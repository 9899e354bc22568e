"""The twelve cases of Imperator's own webhook tests."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.machines.validation import findings
from tests.machines.building import GONE, machine
from tests.machines.validation.worlds import faults, world

LABEL = "metadata.labels[imperator.tenzen-y.io/machine-group]"
GPU = "spec.machineTypes[0].spec.gpu"


def test_the_specifications_own_example_is_accepted() -> None:
    assert findings(machine(), world()) == ()


def test_a_type_without_gpu_is_accepted() -> None:
    assert faults({"machineTypes[0].spec.gpu": GONE}) == []


def test_the_group_label_is_needed() -> None:
    [fault] = findings(machine(group=None), world())
    assert (fault.path, fault.message) == (
        LABEL,
        "the label is missing: it names the machine group",
    )


def test_a_group_belongs_to_one_machine() -> None:
    other = machine({"nodePool": [], "machineTypes": []}, name="first")
    [fault] = findings(machine(), world(other))
    assert fault.path == LABEL
    assert fault.message == "Machine first has the group 'general-machine' already"


TWO_TYPES = [{"name": "compute-medium"}, {"name": "compute-large"}]


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        ({"nodePool[1].name": "ran"}, "spec.nodePool[1].name", "there is no node 'ran'"),
        (
            {"machineTypes[0].spec.gpu.type": ""},
            f"{GPU}.type",
            "it is missing: nvidia.com/gpu",
        ),
        (
            {"machineTypes[0].spec.gpu.num": -1},
            f"{GPU}.num",
            "-1 is no number of GPUs: 0 or more are expected",
        ),
        (
            {"machineTypes[0].spec.gpu.machine": GONE},
            GPU,
            "exactly one of family, product and machine is needed, not none",
        ),
        (
            {"machineTypes[0].spec.gpu.family": "volta"},
            GPU,
            "exactly one of family, product and machine is needed, not family, machine",
        ),
        (
            {"nodePool[1].machineType": TWO_TYPES},
            "spec.nodePool[1].machineType",
            "it names 2 types: several are for Machines with severalTypesPerNode",
        ),
        (
            {"nodePool[1].machineType[0].name": "compute-huge"},
            "spec.nodePool[1].machineType[0].name",
            "there is no type 'compute-huge' in machineTypes",
        ),
        (
            {"machineTypes[2].name": "compute-medium"},
            "spec.machineTypes[2].name",
            "there is a type 'compute-medium' already: machineTypes[0]",
        ),
    ],
)
def test_what_upstream_refuses(changes: dict[str, Any], path: str, message: str) -> None:
    assert faults(changes) == [(path, message)]
