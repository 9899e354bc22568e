"""What a pod was given, in words; for an event of the pod."""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.node.class_devices.names import device_resource, is_class_resource
from dovetail.node.state.pod_state import ContainerHolding, PodState
from dovetail.node.wire.resource_plugin import ResourceAllocationInfo


def allocation_words(pod: PodState) -> str:
    """`main: CPUs 2-3, memory of NUMA node 1, vendor.com/gpu GPU-8f`; empty if it has nothing."""
    told = {name: ", ".join(_given(each)) for name, each in sorted(pod.containers.items())}
    return "; ".join(f"{name}: {words}" for name, words in told.items() if words)


def _given(holding: ContainerHolding) -> Iterator[str]:
    for resource, info in sorted(holding.allocations.items(), key=_order):
        yield _words(resource, info)
    for resource in holding.missing:
        yield f"no {resource}, whose plugin was down"


def _order(allocation: tuple[str, ResourceAllocationInfo]) -> tuple[bool, str]:
    """CPUs and memory first."""
    resource, info = allocation
    return not info.oci_property_name, resource


def _words(resource: str, info: ResourceAllocationInfo) -> str:
    if info.oci_property_name == "CpusetCpus":
        return f"CPUs {info.allocation_result}"
    if info.oci_property_name == "CpusetMems":
        return f"memory of NUMA node {info.allocation_result}"
    if info.device_ids or is_class_resource(resource):
        return f"{device_resource(resource)} {' '.join(info.device_ids)}"
    if info.envs:
        told = " ".join(f"{name}={value}" for name, value in sorted(info.envs.items()))
        return f"{resource} ({told})"
    return f"{resource} {info.allocated_quantity:g}"
