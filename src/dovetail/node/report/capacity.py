"""Node capacity: what plugins say the node has of their resources, for the node's status.

Only resources that plugins call both scalar and the node's; the kubelet tells the others itself. A
plugin that is away for a moment does not take its resources along: their last known amounts stay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

import msgspec

from dovetail.node.common.metrics import AGENT_METRICS
from dovetail.node.common.ports import PluginError, Plugins
from dovetail.node.registry.deadlines import GONE_SECONDS
from dovetail.node.registry.poll import PluginPoll
from dovetail.node.state.pod_state import PodState
from dovetail.node.state.store import StateStore
from dovetail.node.wire.resource_plugin import (
    GET_TOPOLOGY_AWARE_ALLOCATABLE_RESOURCES,
    AllocatableTopologyAwareResource,
    GetTopologyAwareAllocatableResourcesRequest,
    GetTopologyAwareAllocatableResourcesResponse,
)

NODE_RESOURCES = AGENT_METRICS.gauge(
    "node_resource",
    "What the node has of a resource that plugins manage, by kind: capacity or allocatable.",
    "resource",
    "kind",
)

PERIOD_SECONDS = 10.0
"""Between looks, as often as a kubelet tells its status."""

Response = GetTopologyAwareAllocatableResourcesResponse
Told = Mapping[str, AllocatableTopologyAwareResource]


class NodeAmount(msgspec.Struct, frozen=True, kw_only=True):
    capacity: float
    allocatable: float


class PluginReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a plugin told last."""

    resources: Mapping[str, NodeAmount] = {}
    silent_since: float | None = None


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    resources: Mapping[str, NodeAmount] = {}
    removed: tuple[str, ...] = ()
    """Resources that were here and are not any longer: a node's status says 0."""


class NodeCapacity:
    def __init__(
        self,
        store: StateStore,
        plugins: Plugins,
        *,
        grace: float = GONE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._plugins, self._grace, self._clock = store, plugins, grace, clock
        self._polls: PluginPoll[GetTopologyAwareAllocatableResourcesRequest, Response, None] = (
            PluginPoll(
                GET_TOPOLOGY_AWARE_ALLOCATABLE_RESOURCES,
                GetTopologyAwareAllocatableResourcesRequest(),
            )
        )
        self._known: dict[str, PluginReport] = {}
        self.resources_by_plugin: dict[str, Told] = {}
        """By plugin: all it told last, resources that are not the node's included."""
        self._ever: set[str] = set()

    @property
    def status(self) -> NodeStatus:
        """As it was at the last look; what is allocated, as it is now."""
        resources = {
            name: amount for each in sorted(self._known) for name, amount in self._of(each).items()
        }
        held = allocated_amounts(self._store.pods.values())
        return NodeStatus(
            resources={
                name: at_least(resources[name], held.get(name, 0.0)) for name in sorted(resources)
            },
            removed=tuple(sorted(self._ever - resources.keys())),
        )

    async def look(self) -> NodeStatus:
        up = [each for each in self._plugins.all() if each.up]
        answers = await self._polls.ask(up, None)
        now = self._clock()
        told = {
            resource: answer.value.allocatable_resources
            for resource, answer in answers.items()
            if not isinstance(answer.value, PluginError)
        }
        self.resources_by_plugin.update(told)
        silent = {each.resource for each in self._plugins.all() if not each.up}
        silent |= answers.keys() - told.keys()
        self._known = updated_reports(self._known, told, silent, now, self._grace)
        self.resources_by_plugin = {
            each: self.resources_by_plugin[each]
            for each in self._known
            if each in self.resources_by_plugin
        }
        found = self.status
        self._ever |= found.resources.keys()
        publish(found)
        return found

    async def stop(self) -> None:
        await self._polls.stop()

    def _of(self, resource: str) -> Mapping[str, NodeAmount]:
        return self._known[resource].resources


def updated_reports(
    known: Mapping[str, PluginReport],
    told: Mapping[str, Told],
    silent: Iterable[str],
    now: float,
    grace: float,
) -> dict[str, PluginReport]:
    """What is known of each plugin's resources, after some told theirs and some were silent.

    A plugin that answers is believed at once, also if it leaves out what it had before.
    """
    found = {**known, **{each: PluginReport(resources=of_node(one)) for each, one in told.items()}}
    for each in sorted({*silent} & found.keys()):
        since = found[each].silent_since
        if since is None:
            found[each] = msgspec.structs.replace(found[each], silent_since=now)
        elif now - since >= grace:
            del found[each]
    return found


def of_node(told: Told) -> dict[str, NodeAmount]:
    """Those for the node's status, to three decimals."""
    return {
        name: NodeAmount(
            capacity=round(each.aggregated_capacity_quantity, 3),
            allocatable=round(each.aggregated_allocatable_quantity, 3),
        )
        for name, each in sorted(told.items())
        if each.is_node_resource and each.is_scalar_resource
    }


def allocated_amounts(pods: Iterable[PodState]) -> dict[str, float]:
    """What containers hold, by resource. Of what a pod holds as a whole, each has all of it."""
    sums: dict[str, float] = {}
    for pod in pods:
        wide: dict[str, float] = {}
        for holding in pod.containers.values():
            for name, info in holding.allocations.items():
                if name in pod.pod_wide:
                    wide[name] = info.allocated_quantity
                else:
                    sums[name] = sums.get(name, 0.0) + info.allocated_quantity
        for name, quantity in wide.items():
            sums[name] = sums.get(name, 0.0) + quantity
    return sums


def at_least(amount: NodeAmount, held: float) -> NodeAmount:
    """What pods hold was allocatable: a plugin that tells less must not cost them their place."""
    held = round(held, 3)
    return NodeAmount(
        capacity=max(amount.capacity, held), allocatable=max(amount.allocatable, held)
    )


def publish(status: NodeStatus) -> None:
    for name, amount in status.resources.items():
        NODE_RESOURCES.labels(name, "capacity").set(amount.capacity)
        NODE_RESOURCES.labels(name, "allocatable").set(amount.allocatable)
    for name in status.removed:
        NODE_RESOURCES.labels(name, "capacity").set(0)
        NODE_RESOURCES.labels(name, "allocatable").set(0)
