"""Validation of plugins' answers: are they for that question, and in bounds?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite

from dovetail.node.wire.associated_devices import AssociatedDeviceRequest
from dovetail.node.wire.resource_plugin import (
    GetTopologyAwareResourcesResponse,
    ResourceAllocationInfo,
    TopologyAwareQuantity,
    TopologyHint,
)
from dovetail.wire.codec import Message

LARGEST_NODE = 1023
"""The kernel numbers no NUMA node higher. What is above would fill the memory as a bit mask."""

QUANTITY_LIMIT = 2.0**63
"""Amounts are handed on as integers of 64 bits."""


def fault(question: Message, answer: Message) -> str | None:
    """What is wrong with the answer, in words."""
    return wrong_subject(question, answer) or next(faults_inside(answer), None)


def wrong_subject(question: Message, answer: Message) -> str | None:
    """An answer need not say whom it is for; if it says so, it must be whom was asked for."""
    if isinstance(question, AssociatedDeviceRequest) and question.resource_request:
        question = question.resource_request
    for name in ("pod_uid", "container_name"):
        asked, told = getattr(question, name, ""), subject_of(answer, name)
        if asked and told and asked != told:
            return f"it answered for {name} {told!r}, and was asked for {asked!r}"
    return None


def subject_of(answer: Message, name: str) -> str:
    inner = answer
    if isinstance(answer, GetTopologyAwareResourcesResponse) and name == "container_name":
        inner = answer.container_topology_aware_resources or answer
    told: str = getattr(inner, name, "")
    return told


def faults_inside(value: object, where: str = "") -> Iterator[str]:
    if isinstance(value, Message):
        for node in _nodes(value):
            if not 0 <= node <= LARGEST_NODE:
                yield f"{where} names the NUMA node {node}; there are none above {LARGEST_NODE}"
        if (
            isinstance(value, TopologyAwareQuantity)
            and not 0 <= value.resource_value < QUANTITY_LIMIT
        ):
            yield f"{where} is {value.resource_value}, which nobody can have of anything"
        for name in value.__struct_fields__:
            yield from faults_inside(getattr(value, name), f"{where}.{name}" if where else name)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from faults_inside(each, f"{where}[{key!r}]")
    elif isinstance(value, tuple):
        for each in value:
            yield from faults_inside(each, where)
    elif isinstance(value, float) and not isfinite(value):
        yield f"{where} is {value}, which is no quantity"


def _nodes(value: Message) -> Iterable[int]:
    if isinstance(value, TopologyHint):
        return value.nodes
    if isinstance(value, ResourceAllocationInfo):
        return value.topology_assignments
    return (value.node,) if isinstance(value, TopologyAwareQuantity) else ()
