"""A pod source around the kubelet's: what pods are while the kubelet cannot be asked.

It asks the API server who the agent is, so it answers nobody while that is away; but it starts
pods all the same. A pod is then, in this order, what the kubelet told of it last; a static one what
its manifest says; and one that nobody knows is refused, or, by choice, what the runtime is told of
it. That leaves out memory requests, huge pages, which containers come first, and what comes later.

Nothing is released meanwhile: who cannot be asked does not say that a pod is over.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from dovetail.devices.allocation_document import BadAllocation, read_allocation
from dovetail.node.common.pods import Pod, Sandbox
from dovetail.node.common.ports import AdmissionRejected, PodSource
from dovetail.node.common.reasons import POD_UNKNOWN
from dovetail.node.sources import runtime as told_by_runtime
from dovetail.node.sources.kubelet import KubeletAway
from dovetail.node.sources.pod_memory import PodMemory
from dovetail.node.sources.static_pods import StaticPods, is_static

LOG = structlog.get_logger("dovetail.node.sources")


class PodsWhileAway:
    """A `ports.PodSource`: the pods of another one, or what stands in for it."""

    def __init__(
        self,
        source: PodSource,
        memory: PodMemory,
        static: StaticPods | None,
        *,
        strangers_start: bool = False,
    ) -> None:
        """`strangers_start`: pods that were not known before are what the runtime is told."""
        self._source, self._memory, self._static = source, memory, static
        self._strangers_start = strangers_start

    async def pod(self, sandbox: Sandbox) -> Pod | None:
        try:
            found = await self._source.pod(sandbox)
        except KubeletAway as error:
            found, origin = await self._stand_in(sandbox, error)
            LOG.warning(
                "pod known otherwise",
                pod=f"{sandbox.namespace}/{sandbox.name}",
                by=origin,
                why=str(error),
            )
            return found
        if found is not None:
            self._memory.add(found)
        return found

    async def active(self) -> Sequence[Pod] | None:
        found = await self._source.active()
        if found is not None:
            await self._memory.keep(found)
        return found

    async def _stand_in(self, sandbox: Sandbox, error: KubeletAway) -> tuple[Pod, str]:
        """Also who told; raises AdmissionRejected."""
        if known := self._memory.of(sandbox.uid):
            return known, "the kubelet, before"
        static = self._static if is_static(sandbox) else None
        if static is not None and (found := await static.pod(sandbox)):
            return found, "its manifest"
        if self._strangers_start:
            check_no_devices(sandbox)
            return told_by_runtime.pod_of(sandbox), "the runtime"
        words = (
            f"{error}; it did not tell of {sandbox.namespace}/{sandbox.name} before, and no"
            " manifest does. What the runtime is told does not say all that it asks for"
            " (pods.strangers)"
        )
        raise AdmissionRejected(POD_UNKNOWN, words, later=True) from error


def check_no_devices(sandbox: Sandbox) -> None:
    """Of one that only the runtime knows: which of its containers ends before others start, nobody
    tells, so it is not known which devices are whose. Raises AdmissionRejected."""
    try:
        allocation = read_allocation(sandbox.annotations)
    except BadAllocation:
        # That is said by those who read allocations.
        return
    if allocation and allocation.origins:
        words = (
            f"{sandbox.namespace}/{sandbox.name} was given devices by class, and while the kubelet "
            "cannot be asked nobody tells which of its containers have them"
        )
        raise AdmissionRejected(POD_UNKNOWN, words, later=True)
