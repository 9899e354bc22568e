"""A pod source around another: pods ask for the devices that the scheduler gave them.

The allocation on a pod says which. It is believed only if nobody but the scheduler can have written
it (`trust`), and only on the node that it is for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dovetail.devices.allocation_document import (
    ALLOCATION,
    Allocation,
    BadAllocation,
    read_allocation,
)
from dovetail.node.class_devices.choice import BadChoice, with_devices
from dovetail.node.class_devices.trust import Trust, Trusting
from dovetail.node.common.pods import Pod, Sandbox
from dovetail.node.common.ports import AdmissionRejected, PodSource
from dovetail.node.common.reasons import ANNOTATION_NOT_TRUSTED, BAD_REQUEST

ORIGIN, NODE_ORIGINS = "kubernetes.io/config.source", ("file", "http")
"""The kubelet itself writes where it has a pod from."""

STATIC = (
    "no scheduler gave devices to a static pod: they were written into its manifest; the setting "
    "devices.trust_annotations of the agent gives them all the same"
)


class ClassDevices:
    """A `PodSource`: the pods of another one, with their devices."""

    def __init__(
        self, source: PodSource, trust: Trust, node: str, names: Mapping[str, str] | None = None
    ) -> None:
        """`node`: the name of this one. `names`: resources that other plugins serve."""
        self._source, self._trust, self._node = source, trust, node
        self._names = names or {}

    async def pod(self, sandbox: Sandbox) -> Pod | None:
        """Raises AdmissionRejected if its allocation cannot be given."""
        found = await self._source.pod(sandbox)
        return None if found is None else await self._complete(found)

    async def active(self) -> Sequence[Pod] | None:
        """Those whose allocation cannot be read are there, too."""
        found = await self._source.active()
        return None if found is None else [self._read(each) for each in found]

    def _read(self, pod: Pod) -> Pod:
        try:
            allocation = of_plugins(pod)
            return with_devices(pod, allocation, self._names) if allocation else pod
        except (BadAllocation, BadChoice):
            return pod

    async def _complete(self, pod: Pod) -> Pod:
        try:
            allocation = of_plugins(pod)
            if allocation is None:
                return pod
            await self._check(pod, allocation)
            return with_devices(pod, allocation, self._names)
        except (BadAllocation, BadChoice) as error:
            raise AdmissionRejected(BAD_REQUEST, str(error)) from None

    async def _check(self, pod: Pod, allocation: Allocation) -> None:
        if allocation.node != self._node:
            raise AdmissionRejected(
                BAD_REQUEST,
                f"{ALLOCATION}: the devices are those of node {allocation.node}, and this is "
                f"{self._node} (the setting devices.node says so)",
            )
        why_not = await self._trust.why_not()
        if why_not:
            raise AdmissionRejected(ANNOTATION_NOT_TRUSTED, why_not)
        # It was read on the node, and never came by the API server.
        if pod.annotations.get(ORIGIN) in NODE_ORIGINS and not isinstance(self._trust, Trusting):
            raise AdmissionRejected(ANNOTATION_NOT_TRUSTED, STATIC)


def check_has_none(pod: Pod) -> Pod:
    """Of one that nobody knows but the runtime. Raises AdmissionRejected.

    Which of its containers end before the others start, nobody tells.
    """
    try:
        allocation = of_plugins(pod)
    except BadAllocation as error:
        raise AdmissionRejected(BAD_REQUEST, str(error)) from None
    if allocation is None:
        return pod
    words = (
        f"{ALLOCATION}: the pod was given devices by class, and here nobody tells which containers "
        "it has: pods.source is none; with another source it can have them"
    )
    raise AdmissionRejected(BAD_REQUEST, words)


def of_plugins(pod: Pod) -> Allocation | None:
    """Its allocation, if there is anything in it that the agent has to get. May raise
    BadAllocation."""
    allocation = read_allocation(pod.annotations)
    return allocation if allocation and allocation.origins else None
