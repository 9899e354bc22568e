"""Claims of pods in the ledger: made, released, made to agree with pods, and fenced.

Binder, reconciler, extender, scheduling loop and scheduler call `PodClaims`; the ledger's side is
`service/device_claims.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import Enum

import structlog

from dovetail.devices.allocation.request import DeviceHolding
from dovetail.kube.api.port import ApiError, ApiNotFound, ApiUnreachable, KubeApi
from dovetail.kube.scheduler.dra.claim_writer import ClaimWriter
from dovetail.kube.scheduler.plans import (
    FENCE,
    BindingPlan,
    claim_wanted_by,
    holdings_of,
    is_over,
)
from dovetail.kube.scheduler.state import ClusterState
from dovetail.podfit.objects import Pod
from dovetail.service.claims import DeviceTaken
from dovetail.service.device_claims import DeviceLedger

LOG = structlog.get_logger("dovetail.kube.scheduler")

FENCE_MANAGER = "dovetail-fence"
"""Of its own: what another manager applies must not take the fence away."""


class Agreement(Enum):
    """How the ledger stands to what a bound pod's annotation says."""

    EQUAL = "equal"
    """The ledger has what the pod has, now if not before."""
    CONFLICT = "conflict"
    """Somebody else holds one of these devices."""


class PodClaims:
    def __init__(
        self,
        api: KubeApi,
        ledger: DeviceLedger,
        state: ClusterState,
        writer: ClaimWriter | None = None,
    ) -> None:
        self.writer = writer or ClaimWriter(api, state.claimed)
        """Of claims of Kubernetes, which share the fate of those in the ledger."""
        self._api = api
        self._ledger = ledger
        self._state = state

    async def claim(self, pod: Pod, node: str, holdings: Sequence[DeviceHolding]) -> None:
        """Durable when it returns. Raises AlreadyClaimed, DeviceTaken."""
        await self._ledger.claim(*consumer_of(pod), node, holdings)

    async def release(self, uid: str) -> bool:
        """For a pod that nobody can bind any more."""
        found = await self._ledger.release(uid)
        self._state.on_release(uid)
        return found

    async def drop_resource_claim(self, plan: BindingPlan) -> None:
        """Of a pod that nobody can bind any more; where that fails, Kubernetes' own controllers or
        the reconciler see to it."""
        if claim_wanted_by(plan) is None:
            return
        try:
            if (written := await self.writer.find(plan.pod)) is not None:
                await self.writer.remove(written)
        except (ApiError, ApiUnreachable) as error:
            LOG.info("resource claim not removed yet", pod=plan.pod.key, error=str(error))

    async def make_ledger_agree(self, pod: Pod) -> Agreement:
        """Have the ledger say where a bound pod is, and what it has there.

        What is claimed for it on its node stays, whatever its annotation says by now: that can be
        edited by whoever may edit the pod, and the devices that it runs with are the claimed ones.
        """
        uid, node, wanted = pod.metadata.uid, pod.spec.node_name, holdings_of(pod)
        if is_over(pod):
            await self.release(uid)
            return Agreement.EQUAL
        claim = await self._ledger.claim_of(uid)
        held = (await self._ledger.holders()).get(uid) if claim else None
        if held is not None and held.node == node:
            return Agreement.EQUAL
        if wanted:
            try:
                await self._ledger.correct(*consumer_of(pod), node, wanted)
            except DeviceTaken:
                pass
            else:
                return Agreement.EQUAL
        # It runs where it is bound; what is claimed elsewhere it cannot use.
        await self._ledger.release_claim(uid, claim)
        return Agreement.CONFLICT if wanted else Agreement.EQUAL

    async def release_fenced(self, pod: Pod, why: str) -> bool:
        """Fence the pod and release what is claimed for it, unless it was bound before that.

        Released is the claim that was there before the fence: one made after it is good, and
        whoever made it may have done so while we were held up. So it is with a ResourceClaim, which
        goes first: as long as the ledger has the claim, somebody will come back to it.
        """
        uid = pod.metadata.uid
        claim = await self._ledger.claim_of(uid)
        try:
            written = await self.writer.find(pod)
            is_gone, is_bound = await self._fence(pod, why)
            if written is not None and not is_bound:
                await self.writer.remove(written)
        except (ApiError, ApiUnreachable) as error:
            LOG.info("claim not given back yet", pod=pod.key, error=str(error))
            return False
        if is_gone:
            return await self.release(uid)
        return not is_bound and await self._ledger.release_claim(uid, claim)

    async def _fence(self, pod: Pod, why: str) -> tuple[bool, bool]:
        """Whether the pod is gone, and whether it was bound before."""
        try:
            after = await self._api.apply(Pod, fence(pod, why), manager=FENCE_MANAGER, sub="status")
        except ApiNotFound:
            return True, False
        return False, bool(after.spec.node_name)


def consumer_of(pod: Pod) -> tuple[str, str, str]:
    """The pod as a consumer of the ledger: uid, namespace and account."""
    return pod.metadata.uid, pod.metadata.namespace, pod.spec.service_account_name or "default"


def fence(pod: Pod, why: str) -> dict[str, object]:
    """A write that never leaves the pod's version as it was."""
    meta = pod.metadata
    at = datetime.now(UTC)
    condition = {
        "type": FENCE,
        "status": "True",
        "reason": "ClaimGivenBack",
        "message": f"{why} (after version {meta.resource_version}, {at.isoformat()})",
        "lastTransitionTime": at.isoformat(timespec="seconds").replace("+00:00", "Z"),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
        "status": {"conditions": [condition]},
    }
