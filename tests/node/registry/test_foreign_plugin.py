"""A plugin that shares nothing with our declarations: it is made from the published tables.

It answers with protobuf's own classes, or with bytes put together by hand, as one written in
another language would. It runs in a process of its own.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dovetail.node.common.ports import PluginError, PluginFailure
from dovetail.node.registry.endpoint import PluginEndpoint
from dovetail.node.registry.registry import Registry
from dovetail.node.wire.resource_plugin import (
    ALLOCATE,
    ALLOCATE_FOR_POD,
    GET_RESOURCES_ALLOCATION,
    GET_TOPOLOGY_AWARE_ALLOCATABLE_RESOURCES,
    GET_TOPOLOGY_HINTS,
    REMOVE_POD,
    ContainerType,
    GetResourcesAllocationRequest,
    GetTopologyAwareAllocatableResourcesRequest,
    ListOfTopologyHints,
    PodResourceRequest,
    RemovePodRequest,
    ResourcePluginOptions,
    ResourceRequest,
    TopologyHint,
)
from tests.node.registry.rig import is_up
from tests.support.loops import eventually
from tests.support.paths import ROOT
from tests.support.processes import Process


@asynccontextmanager
async def foreign(directory: Path) -> AsyncIterator[PluginEndpoint]:
    command = [sys.executable, "-m", "tests.node.registry.foreign_plugin", directory / "f.sock"]
    plugin = Process(command, directory / "log", cwd=ROOT)
    plugin.start()
    registry = Registry([directory], period=0.05)
    await registry.start()
    try:
        await eventually(lambda: is_up(registry, "foreign.example/card"), 30)
        found = registry.of("foreign.example/card")
        assert found
        yield found
    finally:
        await registry.stop()
        plugin.stop()


def asking(pod: str) -> ResourceRequest:
    return ResourceRequest(
        pod_uid=pod,
        pod_namespace="default",
        pod_name="web",
        container_name="main",
        container_type=ContainerType.MAIN,
        container_index=1,
        pod_role="online",
        resource_name="foreign.example/card",
        hint=TopologyHint(nodes=(1,), preferred=True),
        resource_requests={"foreign.example/card": 1.5},
        labels={"app": "web"},
        annotations={"kubernetes.io/pod-role": "online"},
        native_qos_class="Burstable",
    )


async def test_it_registers_and_is_used(directory: Path) -> None:
    async with foreign(directory) as plugin:
        assert plugin.options == ResourcePluginOptions(
            with_topology_alignment=True, need_reconcile=True, extra_resources=("slot",)
        )
        hints = (await plugin.call(GET_TOPOLOGY_HINTS, asking("uid-1"))).resource_hints
        assert hints == {
            "foreign.example/card": ListOfTopologyHints(
                hints=(TopologyHint(nodes=(0,), preferred=True), TopologyHint(nodes=(0, 1)))
            )
        }

        answer = await plugin.call(ALLOCATE, asking("uid-1"))
        assert answer.allocation_result
        given = answer.allocation_result.resource_allocation["foreign.example/card"]
        assert given.oci_property_name == "CpusetMems"
        assert given.allocation_result == "1"
        assert given.allocated_quantity == 1.5
        # It saw what we sent: it answers with what it read.
        assert given.envs == {"CARD_NODE": "1", "CARD_ROLE": "online", "CARD_APP": "web"}
        assert given.topology_assignments == {1: 2}

        held = await plugin.call(GET_RESOURCES_ALLOCATION, GetResourcesAllocationRequest())
        assert held.pod_resources["uid-1"].container_resources["main"].resource_allocation == {
            "foreign.example/card": given
        }
        await plugin.call(REMOVE_POD, RemovePodRequest(pod_uid="uid-1"))
        held = await plugin.call(GET_RESOURCES_ALLOCATION, GetResourcesAllocationRequest())
        assert held.pod_resources == {}

        offered = await plugin.call(
            GET_TOPOLOGY_AWARE_ALLOCATABLE_RESOURCES, GetTopologyAwareAllocatableResourcesRequest()
        )
        card = offered.allocatable_resources["foreign.example/card"]
        assert (card.is_node_resource, card.aggregated_capacity_quantity) == (True, 8.0)
        assert [each.node for each in card.topology_aware_capacity_quantity_list] == [0, 1]


async def test_no_preference_and_no_possibility_are_told_apart(directory: Path) -> None:
    async with foreign(directory) as plugin:
        anywhere = await plugin.call(GET_TOPOLOGY_HINTS, asking("anywhere"))
        assert anywhere.resource_hints == {"foreign.example/card": None}
        nowhere = await plugin.call(GET_TOPOLOGY_HINTS, asking("nowhere"))
        assert nowhere.resource_hints == {"foreign.example/card": ListOfTopologyHints()}


async def test_what_it_does_not_know_or_garbles_is_told(directory: Path) -> None:
    async with foreign(directory) as plugin:
        with pytest.raises(PluginError) as unknown:
            await plugin.call(ALLOCATE_FOR_POD, PodResourceRequest(pod_uid="uid-1"))
        assert unknown.value.failure is PluginFailure.UNIMPLEMENTED
        with pytest.raises(PluginError, match="bytes are no ResourceHintsResponse") as garbled:
            await plugin.call(GET_TOPOLOGY_HINTS, asking("garbage"))
        assert garbled.value.failure is PluginFailure.GARBAGE
