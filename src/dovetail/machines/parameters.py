"""Parameters of the admission policies: a MachineShape for each type, which the operator publishes.

The policies (`machines-injection.yaml`) are the same in every cluster. What they give to guests is
here, worked out as far as it goes, so that their expressions only add and compare. The shape of the
specification that was accepted last stays until the next one is accepted.

A kind of its own, and no ConfigMap: API servers stop hearing of parameters of a kind that is built
in when the last policy that has some is removed, and do not start again (Kubernetes 1.36).
"""

from __future__ import annotations

from typing import Any

from dovetail.machines.names import MACHINE_GROUP, MACHINE_TYPE
from dovetail.machines.shapes import UnitShape
from dovetail.podfit.pod_sum import CPU, MEMORY


def shape_parameters(group: str, shape: UnitShape) -> dict[str, Any]:
    """The fields of the MachineShape of a type that is sold."""
    spec: dict[str, Any] = {
        "group": group,
        "type": shape.name,
        "cpuMilli": shape.amounts[CPU],
        "memoryBytes": shape.amounts[MEMORY],
        "gpus": shape.gpus,
    }
    if shape.companions:
        spec["companions"] = list(shape.companions)
    if shape.gpu_label is not None:
        key, value = shape.gpu_label
        spec["gpuLabel"] = {"key": key, "value": value}
    labels = {MACHINE_GROUP: group, MACHINE_TYPE: shape.name}
    return {"metadata": {"labels": labels}, "spec": spec}
