"""What a pod wants, read once for all pods of a template: room on a node, devices, or neither."""

from __future__ import annotations

import msgspec

from dovetail.core.errors import DovetailError, Malformed
from dovetail.devices.allocation.request import DeviceHolding, DeviceRequest
from dovetail.kube.classes.extended_resources import asked_directly
from dovetail.kube.classes.pod_devices import device_requests_of
from dovetail.kube.scheduler.plans import asked_classes
from dovetail.kube.scheduler.queue import Wake
from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_request import PodRequest, pod_request_of, unsupported_reason

MOST_TEMPLATES = 4096
"""Templates that are remembered."""


class PodRequirements(msgspec.Struct, frozen=True, eq=False):
    """Pods of one template share one of these: it can be compared by identity."""

    demand: PodRequest
    asks: tuple[DeviceRequest, ...]
    direct: tuple[DeviceHolding, ...]
    """What it uses of pools without a class."""
    wake_on: Wake
    """What could help such a pod, if it fits nowhere."""


class UnschedulablePod(DovetailError):
    """A pod that can never be placed here as it is, and why."""


class RequirementsCache:
    def __init__(self) -> None:
        self._known: dict[int, PodRequirements] = {}

    def of(self, pod: Pod) -> PodRequirements:
        """Raises BadPod."""
        if (why := unsupported_reason(pod)) is not None:
            raise UnschedulablePod(why)
        try:
            demand = pod_request_of(pod)
            # Pods of a template have the very same demand; the want keeps it alive, so that no
            # other can have its identity.
            found = self._known.get(id(demand))
            if found is None:
                asks, direct = asks_of_pod(pod), asked_directly(demand)
                found = PodRequirements(
                    demand, asks, direct, wake_on_of(demand, bool(asks), bool(direct))
                )
                if len(self._known) >= MOST_TEMPLATES:
                    self._known.clear()
                self._known[id(demand)] = found
        except Malformed as error:
            raise UnschedulablePod(str(error)) from error
        return found


def asks_of_pod(pod: Pod) -> tuple[DeviceRequest, ...]:
    """In the order in which its containers start. Raises BadDeviceRequest."""
    if not asked_classes(pod):
        return ()
    return device_requests_of(pod.spec.containers, pod.spec.init_containers)


def wake_on_of(demand: PodRequest, asks: bool, direct: bool) -> Wake:
    wake_on = Wake.NODE | Wake.GONE
    if asks:
        wake_on |= Wake.CLASS | Wake.DEVICES
    if direct:
        wake_on |= Wake.DEVICES
    return wake_on | Wake.PLACED if demand.pod_affinity or demand.spread else wake_on
