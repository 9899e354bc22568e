"""When an allocation that is remembered is as good as a new one."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import msgspec

from dovetail.node.state.pod_state import Allocations
from dovetail.node.wire.resource_plugin import ResourceAllocationInfo

NODES = "CpusetMems"


def suffices(info: ResourceAllocationInfo, requested: Fraction) -> bool:
    """Whether a container that is admitted again can have what it had.

    What binds memory counts NUMA nodes, or bytes, as its plugin likes: it is not compared.
    """
    if info.oci_property_name == NODES:
        return bool(info.allocation_result)
    return info.is_scalar_resource and ceil(info.allocated_quantity) >= requested


def refreshed(known: Allocations, found: Allocations) -> Allocations:
    """What is known, brought up to date. A plugin that tells no hints has not lost them."""
    fresh = {resource: with_hints(known.get(resource), info) for resource, info in found.items()}
    return dict(sorted({**known, **fresh}.items()))


def with_hints(
    known: ResourceAllocationInfo | None, found: ResourceAllocationInfo
) -> ResourceAllocationInfo:
    if known is None or found.resource_hints is not None:
        return found
    return msgspec.structs.replace(found, resource_hints=known.resource_hints)
