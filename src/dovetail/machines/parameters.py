"""Parameters of the admission policies: a ConfigMap for each type, which the operator publishes.

The policies (`machines-admission.yaml`) are the same in every cluster. What they give
to guests is here, worked out as far as it goes, so that their expressions only add and compare.
A ConfigMap of the specification that was accepted last stays until the next one is accepted.
"""

from __future__ import annotations

from typing import Any

from dovetail.machines.names import MACHINE_GROUP, MACHINE_TYPE, SHAPE_PARAMETERS
from dovetail.machines.shapes import UnitShape
from dovetail.podfit.pod_sum import CPU, MEMORY

OPERATOR_PARAMETERS = "dovetail-operator"
"""Name of the ConfigMap that says who the operator is, in the namespace where it is."""


def shape_parameters(group: str, shape: UnitShape) -> dict[str, Any]:
    """The fields of the ConfigMap of a type that is sold."""
    data = {
        "group": group,
        "type": shape.name,
        "cpuMilli": str(shape.amounts[CPU]),
        "memoryBytes": str(shape.amounts[MEMORY]),
        "gpus": str(shape.gpus),
    }
    if shape.gpu_label is not None:
        data["gpuLabelKey"], data["gpuLabelValue"] = shape.gpu_label
    labels = {SHAPE_PARAMETERS: "true", MACHINE_GROUP: group, MACHINE_TYPE: shape.name}
    return {"metadata": {"labels": labels}, "data": data}


def operator_parameters(username: str) -> dict[str, Any]:
    """The fields of the ConfigMap that says who alone lifts gates and makes stock."""
    return {"data": {"username": username}}
