"""Shapes of units: amounts, GPUs, shares of a parent and of a host."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.machines.validation import findings
from tests.machines.building import GONE, changed, machine
from tests.machines.validation.worlds import faults, world

TYPE = "spec.machineTypes[0]"


@pytest.mark.parametrize(
    ("field", "written", "words"),
    [
        ("cpu", "six", "is no quantity"),
        ("cpu", "", "is no quantity"),
        ("cpu", 0, "not more than nothing"),
        ("cpu", "-1", "not more than nothing"),
        ("cpu", "1500u", "finer than Kubernetes counts"),
        ("memory", "48GB", "is no quantity"),
        ("memory", "0", "not more than nothing"),
        ("memory", "100m", "finer than Kubernetes counts"),
    ],
)
def test_amounts_are_quantities(field: str, written: Any, words: str) -> None:
    [(path, message)] = faults({f"machineTypes[0].spec.{field}": written})
    assert path == f"{TYPE}.spec.{field}"
    assert words in message


@pytest.mark.parametrize("cpu", [6, 0.5, "6", "6000m", "6e0"])
def test_amounts_may_be_written_as_kubernetes_reads_them(cpu: Any) -> None:
    assert faults({"machineTypes[0].spec.cpu": cpu}) == []


def test_gpus_are_nvidias() -> None:
    [(path, message)] = faults({"machineTypes[0].spec.gpu.type": "amd.com/gpu"})
    assert path == f"{TYPE}.spec.gpu.type"
    assert "'amd.com/gpu' is not supported" in message


def test_what_a_gpu_is_called_is_the_value_of_a_label() -> None:
    [(path, message)] = faults({"machineTypes[0].spec.gpu.machine": "DGX 1"})
    assert path == f"{TYPE}.spec.gpu.machine"
    assert "'DGX 1' cannot be the value of a label" in message


def test_a_stock_of_nothing_is_legal_and_less_is_not() -> None:
    assert faults({"machineTypes[0].available": 0}) == []
    assert faults({"machineTypes[0].available": -1}) == [
        (f"{TYPE}.available", "a stock cannot be less than nothing")
    ]


LARGE = "machineTypes[2]"
PRODUCT = "NVIDIA-GeForce-RTX-3090"
HALF: dict[str, Any] = {
    f"{LARGE}.spec": {
        "cpu": 20,
        "memory": "64Gi",
        "gpu": {"type": "nvidia.com/gpu", "num": 1, "product": PRODUCT},
        "dependence": {"parent": "compute-xlarge", "availableRatio": 0.5},
    }
}
"""compute-large as half of compute-xlarge, of which there is one."""


def test_inconsistency_17_a_child_is_its_share_of_the_parent() -> None:
    assert faults(HALF) == []


@pytest.mark.parametrize(
    ("change", "value", "field", "message"),
    [
        (
            "spec.cpu",
            19,
            "spec.cpu",
            "19 is not the share 0.5 of compute-xlarge's 40000m: that is 20",
        ),
        (
            "spec.memory",
            "64G",
            "spec.memory",
            "64G is not the share 0.5 of compute-xlarge's 128Gi: that is 64Gi",
        ),
        (
            "spec.gpu.num",
            2,
            "spec.gpu.num",
            "2 is not the share 0.5 of compute-xlarge's 2: that is 1",
        ),
        (
            "spec.gpu",
            GONE,
            "spec.gpu.num",
            "0 is not the share 0.5 of compute-xlarge's 2: that is 1",
        ),
        (
            "spec.gpu.product",
            "A100",
            "spec.gpu",
            f"it is another kind than compute-xlarge's: nvidia.com/gpu product {PRODUCT}",
        ),
        ("available", 3, "available", "1 units of compute-xlarge are 2 of these, not 3"),
        ("spec.dependence.parent", "x", "spec.dependence.parent", "there is no type 'x'"),
        (
            "spec.dependence.parent",
            "compute-large",
            "spec.dependence.parent",
            "types depend on each other in a circle: compute-large -> compute-large",
        ),
        (
            "spec.dependence.availableRatio",
            0,
            "spec.dependence.availableRatio",
            "0 is not in (0, 1]: it is a share of the parent",
        ),
        (
            "spec.dependence.availableRatio",
            1.5,
            "spec.dependence.availableRatio",
            "1.5 is not in (0, 1]: it is a share of the parent",
        ),
    ],
)
def test_inconsistency_17_what_is_no_share_of_the_parent(
    change: str, value: Any, field: str, message: str
) -> None:
    assert faults({**HALF, f"{LARGE}.{change}": value}) == [
        (f"spec.machineTypes[2].{field}", message)
    ]


def test_inconsistency_17_a_tenth_is_a_tenth() -> None:
    """0.1 is no binary fraction, and still the exact share."""
    tenth = {"cpu": "4", "memory": "1Gi", "dependence": {"parent": "whole", "availableRatio": 0.1}}
    types = [
        {"name": "whole", "spec": {"cpu": "40", "memory": "10Gi"}, "available": 3},
        {"name": "tenth", "spec": tenth, "available": 30},
    ]
    assert findings(machine({"machineTypes": types}), world()) == ()
    types[1]["available"] = 31
    [fault] = findings(machine({"machineTypes": types}), world())
    assert fault.message == "3 units of whole are 30 of these, not 31"


def test_inconsistency_17_circles_are_shown() -> None:
    spec = {"cpu": 1, "memory": "1Gi"}
    types = [
        {
            "name": name,
            "spec": {**spec, "dependence": {"parent": parent, "availableRatio": 1}},
            "available": 1,
        }
        for name, parent in (("a", "b"), ("b", "c"), ("c", "b"))
    ]
    found = findings(machine({"machineTypes": types}), world())
    assert [each.message.partition(": ")[2] for each in found] == [
        "a -> b -> c -> b",
        "b -> c -> b",
        "c -> b -> c",
    ]


def test_inconsistency_17_a_unit_takes_no_more_of_a_host_than_its_limit() -> None:
    """Of 128 CPUs, 1Ti and 8 GPUs, a unit takes 40, 128Gi and 2."""
    assert faults({"machineTypes[1].spec.hostLimit": 0.3125}) == []
    assert faults({"machineTypes[1].spec.hostLimit": 0.25}) == [
        (
            "spec.machineTypes[1].spec.hostLimit",
            "a unit takes 40 of the 128 cpu that node michiru has: more than 0.25 of it",
        )
    ]


def test_inconsistency_17_the_limit_is_checked_on_every_host_that_serves_the_type() -> None:
    found = faults({"machineTypes[0].spec.hostLimit": 0.1})
    assert [message.partition(" has: ")[0].split()[-1] for _, message in found] == [
        "utaha",
        "eriri",
    ]


def test_inconsistency_17_hosts_of_the_parent_count_for_the_child() -> None:
    """A tenth of michiru has less CPU and GPU than half a unit of the parent, but not memory."""
    found = faults({**HALF, f"{LARGE}.spec.hostLimit": 0.1})
    assert [(path, message.split()[3]) for path, message in found] == [
        ("spec.machineTypes[2].spec.hostLimit", "20"),
        ("spec.machineTypes[2].spec.hostLimit", "1"),
    ]


@pytest.mark.parametrize("limit", [0, -0.5, 1.01])
def test_inconsistency_17_a_limit_is_a_share(limit: float) -> None:
    [(path, message)] = faults({"machineTypes[0].spec.hostLimit": limit})
    assert path == f"{TYPE}.spec.hostLimit"
    assert "is not in (0, 1]" in message


def test_a_shape_that_cannot_be_read_is_told_once() -> None:
    """Its parent, its limit and what is sold of it are not looked at as well."""
    broken = changed({**HALF, f"{LARGE}.spec.cpu": "x", f"{LARGE}.spec.hostLimit": 0.5})
    around = world(accepted=machine(changed(HALF)), sold={"compute-large": ["a/b"]})
    [fault] = findings(machine(broken), around)
    assert fault.path == "spec.machineTypes[2].spec.cpu"
