"""Machines for tests, written as users write them."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import msgspec

from dovetail.machines.documents import Machine
from dovetail.machines.names import MACHINE_GROUP
from dovetail.machines.shapes import UnitShape, shapes_of
from dovetail.podfit.objects import Namespace, Node

GENERAL: dict[str, Any] = {
    "nodePool": [
        {
            "name": "michiru",
            "mode": "ready",
            "taint": True,
            "machineType": [{"name": "compute-xlarge"}],
        },
        {
            "name": "utaha",
            "mode": "maintenance",
            "taint": False,
            "machineType": [{"name": "compute-medium"}],
        },
        {
            "name": "eriri",
            "mode": "ready",
            "taint": True,
            "machineType": [{"name": "compute-medium"}],
        },
    ],
    "machineTypes": [
        {
            "name": "compute-medium",
            "spec": {
                "cpu": "6000m",
                "memory": "48Gi",
                "gpu": {"type": "nvidia.com/gpu", "num": 1, "machine": "DGX-1"},
            },
            "available": 4,
        },
        {
            "name": "compute-xlarge",
            "spec": {
                "cpu": "40000m",
                "memory": "128Gi",
                "gpu": {
                    "type": "nvidia.com/gpu",
                    "num": 2,
                    "product": "NVIDIA-GeForce-RTX-3090",
                },
            },
            "available": 1,
        },
        {
            "name": "compute-large",
            "spec": {
                "cpu": "20000m",
                "memory": "64Gi",
                "gpu": {"type": "nvidia.com/gpu", "num": 1, "family": "ampere"},
            },
            "available": 2,
        },
    ],
}
"""The specification's own example; no node serves compute-large."""


def machine(
    spec: dict[str, Any] | None = None,
    name: str = "general-machine",
    group: str | None = "general-machine",
    **meta: Any,
) -> Machine:
    labels = {} if group is None else {MACHINE_GROUP: group}
    document = {"metadata": {"name": name, "labels": labels, **meta}, "spec": spec or GENERAL}
    return msgspec.convert(document, Machine)


def node(
    name: str,
    cpu: str | int = "128",
    memory: str = "1Ti",
    gpus: int = 8,
    labels: dict[str, str] | None = None,
) -> Node:
    allocatable = {"cpu": str(cpu), "memory": memory, "pods": "110"}
    if gpus:
        allocatable["nvidia.com/gpu"] = str(gpus)
    document = {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {"allocatable": allocatable},
    }
    return msgspec.convert(document, Node)


def shape(name: str, spec: dict[str, Any] | None = None) -> UnitShape:
    return shapes_of(machine(spec).spec)[name]


def namespace(
    name: str,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> Namespace:
    meta = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    return msgspec.convert({"metadata": meta}, Namespace)


GONE = object()
"""In `changed`: the field is not there."""
STEP = re.compile(r"([A-Za-z]+)|\[(\d+)\]")


def changed(changes: dict[str, Any], spec: dict[str, Any] = GENERAL) -> dict[str, Any]:
    """A copy with other values at paths such as `machineTypes[0].spec.cpu`."""
    copy = deepcopy(spec)
    for path, value in changes.items():
        *steps, last = [name or int(index) for name, index in STEP.findall(path)]
        at: Any = copy
        for step in steps:
            at = at[step] if isinstance(step, int) else at.setdefault(step, {})
        if value is GONE:
            del at[last]
        elif isinstance(last, int) and last == len(at):
            at.append(deepcopy(value))
        else:
            at[last] = deepcopy(value)
    return copy
