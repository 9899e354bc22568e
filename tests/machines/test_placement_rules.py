"""What a unit demands of its node, word for word as the specification writes it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import yaml
from msgspec.structs import replace

from dovetail.machines.placement_rules import expressions_of, tied, tolerating, tolerations_of
from dovetail.machines.shapes import UnitShape, shapes_of
from dovetail.podfit.objects import NodeSelectorTerm, Pod
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


def test_a_guest_is_given_the_tolerations_that_it_was_created_too_early_for() -> None:
    own = {"key": "imperator.tenzen-y.io/plain", "value": "g", "effect": "NoSchedule"}
    pool = {"key": "imperator.tenzen-y.io/node-pool", "value": "ready", "effect": "NoSchedule"}
    other = {"key": "other", "operator": "Exists"}
    pod = msgspec.convert({"spec": {"tolerations": [own, other, pool]}}, Pod)
    plain = UnitShape(
        name="plain",
        amounts={},
        requests={},
        gpu_label=None,
        root="plain",
        share=Fraction(1),
        line=("plain",),
    )
    assert tolerating(pod, plain, "g") is pod
    found = tolerating(pod, replace(plain, companions=("half",)), "g").spec.tolerations
    assert found[:3] == pod.spec.tolerations
    assert [(each.key, each.value, each.effect) for each in found[3:]] == [
        ("imperator.tenzen-y.io/half", "g", "NoSchedule")
    ]


def test_what_volumes_demand_goes_into_every_term() -> None:
    def term(*keys: str) -> dict[str, Any]:
        return {"matchExpressions": [{"key": key, "operator": "Exists"} for key in keys]}

    own = {"nodeSelectorTerms": [term("a"), term("b"), {}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": own}
    pod = msgspec.convert({"spec": {"affinity": {"nodeAffinity": required}}}, Pod)
    volumes = msgspec.convert(
        [[term("c"), term("d")], [term("e")]], tuple[tuple[NodeSelectorTerm, ...], ...]
    )
    affinity = tied(pod, volumes).spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    assert affinity.node_affinity.required is not None
    found = affinity.node_affinity.required.node_selector_terms
    assert [[each.key for each in one.match_expressions] for one in found] == [
        ["a", "c", "e"],
        ["a", "d", "e"],
        ["b", "c", "e"],
        ["b", "d", "e"],
    ]
