"""What the operator publishes of a type, for policies that only add and compare."""

from __future__ import annotations

from dovetail.machines.parameters import operator_parameters, shape_parameters
from tests.machines.building import shape


def test_amounts_are_whole_numbers_and_the_gpu_label_is_ready_to_use() -> None:
    found = shape_parameters("general-machine", shape("compute-xlarge"))
    assert found["data"] == {
        "group": "general-machine",
        "type": "compute-xlarge",
        "cpuMilli": "40000",
        "memoryBytes": str(128 * 2**30),
        "gpus": "2",
        "gpuLabelKey": "nvidia.com/gpu.product",
        "gpuLabelValue": "NVIDIA-GeForce-RTX-3090",
    }


def test_policies_and_the_operator_find_it_by_its_labels() -> None:
    found = shape_parameters("general-machine", shape("compute-xlarge"))
    assert found["metadata"]["labels"] == {
        "imperator.tenzen-y.io/shape": "true",
        "imperator.tenzen-y.io/machine-group": "general-machine",
        "imperator.tenzen-y.io/machine-type": "compute-xlarge",
    }


def test_a_type_without_gpus_demands_no_label() -> None:
    plain = {
        "machineTypes": [{"name": "plain", "spec": {"cpu": 0.5, "memory": "1G"}, "available": 1}]
    }
    data = shape_parameters("g", shape("plain", plain))["data"]
    assert (data["cpuMilli"], data["memoryBytes"], data["gpus"]) == ("500", "1000000000", "0")
    assert not {"gpuLabelKey", "gpuLabelValue"} & data.keys()


def test_the_operator_says_who_it_is() -> None:
    assert operator_parameters("somebody") == {"data": {"username": "somebody"}}
