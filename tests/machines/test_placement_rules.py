"""What a unit demands of its node, word for word as the specification writes it."""

from __future__ import annotations

import yaml

from dovetail.machines.placement_rules import expressions_of, tolerations_of
from dovetail.machines.shapes import shapes_of
from tests.machines.building import changed, machine, shape

TOLERATIONS = """\
- key: imperator.tenzen-y.io/compute-xlarge
  effect: NoSchedule
  operator: Equal
  value: general-machine
- key: imperator.tenzen-y.io/node-pool
  effect: NoSchedule
  operator: Equal
  value: ready
"""

EXPRESSIONS = """\
- key: imperator.tenzen-y.io/compute-xlarge
  operator: In
  values:
  - general-machine
- key: imperator.tenzen-y.io/node-pool
  operator: In
  values:
  - ready
"""

GPU = """\
- key: nvidia.com/gpu.product
  operator: In
  values:
  - NVIDIA-GeForce-RTX-3090
"""


def written(value: object) -> str:
    return str(yaml.safe_dump(value, sort_keys=False))


def test_tolerations_are_those_of_the_specification_in_its_order() -> None:
    assert written(tolerations_of(shape("compute-xlarge"), "general-machine")) == TOLERATIONS


def test_inconsistency_11_the_gpu_label_is_the_one_that_the_type_names() -> None:
    """The specification's StatefulSet has a family where its Machine has a product."""
    found = expressions_of(shape("compute-xlarge"), "general-machine")
    assert written(found) == EXPRESSIONS + GPU


def test_a_type_without_gpu_demands_no_gpu_label() -> None:
    spec = {
        "machineTypes": [{"name": "plain", "spec": {"cpu": 1, "memory": "1Gi"}, "available": 1}]
    }
    found = expressions_of(shape("plain", spec), "general-machine")
    assert [each["key"] for each in found] == [
        "imperator.tenzen-y.io/plain",
        "imperator.tenzen-y.io/node-pool",
    ]


def test_letter_d_units_tolerate_the_taints_of_types_that_are_served_beside_theirs() -> None:
    """Each type of a tainted node has its taint there, and nobody tolerates but its own."""
    spec = changed(
        {
            "severalTypesPerNode": True,
            "nodePool[2].machineType": [{"name": "compute-medium"}, {"name": "compute-large"}],
        }
    )
    shapes = shapes_of(machine(spec).spec)
    keys = [each["key"] for each in tolerations_of(shapes["compute-large"], "g")]
    assert [key.partition("/")[2] for key in keys] == [
        "compute-large",
        "node-pool",
        "compute-medium",
    ]
    assert shapes["compute-xlarge"].companions == ()
