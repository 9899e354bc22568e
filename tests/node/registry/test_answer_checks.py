"""Which answers are taken for one, by examples."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from dovetail.node.registry.answer_checks import fault
from dovetail.node.wire.associated_devices import (
    AssociatedDeviceHintsResponse,
    AssociatedDeviceRequest,
)
from dovetail.node.wire.resource_plugin import (
    AllocatableTopologyAwareResource,
    ContainerTopologyAwareResources,
    GetTopologyAwareAllocatableResourcesRequest,
    GetTopologyAwareAllocatableResourcesResponse,
    GetTopologyAwareResourcesRequest,
    GetTopologyAwareResourcesResponse,
    ListOfTopologyHints,
    PodResourceAllocationResponse,
    PodResourceRequest,
    ResourceAllocation,
    ResourceAllocationInfo,
    ResourceAllocationResponse,
    ResourceHintsResponse,
    ResourceRequest,
    TopologyAwareQuantity,
    TopologyHint,
)
from dovetail.wire.codec import Message

ASKED = ResourceRequest(pod_uid="uid-1", container_name="main")
EMPTY = GetTopologyAwareAllocatableResourcesRequest()
SHOWN = GetTopologyAwareResourcesRequest(pod_uid="uid-1", container_name="main")


def with_nodes(*nodes: int) -> ResourceHintsResponse:
    hints = ListOfTopologyHints(hints=(TopologyHint(nodes=nodes),))
    return ResourceHintsResponse(resource_hints={"cpu": hints, "memory": None})


def with_quantity(quantity: float) -> ResourceAllocationResponse:
    given = {"cpu": ResourceAllocationInfo(allocated_quantity=quantity)}
    return ResourceAllocationResponse(
        allocation_result=ResourceAllocation(resource_allocation=given)
    )


def on_node(node: int) -> ResourceAllocationResponse:
    given = {"memory": ResourceAllocationInfo(topology_assignments={node: 1})}
    return ResourceAllocationResponse(
        allocation_result=ResourceAllocation(resource_allocation=given)
    )


def allocatable(**quantity: Any) -> GetTopologyAwareAllocatableResourcesResponse:
    listed = (TopologyAwareQuantity(**quantity),)
    told = AllocatableTopologyAwareResource(topology_aware_capacity_quantity_list=listed)
    return GetTopologyAwareAllocatableResourcesResponse(allocatable_resources={"memory": told})


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (ASKED, ResourceHintsResponse()),
        (ASKED, ResourceHintsResponse(pod_uid="uid-1", container_name="main")),
        (ASKED, with_nodes(0, 1, 1023)),
        (ASKED, with_quantity(2.5)),
        (SHOWN, GetTopologyAwareResourcesResponse()),
        (ASKED, on_node(1023)),
        (EMPTY, allocatable(node=1, resource_value=2.0**50)),
    ],
)
def test_answers(question: Message, answer: Message) -> None:
    assert fault(question, answer) is None


def of_container(name: str) -> GetTopologyAwareResourcesResponse:
    return GetTopologyAwareResourcesResponse(
        pod_uid="uid-1",
        container_topology_aware_resources=ContainerTopologyAwareResources(container_name=name),
    )


@pytest.mark.parametrize(
    ("question", "answer", "words"),
    [
        (ASKED, ResourceHintsResponse(pod_uid="uid-2"), "it answered for pod_uid 'uid-2'"),
        (ASKED, ResourceHintsResponse(container_name="log"), "for container_name 'log'"),
        (SHOWN, of_container("log"), "for container_name 'log'"),
        (
            PodResourceRequest(pod_uid="uid-1"),
            PodResourceAllocationResponse(pod_uid="uid-2"),
            "it answered for pod_uid 'uid-2', and was asked for 'uid-1'",
        ),
        (
            AssociatedDeviceRequest(resource_request=ASKED),
            AssociatedDeviceHintsResponse(pod_uid="uid-2"),
            "it answered for pod_uid 'uid-2'",
        ),
        (ASKED, with_nodes(0, -1), "resource_hints['cpu'].hints names the NUMA node -1"),
        (ASKED, with_nodes(1024), "names the NUMA node 1024; there are none above 1023"),
        (
            ASKED,
            with_quantity(nan),
            "allocation_result.resource_allocation['cpu'].allocated_quantity is nan",
        ),
        (ASKED, with_quantity(inf), "is inf, which is no quantity"),
        (ASKED, on_node(2**63), "names the NUMA node 9223372036854775808"),
        (EMPTY, allocatable(node=1024), "topology_aware_capacity_quantity_list names the NUMA"),
        (EMPTY, allocatable(resource_value=-1.0), "is -1.0, which nobody can have of anything"),
        (EMPTY, allocatable(resource_value=1e300), "is 1e+300, which nobody can have"),
    ],
)
def test_no_answers(question: Message, answer: Message, words: str) -> None:
    assert words in (fault(question, answer) or "")
