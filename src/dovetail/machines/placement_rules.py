"""Placement rules of a unit: the tolerations and node affinity that guests and sleepers share.

Injection gives them to guests, the template of the stock to sleepers: a unit that is held can be
taken over wherever it is held. In the order in which the specification writes them.
"""

from __future__ import annotations

from typing import Any

from dovetail.machines.names import NODE_POOL, READY, type_key
from dovetail.machines.shapes import UnitShape


def tolerations_of(shape: UnitShape, group: str) -> list[dict[str, Any]]:
    """Of the taints that pool nodes with `taint: true` have: its own type's, the pool's, and those
    of types that are served beside it."""
    others = ((type_key(name), group) for name in shape.companions)
    return [
        {"key": key, "effect": "NoSchedule", "operator": "Equal", "value": value}
        for key, value in ((type_key(shape.name), group), (NODE_POOL, READY), *others)
    ]


def expressions_of(shape: UnitShape, group: str) -> list[dict[str, Any]]:
    """What one term of the required node affinity demands; terms are ORed, so every term does."""
    demands = [(type_key(shape.name), group), (NODE_POOL, READY)]
    if shape.gpu_label is not None:
        demands.append(shape.gpu_label)
    return [{"key": key, "operator": "In", "values": [value]} for key, value in demands]
