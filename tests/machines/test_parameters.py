"""What the operator publishes of a type, for policies that only add and compare."""

from __future__ import annotations

from dovetail.machines.parameters import shape_parameters
from tests.machines.building import shape


def test_amounts_are_whole_numbers_and_the_gpu_label_is_ready_to_use() -> None:
    found = shape_parameters("general-machine", shape("compute-xlarge"))
    assert found["spec"] == {
        "group": "general-machine",
        "type": "compute-xlarge",
        "cpuMilli": 40_000,
        "memoryBytes": 128 * 2**30,
        "gpus": 2,
        "gpuLabel": {"key": "nvidia.com/gpu.product", "value": "NVIDIA-GeForce-RTX-3090"},
    }


def test_the_operator_finds_it_by_its_labels() -> None:
    found = shape_parameters("general-machine", shape("compute-xlarge"))
    assert found["metadata"]["labels"] == {
        "imperator.tenzen-y.io/machine-group": "general-machine",
        "imperator.tenzen-y.io/machine-type": "compute-xlarge",
    }


def test_a_type_without_gpus_demands_no_label() -> None:
    plain = {
        "machineTypes": [{"name": "plain", "spec": {"cpu": 0.5, "memory": "1G"}, "available": 1}]
    }
    spec = shape_parameters("g", shape("plain", plain))["spec"]
    assert (spec["cpuMilli"], spec["memoryBytes"], spec["gpus"]) == (500, 10**9, 0)
    assert "gpuLabel" not in spec
