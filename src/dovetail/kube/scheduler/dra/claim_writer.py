"""Claim writer: writes the ResourceClaim of a plan, and removes it when the plan is given up.

The binder calls it between the ledger's claim and the pod's status, and `PodClaims` where a claim
is given back. A pod has at most one claim of ours, known by a name made of the pod's uid, so
whoever takes a plan up finds what was written for it. What is found there may be

    of this plan              used as it is, and its allocation written if that is not there
    of before the last fence  void: nobody can bind the pod with it any more. It is replaced
    of another plan, or       somebody may be about to bind the pod with it: the plan is given back
    on its way out            behind a fence, after which it is void
    of somebody else          refused: it is not ours to remove

The API server does not compare allocations. Watches tell claims in the order in which they were
written, so once the informer has come to the version of our allocation, every allocation of before
it is known; a list is as good, and is asked for where the informer does not come. If anybody else
has one of the devices then, we withdraw, and we look again right before the binding. Whoever writes
after that does not see us: another Dovetail would, by the same rule; kube-scheduler looks before it
writes, not after, and may have looked before we wrote. Such overlaps are counted and told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from dovetail.core.errors import DovetailError
from dovetail.kube.api.port import ApiConflict, ApiError, ApiNotFound, KubeApi
from dovetail.kube.classes.resource_claims import (
    FINALIZER,
    ResourceClaim,
    WantedClaim,
    claim_name,
    digest,
    is_ours,
    owner_uid,
)
from dovetail.kube.scheduler import metrics
from dovetail.kube.scheduler.dra.claimed_devices import ClaimedDevices, rivals
from dovetail.kube.scheduler.plans import fence_of
from dovetail.podfit.objects import Pod

LOG = structlog.get_logger("dovetail.kube.scheduler")

TRIES = 4
"""Of a write that others outrun."""
SEEN_SECONDS = 2.0
"""How long the informer has to come to a version, before a list is asked for."""
FORBIDDEN, TOO_MANY, SERVER_FAULT = 403, 429, 500


class ClaimRefused(DovetailError):
    """The API server does not take what has to be written, and why."""


class ClaimVoid(DovetailError):
    """The pod was fenced since it was planned for."""


class ClaimInTheWay(DovetailError):
    """What is there was written for another plan of the pod, and may still be used."""


class DeviceAllocated(DovetailError):
    """A ResourceClaim of somebody else has one of the devices."""

    def __init__(self, rival: ResourceClaim, *, comes_first: bool) -> None:
        super().__init__(f"ResourceClaim {rival.key} has one of its devices")
        self.comes_first = comes_first
        """Of two that withdraw before each other, we try again at once, and the other waits."""


class ClaimWriter:
    def __init__(
        self,
        api: KubeApi,
        claimed: ClaimedDevices,
        reached: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        """`reached` returns when `claimed` knows all that was written up to a version."""
        self._api = api
        self._claimed = claimed
        self._reached = reached

    async def allocate(self, wanted: WantedClaim) -> None:
        """When it returns, the devices are allocated to the pod, and to nobody who was earlier.

        Raises ClaimRefused, ClaimVoid, ClaimInTheWay, DeviceAllocated; ApiError, ApiUnreachable:
        what was written is found by the next who tries.
        """
        try:
            claim = await self._written(wanted)
            if claim.status.allocation is None:
                claim = await self._with_allocation(wanted, claim)
            await self._look(wanted, claim.metadata.resource_version)
        except ApiError as error:
            if not is_refusal(error):
                raise
            raise ClaimRefused(f"ResourceClaim {wanted.name}: {error}") from error

    def look_again(self, wanted: WantedClaim) -> None:
        """Raises DeviceAllocated; costs nothing."""
        self._refuse(wanted, self._claimed.rival(wanted.devices, wanted.pod.metadata.uid))

    async def refuse_second(self, pod: Pod, name: str) -> None:
        """Raises ClaimRefused if there is a claim of this name, which the pod says it has."""
        with suppress(ApiNotFound):
            there = await self._api.get(ResourceClaim, name, pod.metadata.namespace)
            raise ClaimRefused(
                f"extended resources of pod {pod.key} come by ResourceClaim {there.key}, and a pod"
                " has one for all of them: with resource classes it cannot ask for those, too"
            )

    async def find(self, pod: Pod) -> ResourceClaim | None:
        """The pod's claim as the server has it; None if there is none of ours."""
        meta = pod.metadata
        try:
            found = await self._api.get(ResourceClaim, claim_name(pod), meta.namespace)
        except ApiNotFound:
            return None
        except ApiError as error:
            if error.code != FORBIDDEN:
                raise
            # Then none was ever written.
            return None
        return found if is_ours(found) and owner_uid(found) == meta.uid else None

    async def remove(self, claim: ResourceClaim) -> None:
        """This one, with its finalizer, and no later one of its name.

        For a pod that was never bound, is gone, or is bound without it.
        """
        meta = claim.metadata
        for _ in range(TRIES):
            with suppress(ApiNotFound, ApiConflict):
                kept = [each for each in claim.metadata.finalizers if each != FINALIZER]
                if kept != list(claim.metadata.finalizers):
                    now = {"uid": meta.uid, "resourceVersion": claim.metadata.resource_version}
                    body = {"metadata": {**now, "finalizers": kept}}
                    await self._api.merge(ResourceClaim, meta.name, body, namespace=meta.namespace)
                await self._api.delete(ResourceClaim, meta.name, meta.namespace, uid=meta.uid)
                metrics.RESOURCE_CLAIMS.labels("removed").inc()
                return
            try:
                claim = await self._api.get(ResourceClaim, meta.name, meta.namespace)
            except ApiNotFound:
                return
            if claim.metadata.uid != meta.uid:
                return
        raise ApiConflict(409, "Conflict", f"ResourceClaim {claim.key} changes too fast")

    async def _written(self, wanted: WantedClaim) -> ResourceClaim:
        """The pod's claim, made or found."""
        for _ in range(TRIES):
            with suppress(ApiConflict):
                made = await self._api.create(ResourceClaim, wanted.document())
                assert made is not None
                metrics.RESOURCE_CLAIMS.labels("written").inc()
                return made
            try:
                there = await self._api.get(
                    ResourceClaim, wanted.name, wanted.pod.metadata.namespace
                )
            except ApiNotFound:
                continue
            if is_usable(wanted, there):
                metrics.RESOURCE_CLAIMS.labels("found").inc()
                return there
            await self._make_way(wanted, there)
        raise ClaimInTheWay(f"ResourceClaim {wanted.name} comes and goes")

    async def _make_way(self, wanted: WantedClaim, there: ResourceClaim) -> None:
        if not is_ours(there) or owner_uid(there) != wanted.pod.metadata.uid:
            raise ClaimRefused(
                f"ResourceClaim {there.key} has the name of the claim that would bring in the"
                " pod's devices, and was not made for that: it has to be removed"
            )
        if wanted.is_of_its_epoch(there):
            raise ClaimInTheWay(f"ResourceClaim {there.key} was written for another plan")
        if not await self._is_current(wanted):
            raise ClaimVoid(f"pod {wanted.pod.key} was fenced meanwhile")
        await self.remove(there)
        metrics.RESOURCE_CLAIMS.labels("replaced").inc()

    async def _is_current(self, wanted: WantedClaim) -> bool:
        """Whether the pod has the fence still that it was planned with."""
        meta = wanted.pod.metadata
        try:
            now = await self._api.get(Pod, meta.name, meta.namespace)
        except ApiNotFound:
            return False
        return now.metadata.uid == meta.uid and digest(fence_of(now)) == wanted.epoch

    async def _with_allocation(self, wanted: WantedClaim, claim: ResourceClaim) -> ResourceClaim:
        """One write: allocated is not without being reserved."""
        uid, name, namespace = claim.metadata.uid, claim.metadata.name, claim.metadata.namespace
        for _ in range(TRIES):
            version = {"uid": uid, "resourceVersion": claim.metadata.resource_version}
            body = {"metadata": version, "status": wanted.status()}
            try:
                with suppress(ApiConflict):
                    return await self._api.merge(
                        ResourceClaim, name, body, namespace=namespace, sub="status"
                    )
                claim = await self._api.get(ResourceClaim, name, namespace)
            except ApiNotFound as error:
                raise ClaimVoid(f"ResourceClaim {claim.key} was removed meanwhile") from error
            if claim.metadata.uid != uid:
                raise ClaimVoid(f"ResourceClaim {claim.key} was replaced meanwhile")
            if claim.status.allocation is not None:
                if not wanted.is_allocated_in(claim):
                    raise ClaimInTheWay(f"ResourceClaim {claim.key} was allocated otherwise")
                return claim
        raise ApiConflict(409, "Conflict", f"ResourceClaim {claim.key} changes too fast")

    async def _look(self, wanted: WantedClaim, version: str) -> None:
        if self._reached is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(SEEN_SECONDS):
                    await self._reached(version)
                    self.look_again(wanted)
                    return
        there = (await self._api.list(ResourceClaim)).items
        found = rivals(there, wanted.devices, wanted.pod.metadata.uid)
        self._refuse(wanted, next(found, None))

    def _refuse(self, wanted: WantedClaim, rival: ResourceClaim | None) -> None:
        if rival is not None:
            # Of two of ours that have each other's devices, one has to be the first to try again.
            raise DeviceAllocated(
                rival, comes_first=not is_ours(rival) or wanted.pod.metadata.uid < owner_uid(rival)
            )


def is_usable(wanted: WantedClaim, there: ResourceClaim) -> bool:
    """Whether a claim that was found is the one that is wanted, as far as it was written."""
    return (
        is_ours(there)
        and there.metadata.deletion_timestamp is None
        and wanted.is_written_in(there)
        and (there.status.allocation is None or wanted.is_allocated_in(there))
    )


def is_refusal(error: ApiError) -> bool:
    """Whether the server will say the same again, and not only for now."""
    is_passing = error.code == TOO_MANY or error.code >= SERVER_FAULT
    return not is_passing and not isinstance(error, ApiConflict)
