"""Pod requirements: what a pod requests of a node and of device classes, for the scheduling loop.

A cache: pods of one template are read once.
"""

from __future__ import annotations

import msgspec

from dovetail.core.errors import DovetailError, Malformed
from dovetail.devices.allocation.request import DeviceHolding, DeviceRequest
from dovetail.kube.classes.device_requests import device_requests_of_pod
from dovetail.kube.classes.extended_resources import direct_holdings_of
from dovetail.kube.scheduler.queue import Wake
from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_request import PodRequest, pod_request_of, unsupported_reason

MOST_TEMPLATES = 4096
"""Templates that are remembered."""


class PodRequirements(msgspec.Struct, frozen=True, eq=False):
    """Pods of one template share one of these: it can be compared by identity."""

    pod_request: PodRequest
    device_requests: tuple[DeviceRequest, ...]
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
        """Raises UnschedulablePod."""
        if (why := unsupported_reason(pod)) is not None:
            raise UnschedulablePod(why)
        try:
            pod_request = pod_request_of(pod)
            # Pods of a template have the very same pod request; these requirements keep it alive,
            # so that no other can have its identity.
            found = self._known.get(id(pod_request))
            if found is None:
                device_requests, direct = (
                    device_requests_of_pod(pod),
                    direct_holdings_of(pod_request),
                )
                found = PodRequirements(
                    pod_request,
                    device_requests,
                    direct,
                    wake_on_of(pod_request, bool(device_requests), bool(direct)),
                )
                if len(self._known) >= MOST_TEMPLATES:
                    self._known.clear()
                self._known[id(pod_request)] = found
        except Malformed as error:
            raise UnschedulablePod(str(error)) from error
        return found


def wake_on_of(pod_request: PodRequest, device_requests: bool, direct: bool) -> Wake:
    wake_on = Wake.NODE | Wake.GONE
    if device_requests:
        wake_on |= Wake.CLASS | Wake.DEVICES
    if direct:
        wake_on |= Wake.DEVICES
    return wake_on | Wake.PLACED if pod_request.pod_affinity or pod_request.spread else wake_on
