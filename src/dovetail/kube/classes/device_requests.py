"""Device requests of a pod: which device classes it asks for, and how many units of each.

The scheduler and the extender read them from the resources of its containers, where a class stands
as an extended resource, `resourceclass.dovetail.dev/NAME`.
"""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.core import quantity
from dovetail.core.device import MOST_UNITS
from dovetail.core.errors import Malformed
from dovetail.devices.allocation.request import DeviceRequest
from dovetail.devices.container_use import ContainerUse
from dovetail.podfit.objects import Container, Pod
from dovetail.podfit.pod_sum import CLASS_PREFIX, is_sidecar, pod_sum


class BadDeviceRequest(Malformed):
    """A request for a class that cannot be met by any number of devices."""


def device_requests_of_pod(pod: Pod) -> tuple[DeviceRequest, ...]:
    """In the order in which its containers start. Raises BadDeviceRequest."""
    if not requested_classes(pod):
        return ()
    return device_requests_of(pod.spec.containers, pod.spec.init_containers)


def requested_classes(pod: Pod) -> frozenset[str]:
    return frozenset(
        name.removeprefix(CLASS_PREFIX)
        for container in (*pod.spec.init_containers, *pod.spec.containers)
        for written in (container.resources.requests, container.resources.limits)
        for name in written
        if name.startswith(CLASS_PREFIX)
    )


def device_requests_of(
    containers: Iterable[Container], init_containers: Iterable[Container] = ()
) -> tuple[DeviceRequest, ...]:
    """What the pod has to hold, container by container. Raises BadDeviceRequest.

    Containers and sidecars hold what they request. Init containers are over before those after
    them start: they use what later containers will hold, and only what goes beyond that is
    requested besides, once, by the one that needs most. The sum is Kubernetes' own (`pod_sum`).
    """
    steps = [
        *((each.name, _counts(each), is_sidecar(each)) for each in init_containers),
        *((each.name, _counts(each), True) for each in containers),
    ]
    found = pod_sum((counts, stays) for _, counts, stays in steps)
    beyond = [
        DeviceRequest(name, peak - found.staying.get(name, 0), steps[index][0])
        for name, (peak, index) in sorted(found.peaks.items())
        if peak > found.staying.get(name, 0)
    ]
    held = [
        DeviceRequest(name, count, container)
        for container, counts, stays in steps
        if stays
        for name, count in counts.items()
    ]
    return (*beyond, *held)


def container_uses_of(pod: Pod) -> tuple[ContainerUse, ...]:
    """What each container asks for, in the order in which they start. Raises BadDeviceRequest."""
    return (
        *(
            ContainerUse(each.name, is_sidecar(each), _counts(each))
            for each in pod.spec.init_containers
        ),
        *(ContainerUse(each.name, True, _counts(each)) for each in pod.spec.containers),
    )


def _counts(container: Container) -> dict[str, int]:
    """Units by class, in the order of the classes' names: what is written has none of its own."""
    written = {
        "requests": container.resources.requests,
        "limits": container.resources.limits,
    }
    names = {name for side in written.values() for name in side if name.startswith(CLASS_PREFIX)}
    found: dict[str, int] = {}
    for name in sorted(names):
        counts = {
            side: _count(container, side, name, quantities[name])
            for side, quantities in written.items()
            if name in quantities
        }
        if len(set(counts.values())) > 1:
            raise BadDeviceRequest(
                f"container {container.name!r}: {name} has requests {counts['requests']} and limits"
                f" {counts['limits']}: they have to be equal"
            )
        found[name.removeprefix(CLASS_PREFIX)] = next(iter(counts.values()))
    return found


def _count(container: Container, side: str, name: str, written: str | float) -> int:
    where = f"container {container.name!r}: resources.{side}[{name!r}]"
    if name == CLASS_PREFIX:
        raise BadDeviceRequest(f"{where}: the name of a class is missing after the slash")
    try:
        billionths = quantity.nanos(str(written))
    except quantity.BadQuantity as bad:
        raise BadDeviceRequest(f"{where}: {bad}") from bad
    if billionths % quantity.ONE or billionths <= 0:
        raise BadDeviceRequest(
            f"{where} is {written}: devices are whole, and at least 1 is asked for"
        )
    if billionths > MOST_UNITS * quantity.ONE:
        raise BadDeviceRequest(f"{where} is {written}: no node has more than {MOST_UNITS} units")
    return billionths // quantity.ONE
