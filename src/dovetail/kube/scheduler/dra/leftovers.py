"""Leftover claims: ResourceClaims that were written here and that no pod will use, removed.

The reconciler sweeps now and then. Claims go with their pods, by Kubernetes' own controllers; what
is left over is what somebody wrote who died before the binding, or whose plan was outrun.
"""

from __future__ import annotations

from enum import Enum

import structlog

from dovetail.kube.api.port import ApiError, ApiNotFound, ApiUnreachable, KubeApi
from dovetail.kube.classes.resource_claims import ResourceClaim, owner_uid
from dovetail.kube.scheduler.claims import PodClaims
from dovetail.kube.scheduler.plans import is_over
from dovetail.kube.scheduler.state import ClusterState
from dovetail.podfit.objects import Pod

LOG = structlog.get_logger("dovetail.kube.scheduler")


class ClaimUse(Enum):
    """What a pod makes of the claim that was written for it."""

    USED = "used"
    PENDING = "the pod waits, and may be bound with it"
    UNUSED = "the pod is bound without it"
    ORPHAN = "the pod is over or gone"


def use_of(claim: ResourceClaim, pod: Pod | None) -> ClaimUse:
    if pod is None or pod.metadata.uid != owner_uid(claim) or is_over(pod):
        return ClaimUse.ORPHAN
    if not pod.spec.node_name:
        return ClaimUse.PENDING
    told = pod.status.extended_resource_claim_status
    is_named = told is not None and told.resource_claim_name == claim.metadata.name
    return ClaimUse.USED if is_named else ClaimUse.UNUSED


class LeftoverClaims:
    def __init__(self, api: KubeApi, state: ClusterState, claims: PodClaims) -> None:
        self._api = api
        self._state = state
        self._claims = claims

    async def sweep(self) -> int:
        """How many were removed. What cannot be now is found again."""
        removed = 0
        for claim in self._state.claimed.ours():
            pod = self._state.pods.get(owner_uid(claim))
            if use_of(claim, pod) is ClaimUse.USED or self._is_wanted(owner_uid(claim)):
                continue
            try:
                removed += await self._clear(claim)
            except (ApiError, ApiUnreachable) as error:
                LOG.info("claim not removed", claim=claim.key, error=str(error))
        return removed

    def _is_wanted(self, uid: str) -> bool:
        """By a plan under way, or one that will be taken up again."""
        pod = self._state.pods.get(uid)
        waits = pod is not None and not pod.spec.node_name
        return waits and (
            self._state.is_planned(uid) or self._state.holders.claim_of(uid) is not None
        )

    async def _clear(self, claim: ResourceClaim) -> bool:
        """The cache may be late, so the server is asked about the pod."""
        pod = await self._owner(claim)
        match use_of(claim, pod):
            case ClaimUse.USED:
                return False
            case ClaimUse.PENDING:
                # Somebody may be about to bind it: only behind a fence.
                assert pod is not None
                await self._claims.release_fenced(pod, "its ResourceClaim was left over")
                return True
            case ClaimUse.UNUSED | ClaimUse.ORPHAN:
                await self._claims.writer.remove(claim)
                return True

    async def _owner(self, claim: ResourceClaim) -> Pod | None:
        owners = (each for each in claim.metadata.owner_references if each.controller)
        try:
            return await self._api.get(Pod, next(owners).name, claim.metadata.namespace)
        except ApiNotFound:
            return None
