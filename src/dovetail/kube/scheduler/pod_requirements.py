"""Pod requirements: what a pod requests of a node and of device classes, for the scheduling loop.

A cache: pods of one template are read once. `WHO_IS_HELPED` says by which events such a pod may be
helped when it fits nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

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


class Wants(msgspec.Struct, frozen=True):
    """What a pod asks for, as far as it decides which events may help it."""

    devices: bool
    """Of a class, or directly."""
    classes: bool
    company: bool
    """Pods near it, or no fewer of them elsewhere: required affinity, or spreading."""
    distance: bool
    """From pods that it selects: required anti-affinity."""


def everybody(_wants: Wants) -> bool:
    return True


WHO_IS_HELPED: Mapping[Wake, Callable[[Wants], bool]] = {
    # Room, labels, taints, features: every filter of nodes.
    Wake.NODE: everybody,
    # The emptiest domain may be no more. Pods of the node are nowhere now: they keep nobody away,
    # neither by whom they select nor by being selected, and the first of a group has none before.
    Wake.NODE_GONE: everybody,
    # Room, ports, disks, and whoever was kept away by it.
    Wake.GONE: everybody,
    Wake.RESIZED: everybody,
    # It is what the pod has to be near; or the emptiest domain is less empty.
    Wake.PLACED: lambda wants: wants.company,
    # The same, and it may be no longer what the pod has to be far from.
    Wake.RELABELLED: lambda wants: wants.company or wants.distance,
    # Of the pod's own terms, and of the terms by which pods on nodes keep it away.
    Wake.NAMESPACE: everybody,
    Wake.CLASS: lambda wants: wants.classes,
    Wake.DEVICES: lambda wants: wants.devices,
}
"""Each kind of event, and which pods that fit nowhere it may help.

Two more concern one pod alone, which is then tried at once, by whoever hears of it: the pod itself
was changed (`SchedulingQueue.add`), or something was claimed for it (`ClusterState.on_ledger`).
"""


def wake_on_of(pod_request: PodRequest, device_requests: bool, direct: bool) -> Wake:
    wants = Wants(
        devices=device_requests or direct,
        classes=device_requests,
        company=bool(pod_request.pod_affinity or pod_request.spread),
        distance=bool(pod_request.pod_anti_affinity),
    )
    wake_on = Wake(0)
    for what, is_helped in WHO_IS_HELPED.items():
        if is_helped(wants):
            wake_on |= what
    return wake_on
