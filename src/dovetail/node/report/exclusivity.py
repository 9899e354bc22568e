"""Which CPUs are a container's alone, for the pod resources API. Pure.

The pod resources API lists those and no shared ones, but an allocation does not say which it is. A
set counts as exclusive if it is just as large as the container asked for, in whole CPUs, and nobody
in another pod has any of it. So a pool with one container in it is none, unless it fits exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from dovetail.node.common.container_settings import CPUSET_CPUS
from dovetail.node.common.cpus import BadCpuList, CpuSet
from dovetail.node.common.pods import Amounts, ContainerSpec
from dovetail.node.state.pod_state import ContainerHolding, PodState
from dovetail.node.wire.resource_plugin import ResourceAllocationInfo

Owners = Mapping[int, Set[str]]
"""By CPU, the uids of the pods that have it."""


def cpu_owners(pods: Iterable[PodState]) -> Owners:
    found: dict[int, set[str]] = {}
    for pod in pods:
        for holding in pod.containers.values():
            for cpu in cpus_of(holding):
                found.setdefault(cpu, set()).add(pod.uid)
    return found


def exclusive_cpus(
    holding: ContainerHolding,
    specified: ContainerSpec | None,
    owners: Owners,
    whole: Amounts | None = None,
) -> CpuSet:
    """None if it is not known what the container asked for; `whole`: what its pod asks for."""
    own = cpus_of(holding)
    asked = {**({} if specified is None else specified.requests), **(whole or {})}
    if not any(
        asked.get(resource) == len(own)
        for resource, info in holding.allocations.items()
        if info.oci_property_name == CPUSET_CPUS
    ):
        return CpuSet()
    return own if all(len(owners[each]) == 1 for each in own) else CpuSet()


def cpus_of(holding: ContainerHolding) -> CpuSet:
    return CpuSet(
        cpu
        for info in holding.allocations.values()
        if info.oci_property_name == CPUSET_CPUS
        for cpu in cpus_of_allocation(info)
    )


def cpus_of_allocation(info: ResourceAllocationInfo) -> CpuSet:
    try:
        return CpuSet.parse(info.allocation_result)
    except BadCpuList:
        return CpuSet()
