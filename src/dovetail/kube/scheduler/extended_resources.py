"""Pools: devices of plugins, which pods can also ask for directly, without a class.

Both sorts of pods take of the same units. So a pod that asks for `nvidia.com/gpu` holds units of
that device in the book, and what is held by class is no room on the node for pods that ask so.
"""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.core.device import Device
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.kube.classes.capacity import is_extended, pool_name
from dovetail.podfit.pod_request import PodRequest

Pools = tuple[tuple[str, str], ...]
"""Devices, and the resource that each is a unit or a pool of."""


def asked_directly(demand: PodRequest) -> tuple[DeviceHolding, ...]:
    """What a pod uses of pools, should its node have them."""
    return tuple(
        DeviceHolding(pool_name(resource), amount)
        for resource, amount in demand.amounts
        if is_extended(resource)
    )


def pools_of(devices: Iterable[Device]) -> Pools:
    """Devices that count as one of the node's own resources, too: by their kind."""
    return tuple((each.name, each.kind) for each in devices if is_extended(each.kind))
