"""The NIC plugin: NICs near to a container, which it shares with others."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.node.hints.hint import Hints, listed
from dovetail.node.plugins.common.requests import PluginRequest
from dovetail.node.plugins.common.roles import RoleBook
from dovetail.node.plugins.common.serving import RolePlugin, by_node
from dovetail.node.plugins.common.store import PluginStore
from dovetail.node.plugins.nic.state import NicHolding, Nics, NicState
from dovetail.node.topology import Machine
from dovetail.node.wire.resource_plugin import (
    AllocatableTopologyAwareResource,
    ResourceAllocationInfo,
)


class NicPlugin(RolePlugin[NicHolding]):
    state: NicState

    def __init__(
        self, machine: Machine, book: RoleBook, store: PluginStore, *, resource: str = "NIC"
    ) -> None:
        super().__init__(resource, machine, book, store)
        self.nics = Nics(machine, book, resource)
        self.state = store.load(NicState) or NicState()

    def adopt(self, book: RoleBook) -> None:
        self.book, self.nics = book, Nics(self.machine, book, self.resource)

    def hints(self, request: PluginRequest) -> Hints:
        return self.nics.hints(self.state, request)

    def state_with(self, request: PluginRequest) -> NicState:
        return self.nics.allocate(self.state, request)

    def info(self, holding: NicHolding) -> ResourceAllocationInfo:
        """Nothing to count, unless bandwidth is set aside."""
        return ResourceAllocationInfo(
            is_node_resource=bool(holding.bandwidth),
            is_scalar_resource=bool(holding.bandwidth),
            allocated_quantity=float(holding.bandwidth),
            envs=self.nics.envs(holding),
            annotations=self.nics.annotations(holding),
            resource_hints=listed(self.nics.hints_of((holding,))),
            device_ids=holding.chosen,
        )

    def by_node(self, holding: NicHolding) -> Mapping[str, Mapping[int, float]]:
        nic = self.nics.interfaces.get(holding.nic)
        if nic is None or nic.numa is None or not holding.bandwidth:
            return {self.resource: {}}
        return {self.resource: {nic.numa: float(holding.bandwidth)}}

    def allocatable(self) -> Mapping[str, AllocatableTopologyAwareResource]:
        """Mb/s, which go into the node's status only if roles ask for bandwidth."""
        counted = any(role.nic and role.nic.bandwidth for role in self.book.roles.values())
        speeds: dict[int, float] = {}
        for each in self.nics.interfaces.values():
            if each.numa is not None and each.speed:
                speeds[each.numa] = speeds.get(each.numa, 0.0) + each.speed
        total = float(sum(each.speed or 0 for each in self.nics.interfaces.values()))
        return {
            self.resource: AllocatableTopologyAwareResource(
                is_node_resource=counted,
                is_scalar_resource=counted,
                aggregated_allocatable_quantity=total,
                topology_aware_allocatable_quantity_list=by_node(speeds),
                aggregated_capacity_quantity=total,
                topology_aware_capacity_quantity_list=by_node(speeds),
            )
        }
