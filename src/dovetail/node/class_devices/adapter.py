"""A device plugin as a resource plugin: what the admission asks, in the words of `v1beta1`.

Each container's devices are asked for once, exactly those that were chosen. What the plugin says is
in the checkpoint from then on, and goes into every start of the container.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, cast

from dovetail.node.class_devices.names import class_resource
from dovetail.node.common.device_plugins import (
    DeviceGrant,
    DevicePlugin,
    DevicePlugins,
    PluginDevice,
    PluginOptions,
)
from dovetail.node.common.ports import PluginError, PluginFailure
from dovetail.node.common.reasons import DEVICE_UNHEALTHY, DEVICE_UNKNOWN
from dovetail.node.state.store import StateStore
from dovetail.node.wire.resource_plugin import (
    ALLOCATE,
    GET_POD_TOPOLOGY_HINTS,
    GET_TOPOLOGY_HINTS,
    PRE_START_CONTAINER,
    REMOVE_POD,
    ListOfTopologyHints,
    PodResourceHintsResponse,
    PodResourceRequest,
    PreStartContainerRequest,
    PreStartContainerResponse,
    RemovePodRequest,
    RemovePodResponse,
    ResourceAllocation,
    ResourceAllocationInfo,
    ResourceAllocationResponse,
    ResourceHintsResponse,
    ResourcePluginOptions,
    ResourceRequest,
    TopologyHint,
)
from dovetail.wire.rpc import A, Method, Q

OPTIONS = ResourcePluginOptions(with_topology_alignment=True, pre_start_required=True)
"""At each start it is seen whether the devices are there, whatever the plugin wants to know."""

MOST_NODES = 8
"""That are combined with each other in hints."""


class ClassDevicePlugin:
    """A `ports.Plugin` of one resource, whether or not its device plugin is there."""

    def __init__(
        self,
        resource: str,
        plugins: DevicePlugins,
        store: StateStore,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`resource`: as the device plugin calls it."""
        self.resource, self.options = class_resource(resource), OPTIONS
        self._served, self._plugins, self._store = resource, plugins, store
        self._unknown_since = clock()
        self._handlers: Mapping[str, Callable[[Any], Awaitable[Any]]] = {
            GET_TOPOLOGY_HINTS.name: self._hints,
            GET_POD_TOPOLOGY_HINTS.name: self._pod_hints,
            ALLOCATE.name: self._allocate,
            PRE_START_CONTAINER.name: self._pre_start,
            REMOVE_POD.name: self._remove_pod,
        }

    @property
    def up(self) -> bool:
        plugin = self._plugins.of(self._served)
        return plugin is not None and plugin.up

    @property
    def down_since(self) -> float | None:
        plugin = self._plugins.of(self._served)
        return self._unknown_since if plugin is None else plugin.down_since

    async def call(self, method: Method[Q, A], question: Q) -> A:
        handler = self._handlers.get(method.name)
        if handler is None:
            words = f"device plugins know no {method.name}"
            raise PluginError(self.resource, PluginFailure.UNIMPLEMENTED, words)
        try:
            return cast("A", await handler(question))
        except PluginError as error:
            # By the name under which the admission asked.
            error.resource = self.resource
            raise

    async def _hints(self, request: ResourceRequest) -> ResourceHintsResponse:
        found = hints(self._there(ids_of(request)))
        return ResourceHintsResponse(resource_hints={self.resource: found} if found else {})

    async def _pod_hints(self, request: PodResourceRequest) -> PodResourceHintsResponse:
        found = hints(self._there(ids_of(request)))
        return PodResourceHintsResponse(resource_hints={self.resource: found} if found else {})

    async def _allocate(self, request: ResourceRequest) -> ResourceAllocationResponse:
        ids = ids_of(request)
        chosen = self._there(ids)
        plugin = self._present()
        grant = await plugin.allocate(ids)
        info = allocation(ids, chosen, grant)
        return ResourceAllocationResponse(
            allocation_result=ResourceAllocation(resource_allocation={self.resource: info})
        )

    async def _pre_start(self, request: PreStartContainerRequest) -> PreStartContainerResponse:
        pod = self._store.pod(request.pod_uid)
        holding = pod.containers.get(request.container_name) if pod else None
        info = holding.allocations.get(self.resource) if holding else None
        plugin = self._plugins.of(self._served)
        wanted = plugin.options.pre_start_required if plugin else PluginOptions().pre_start_required
        if info is not None and (wanted or self.up):
            self._there(info.device_ids)
            if wanted:
                await self._present().pre_start(info.device_ids)
        return PreStartContainerResponse()

    async def _remove_pod(self, request: RemovePodRequest) -> RemovePodResponse:
        plugin = self._present()
        ids = self._store.state.ended_devices.get(request.pod_uid, {}).get(self.resource, ())
        if ids and plugin.options.deallocates:
            await plugin.deallocate(ids)
        return RemovePodResponse()

    def _present(self) -> DevicePlugin:
        plugin = self._plugins.of(self._served)
        if plugin is None or not plugin.up:
            words = f"the device plugin for {self._served} is not there"
            raise PluginError(self.resource, PluginFailure.DOWN, words)
        return plugin

    def _there(self, ids: Sequence[str]) -> list[PluginDevice]:
        """These devices, all well. Raises PluginError."""
        listed = self._present().devices
        for id_ in ids:
            known = listed.get(id_)
            if known is None or not known.healthy:
                said = "does not list it" if known is None else "says that it is unhealthy"
                words = f"device {id_} of {self._served}: its plugin {said}"
                reason = DEVICE_UNKNOWN if known is None else DEVICE_UNHEALTHY
                raise PluginError(self.resource, PluginFailure.REFUSED, words, reason=reason)
        return [listed[id_] for id_ in ids]


def ids_of(request: ResourceRequest | PodResourceRequest) -> tuple[str, ...]:
    return tuple(sorted({each.id for each in request.chosen_devices}))


def hints(devices: Iterable[PluginDevice]) -> ListOfTopologyHints | None:
    """The sets of nodes on which each device is near; the smallest are preferred.

    None if they are near to all, or nobody knows.
    """
    near = [{*each.numa_nodes} for each in devices if each.numa_nodes]
    if not near:
        return None
    nodes = sorted(set.union(*near))
    if len(nodes) > MOST_NODES:
        return ListOfTopologyHints(hints=(TopologyHint(nodes=tuple(nodes), preferred=True),))
    found = [
        each
        for size in range(1, len(nodes) + 1)
        for each in combinations(nodes, size)
        if all(one & {*each} for one in near)
    ]
    least = len(found[0])
    return ListOfTopologyHints(
        hints=tuple(TopologyHint(nodes=each, preferred=len(each) == least) for each in found)
    )


def allocation(
    ids: tuple[str, ...], chosen: Iterable[PluginDevice], grant: DeviceGrant
) -> ResourceAllocationInfo:
    devices = list(chosen)
    by_node: dict[int, int] = {}
    for each in devices:
        if len(each.numa_nodes) == 1:
            by_node[each.numa_nodes[0]] = by_node.get(each.numa_nodes[0], 0) + 1
    return ResourceAllocationInfo(
        is_scalar_resource=True,
        allocated_quantity=float(len(ids)),
        allocation_result=",".join(ids),
        envs=dict(grant.envs),
        annotations=dict(grant.annotations),
        resource_hints=hints(devices),
        topology_assignments=by_node,
        mounts=grant.mounts,
        devices=grant.devices,
        device_ids=ids,
        cdi_devices=grant.cdi_devices,
    )
