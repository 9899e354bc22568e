"""Marks on nodes: annotation, labels and taints by which a pool's nodes are known.

The node pool controller asks `change_of` whenever a node or its Machine changes. Keys of others are
never touched; every key of Imperator's domain that the node should not have is taken away, whoever
put it there.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from dovetail.machines.documents import MachineSpec, PoolNode
from dovetail.machines.names import (
    DOMAIN,
    MACHINE_GROUP,
    MAINTENANCE,
    NODE_POOL,
    NOT_READY,
    READY,
    type_key,
)
from dovetail.machines.shapes import served_types
from dovetail.podfit.objects import Node, Taint
from dovetail.podfit.readiness import is_ready

PREFIX = f"{DOMAIN}/"
NO_SCHEDULE = "NoSchedule"
UNHEALTHY_TAINTS = frozenset(
    f"node.kubernetes.io/{name}"
    for name in ("not-ready", "unschedulable", "network-unavailable", "unreachable")
)
CONDITIONS = {READY: "Ready", MAINTENANCE: "Maintenance", NOT_READY: "NotReady"}
"""As the status of a MachineNodePool calls the states."""


class NodeMarks(msgspec.Struct, frozen=True):
    """What one node should carry."""

    group: str
    labels: dict[str, str]
    taints: dict[str, str]
    """Value by key; the effect is always the same."""


class MarkChange(msgspec.Struct, frozen=True):
    """How a node's marks have to change; None of `marks`: it carries none any more."""

    marks: NodeMarks | None
    stale_labels: tuple[str, ...]
    is_marked: bool
    """Whether annotation and labels are right already, and only taints are not."""
    are_taints_right: bool


def state_of(node: Node | None, entry: PoolNode) -> str:
    """READY, MAINTENANCE or NOT_READY: what a pool's node is good for now."""
    if entry.mode == MAINTENANCE:
        return MAINTENANCE
    return READY if node is not None and is_healthy(node) else NOT_READY


def is_healthy(node: Node) -> bool:
    return (
        not node.spec.unschedulable
        and is_ready(node)
        and not any(taint.key in UNHEALTHY_TAINTS for taint in node.spec.taints)
    )


def marks_of(spec: MachineSpec, group: str, entry: PoolNode, state: str) -> NodeMarks:
    types = {type_key(name): group for name in served_types(spec, entry.types)}
    labels = {**types, NODE_POOL: state}
    return NodeMarks(group, labels, labels if entry.taint else {})


def change_of(node: Node, wanted: NodeMarks | None) -> MarkChange | None:
    """None: the node is marked as it should be."""
    labels = {key: v for key, v in node.metadata.labels.items() if key.startswith(PREFIX)}
    annotation = node.metadata.annotations.get(MACHINE_GROUP)
    wanted_labels = wanted.labels if wanted is not None else {}
    is_marked = labels == wanted_labels and annotation == (wanted.group if wanted else None)
    are_right = own_taints(node.spec.taints) == (wanted.taints if wanted is not None else {})
    if is_marked and are_right:
        return None
    stale = tuple(key for key in labels if key not in wanted_labels)
    return MarkChange(wanted, stale, is_marked, are_right)


def marked(node: Node, wanted: NodeMarks | None) -> Node:
    """The node as it is once its marks are right; what others put there stays."""
    labels = {k: v for k, v in node.metadata.labels.items() if not k.startswith(PREFIX)}
    annotations = {k: v for k, v in node.metadata.annotations.items() if k != MACHINE_GROUP}
    own = own_taints(node.spec.taints)
    taints = [t for t in node.spec.taints if t.key not in own or t.effect != NO_SCHEDULE]
    if wanted is not None:
        labels |= wanted.labels
        annotations[MACHINE_GROUP] = wanted.group
        taints += [Taint(key=k, value=v, effect=NO_SCHEDULE) for k, v in wanted.taints.items()]
    return replace(
        node,
        metadata=replace(node.metadata, labels=labels, annotations=annotations),
        spec=replace(node.spec, taints=tuple(taints)),
    )


def healed(node: Node) -> Node:
    """The node as it is once nothing keeps its pool from using it."""
    taints = tuple(each for each in node.spec.taints if each.key not in UNHEALTHY_TAINTS)
    conditions = tuple(each for each in node.status.conditions if each.type != "Ready")
    return replace(
        node,
        spec=replace(node.spec, taints=taints, unschedulable=False),
        status=replace(node.status, conditions=conditions),
    )


def own_taints(taints: tuple[Taint, ...]) -> dict[str, str]:
    return {
        each.key: each.value
        for each in taints
        if each.key.startswith(PREFIX) and each.effect == NO_SCHEDULE
    }


def is_marked_node(node: Node) -> bool:
    """Whether some Machine's pool has, or had, this node."""
    return MACHINE_GROUP in node.metadata.annotations


def tainted(taints: list[dict[str, str]], wanted: Mapping[str, str]) -> list[dict[str, str]] | None:
    """The node's taints with ours as they should be; None if they are.

    Taints of others, and ours that are right, stay as they were written, their times included.
    """
    result = [each for each in taints if not is_stale(each, wanted)]
    there = {each["key"] for each in result if is_own(each)}
    result += [
        {"key": key, "value": value, "effect": NO_SCHEDULE}
        for key, value in wanted.items()
        if key not in there
    ]
    return None if result == taints else result


def is_own(taint: Mapping[str, str]) -> bool:
    return taint["key"].startswith(PREFIX) and taint.get("effect") == NO_SCHEDULE


def is_stale(taint: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return is_own(taint) and wanted.get(taint["key"]) != taint.get("value", "")
