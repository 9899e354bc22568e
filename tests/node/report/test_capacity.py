"""What the node has of plugins' resources does not flap when a plugin is away."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dovetail.node.common.metrics import AGENT_METRICS
from dovetail.node.common.ports import PluginFailure
from dovetail.node.report.capacity import NodeAmount, NodeCapacity, NodeStatus, at_least, of_node
from dovetail.node.state.pod_state import ContainerHolding, PodState
from dovetail.node.wire.resource_plugin import (
    AllocatableTopologyAwareResource,
    GetTopologyAwareAllocatableResourcesResponse,
    ResourceAllocationInfo,
)
from tests.support.node.fakes import FakePlugin, Node


def resource(amount: float, **more: Any) -> AllocatableTopologyAwareResource:
    return AllocatableTopologyAwareResource(
        **{"is_node_resource": True, "is_scalar_resource": True, **more},
        aggregated_allocatable_quantity=amount - 1,
        aggregated_capacity_quantity=amount,
    )


class Bandwidth(FakePlugin):
    def __init__(self) -> None:
        super().__init__("bandwidth")
        self.has = {"bandwidth": resource(100.0)}

    def GetTopologyAwareAllocatableResources(self, _: Any) -> Any:
        return GetTopologyAwareAllocatableResourcesResponse(allocatable_resources=self.has)


class World:
    def __init__(self, directory: Path) -> None:
        self.plugin = Bandwidth()
        self.node = Node(directory, [self.plugin])
        self.now = 0.0
        self.capacity = NodeCapacity(self.node.store, self.node.plugins, clock=lambda: self.now)

    def at(self, now: float) -> NodeStatus:
        self.now = now
        return asyncio.run(self.capacity.look())


HUNDRED = {"bandwidth": NodeAmount(capacity=100, allocatable=99)}


def test_a_resource_of_the_node_is_told(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert world.at(0).resources == HUNDRED
    labels = {"resource": "bandwidth", "kind": "allocatable"}
    assert AGENT_METRICS.registry.get_sample_value("dovetail_agent_node_resource", labels) == 99


@pytest.mark.parametrize(
    "told", [{"is_node_resource": False}, {"is_scalar_resource": False}], ids=str
)
def test_others_are_not(told: dict[str, bool]) -> None:
    assert of_node({"cpu": resource(80.0, **told)}) == {}


def test_amounts_have_three_decimals() -> None:
    assert of_node({"x": resource(1.23456)})["x"] == NodeAmount(capacity=1.235, allocatable=0.235)


def test_amounts_stay_while_a_plugin_is_down_for_five_minutes(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.at(0)
    world.plugin.up = False
    assert world.at(10).resources == HUNDRED
    assert world.at(309).resources == HUNDRED
    assert world.at(310) == NodeStatus(resources={}, removed=("bandwidth",))
    labels = {"resource": "bandwidth", "kind": "capacity"}
    assert AGENT_METRICS.registry.get_sample_value("dovetail_agent_node_resource", labels) == 0


def test_a_plugin_that_comes_back_starts_anew(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.at(0)
    world.plugin.up = False
    world.at(10)
    world.plugin.up = True
    world.at(200)
    world.plugin.up = False
    world.at(300)
    assert world.at(599).resources == HUNDRED
    assert world.at(600).removed == ("bandwidth",)
    world.plugin.up = True
    assert world.at(601) == NodeStatus(resources=HUNDRED)


@pytest.mark.parametrize(
    "failure", [PluginFailure.TIMEOUT, PluginFailure.REFUSED, PluginFailure.GARBAGE]
)
def test_a_plugin_that_fails_is_as_good_as_down(tmp_path: Path, failure: PluginFailure) -> None:
    world = World(tmp_path)
    world.at(0)
    world.plugin.failure = failure
    assert world.at(10).resources == HUNDRED
    assert world.at(310).resources == {}


def test_a_plugin_that_answers_is_believed_at_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.at(0)
    world.plugin.has = {}
    assert world.at(10) == NodeStatus(resources={}, removed=("bandwidth",))


def test_never_less_than_pods_hold(tmp_path: Path) -> None:
    world = World(tmp_path)
    held = ResourceAllocationInfo(allocated_quantity=60.0, is_scalar_resource=True)
    holding = ContainerHolding(allocations={"bandwidth": held})
    for uid in ("a", "b"):
        world.node.store.put(
            PodState(uid=uid, namespace="d", name=uid, containers={"main": holding}, admitted=True)
        )
    world.plugin.has = {"bandwidth": resource(1.0)}
    assert world.at(0).resources == {"bandwidth": NodeAmount(capacity=120, allocatable=120)}
    wide = PodState(
        uid="b",
        namespace="d",
        name="b",
        containers={"one": holding, "two": holding},
        pod_wide=("bandwidth",),
    )
    world.node.store.put(wide)
    assert world.capacity.status.resources["bandwidth"].allocatable == 120


def test_more_than_pods_hold_stays_as_told() -> None:
    told = NodeAmount(capacity=5, allocatable=4)
    assert at_least(told, 3.0) == told
