"""A plugin for the resource `example.com/core`: each container gets a CPU of its own."""

import sys
from pathlib import Path

from dovetail.node.sdk.plugin import ResourcePlugin, allocation_for, hints_for, refuse
from dovetail.node.sdk.serving import run
from dovetail.node.wire.resource_plugin import (
    RemovePodRequest,
    RemovePodResponse,
    ResourceAllocationInfo,
    ResourceAllocationResponse,
    ResourceHintsResponse,
    ResourcePluginOptions,
    ResourceRequest,
    TopologyHint,
)

NODES = {0: (2, 3), 1: (6, 7)}
"""CPUs to give out, by NUMA node."""


class Cores(ResourcePlugin):
    def __init__(self) -> None:
        super().__init__("example.com/core", ResourcePluginOptions(with_topology_alignment=True))
        self.given: dict[tuple[str, str], int] = {}

    async def get_topology_hints(self, request: ResourceRequest) -> ResourceHintsResponse:
        hints = [TopologyHint(nodes=(each,), preferred=True) for each in NODES if self.free(each)]
        return hints_for(request, {self.resource: hints})

    async def allocate(self, request: ResourceRequest) -> ResourceAllocationResponse:
        holder = request.pod_uid, request.container_name
        if holder not in self.given:
            nodes = request.hint.nodes if request.hint and request.hint.nodes else tuple(NODES)
            free = [cpu for node in nodes for cpu in self.free(node)]
            if not free:
                raise refuse(f"no CPU is left on the NUMA nodes {nodes}")
            self.given[holder] = free[0]
        given = ResourceAllocationInfo(
            oci_property_name="CpusetCpus",
            is_scalar_resource=True,
            allocated_quantity=1,
            allocation_result=str(self.given[holder]),
        )
        return allocation_for(request, {self.resource: given})

    async def remove_pod(self, request: RemovePodRequest) -> RemovePodResponse:
        for holder in [each for each in self.given if each[0] == request.pod_uid]:
            del self.given[holder]
        return RemovePodResponse()

    def free(self, node: int) -> list[int]:
        return [cpu for cpu in NODES.get(node, ()) if cpu not in self.given.values()]


if __name__ == "__main__":
    run(Cores(), Path(sys.argv[1]))
