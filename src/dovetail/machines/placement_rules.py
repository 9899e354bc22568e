"""Placement rules of a unit: the tolerations and node affinity that guests and sleepers share.

Injection gives them to guests, the template of the stock to sleepers: a unit that is held can be
taken over wherever it is held. In the order in which the specification writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from dovetail.machines.names import NODE_POOL, READY, type_key
from dovetail.machines.shapes import UnitShape
from dovetail.podfit.objects import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    Toleration,
)


def tolerations_of(shape: UnitShape, group: str) -> list[dict[str, Any]]:
    """Of the taints that pool nodes with `taint: true` have: its own type's, the pool's, and those
    of types that are served beside it."""
    others = ((type_key(name), group) for name in shape.companions)
    return [
        {"key": key, "effect": "NoSchedule", "operator": "Equal", "value": value}
        for key, value in ((type_key(shape.name), group), (NODE_POOL, READY), *others)
    ]


def lacking_tolerations(pod: Pod, shape: UnitShape, group: str) -> list[dict[str, Any]]:
    """Those that a guest was not given, since it is older than a type that is served beside its
    own by now."""
    has = {(each.key, each.value, each.effect) for each in pod.spec.tolerations}
    return [
        each
        for each in tolerations_of(shape, group)
        if (each["key"], each["value"], each["effect"]) not in has
    ]


def tolerating(pod: Pod, shape: UnitShape, group: str) -> Pod:
    """The guest as it is once it has all tolerations of its unit."""
    lacking = lacking_tolerations(pod, shape, group)
    if not lacking:
        return pod
    more = msgspec.convert(lacking, tuple[Toleration, ...])
    return replace(pod, spec=replace(pod.spec, tolerations=(*pod.spec.tolerations, *more)))


def tied(pod: Pod, demands: Iterable[Sequence[NodeSelectorTerm]]) -> Pod:
    """The guest as it is if its own terms say what its volumes demand of the node."""
    affinity = pod.spec.affinity or Affinity()
    nodes = affinity.node_affinity or NodeAffinity()
    terms = nodes.required.node_selector_terms if nodes.required is not None else ()
    for alternatives in demands:
        # A term that demands nothing is met by no node, and stays so.
        terms = tuple(
            NodeSelectorTerm(
                match_expressions=one.match_expressions + other.match_expressions,
                match_fields=one.match_fields + other.match_fields,
            )
            for one in terms
            if one.match_expressions or one.match_fields
            for other in alternatives
        )
    nodes = replace(nodes, required=NodeSelector(node_selector_terms=terms))
    return replace(pod, spec=replace(pod.spec, affinity=replace(affinity, node_affinity=nodes)))


def expressions_of(shape: UnitShape, group: str) -> list[dict[str, Any]]:
    """What one term of the required node affinity demands; terms are ORed, so every term does."""
    demands = [(type_key(shape.name), group), (NODE_POOL, READY)]
    if shape.gpu_label is not None:
        demands.append(shape.gpu_label)
    return [{"key": key, "operator": "In", "values": [value]} for key, value in demands]
