"""Binder: claims a plan's devices in the ledger, then binds its pod, each exactly once.

The scheduling loop and the extender have plans carried out by it. A claim is durable before the
binding is sent, and the binding is one write that carries the pod's uid and version as conditions.
So whatever dies in between leaves a claim without a binding, never a binding without a claim.
Devices of DRA drivers need three writes between the two, in this order: a ResourceClaim, its
allocation (`dra/claim_writer.py`), and the pod's status, which says which container has which of
them; bound before that, a pod would start without its devices and without a word. What happens when
things go otherwise:

    claim: taken               nothing was claimed; the ledger is read again, the pod decided anew
    claim: claimed already     somebody is or was at it: the ledger is read again, and the claim
                               that is there is ADOPTED: the same binding is finished, by whoever
                               comes first. Both ask for the same thing, so neither does harm
    claim: no answer           it may stand; adopted next time if it does
    ResourceClaim: there       found or replaced, as the claim writer says; in doubt, the claim is
                               given back behind a fence, and the pod decided anew
    ResourceClaim: refused     withdrawn, and the pod told why: others have use for the devices
    ResourceClaim: no answer   it may stand; found next time
    somebody else has one of   withdrawn: ResourceClaim and claim are given back behind a fence. Of
    the devices by a claim     two of ours that withdraw before each other, one backs off
    pod's status: conflict     as of the binding; what it says is looked at again before each try
    pod's status: not kept     the API server has no extended resource claims: the pod is told so
    binding: conflict          the pod is read. Bound as planned: done. Bound elsewhere: the ledger
                               is made to say what the pod's annotation says. Gone: the claim is
                               released. Fenced: somebody gave the claim back; decided anew. Only
                               changed: sent again for the new version
    binding: no answer         read until known; not bound: sent again, for it can only take once
    binding: refused           the claim stays, and is adopted when the pod's turn comes again
    claimed node is gone       the claim is given back behind a FENCE (below)
    pod gone or over           the claim is released: nobody can bind that pod any more

A claim of a pod that is not bound may be released only behind a fence: a write to the pod, which
gives it a new version, after which every binding that was under way fails. The answer to that
write tells whether a binding came first. A fence names itself in a condition of the pod, so that
whoever finds a version newer than the one it had planned with can tell that its claim is void.
What is released then is the claim that was there before the fence, and no later one: whoever put
the fence may be held up for long, while others go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum

import structlog

from dovetail.aio.backoff import Backoff
from dovetail.core.errors import DovetailError
from dovetail.kube.api.port import ApiConflict, ApiError, ApiNotFound, ApiUnreachable, KubeApi
from dovetail.kube.classes.resource_claims import WantedClaim
from dovetail.kube.scheduler import metrics
from dovetail.kube.scheduler.claims import PodClaims
from dovetail.kube.scheduler.dra.claim_writer import (
    ClaimInTheWay,
    ClaimRefused,
    ClaimVoid,
    DeviceAllocated,
    is_refusal,
)
from dovetail.kube.scheduler.plans import (
    BindingPlan,
    Standing,
    binding_of,
    claim_status_patch,
    claim_wanted_by,
    standing_of,
)
from dovetail.podfit.objects import Pod
from dovetail.service.claims import AlreadyClaimed, DeviceTaken

LOG = structlog.get_logger("dovetail.kube.scheduler")

TRIES = 8
"""Bindings of one plan; a pod that changes faster than that waits for its next turn."""
SERVER_FAULT = 500


class BindingOutcome(Enum):
    """What became of a plan."""

    BOUND = "bound"
    GONE = "gone"
    OTHERWISE = "bound otherwise"
    TAKEN = "taken"
    """Somebody has one of the devices: look again."""
    CLAIMED = "claimed already"
    """Somebody claimed for this pod: adopt it."""
    VOID = "void"
    """Our claim was given back by somebody: decide anew."""
    WITHDRAWN = "withdrawn"
    """We gave it back: another claim of ours has a device, and its pod comes before this one."""
    FAILED = "failed"
    """Not bound; a claim that was made stays, and is adopted next time."""


SETTLED = (BindingOutcome.BOUND, BindingOutcome.GONE, BindingOutcome.OTHERWISE)
"""Outcomes after which nothing is left to do for the pod."""


class Binder:
    def __init__(
        self,
        api: KubeApi,
        claims: PodClaims,
        pause: Callable[[], Backoff] = lambda: Backoff(0.1, 5.0),
    ) -> None:
        self._api = api
        self._claims = claims
        self._pause = pause

    async def carry_out(self, plan: BindingPlan) -> BindingOutcome:
        if plan.holdings and not plan.is_claimed:
            refused = await self._claim(plan)
            if refused is not None:
                return refused
        wanted = claim_wanted_by(plan)
        try:
            if wanted is not None:
                with metrics.timed("allocate"):
                    await self._claims.writer.allocate(wanted)
            with metrics.timed("bind"):
                return await self._bind(plan, wanted)
        except ClaimVoid:
            return BindingOutcome.VOID
        except (DeviceAllocated, ClaimInTheWay) as error:
            return await self._withdraw(plan, error)
        except ClaimRefused as error:
            outcome = await self._withdraw(plan, error)
            if outcome in SETTLED:
                return outcome
            raise

    async def _claim(self, plan: BindingPlan) -> BindingOutcome | None:
        """None if the devices are the pod's now."""
        try:
            with metrics.timed("claim"):
                await self._claims.claim(plan.pod, plan.node, plan.holdings)
        except DeviceTaken:
            return BindingOutcome.TAKEN
        except AlreadyClaimed:
            return BindingOutcome.CLAIMED
        except DovetailError as error:
            LOG.warning("claim failed", pod=plan.pod.key, node=plan.node, error=str(error))
            return BindingOutcome.FAILED
        return None

    async def _withdraw(
        self, plan: BindingPlan, error: DeviceAllocated | ClaimInTheWay | ClaimRefused
    ) -> BindingOutcome:
        """Give back what was written and claimed, unless somebody has bound the pod with it."""
        LOG.info("plan withdrawn", pod=plan.pod.key, node=plan.node, error=str(error))
        if not await self._claims.release_fenced(plan.pod, str(error)):
            now = await self._read(plan.pod)
            return await self._settle(plan, now) or BindingOutcome.FAILED
        metrics.RESOURCE_CLAIMS.labels("withdrawn").inc()
        waits = isinstance(error, DeviceAllocated) and not error.comes_first
        return BindingOutcome.WITHDRAWN if waits else BindingOutcome.TAKEN

    async def _tell_pod(self, plan: BindingPlan, wanted: WantedClaim | None, pod: Pod) -> Pod:
        """The pod, with a status that says which claim its devices come by. Raises ClaimRefused."""
        patch = claim_status_patch(plan, wanted, pod)
        if patch is None:
            return pod
        name, namespace = pod.metadata.name, pod.metadata.namespace
        told = pod.status.extended_resource_claim_status
        if wanted is not None and told is not None and told.resource_claim_name != wanted.name:
            await self._claims.writer.refuse_second(pod, told.resource_claim_name)
        try:
            now = await self._api.merge(Pod, name, patch, namespace=namespace, sub="status")
        except ApiError as error:
            if isinstance(error, ApiNotFound) or not is_refusal(error):
                raise
            raise ClaimRefused(f"status of pod {pod.key}: {error}") from error
        if claim_status_patch(plan, wanted, now) is not None:
            raise ClaimRefused(
                "the API server does not keep which ResourceClaim the pod's devices come by:"
                " devices of DRA drivers need Kubernetes 1.36, or the feature gate"
                " DRAExtendedResource"
            )
        return now

    async def _bind(self, plan: BindingPlan, wanted: WantedClaim | None) -> BindingOutcome:
        pod, backoff = plan.pod, self._pause()
        for _ in range(TRIES):
            is_final = False
            try:
                pod = await self._tell_pod(plan, wanted, pod)
                if wanted is not None:
                    self._claims.writer.look_again(wanted)
                await self._api.create(
                    Pod,
                    binding_of(plan, pod.metadata.resource_version),
                    namespace=plan.pod.metadata.namespace,
                    sub="binding",
                )
            except (ApiConflict, ApiNotFound):
                pass
            except ApiError as error:
                is_final = error.code < SERVER_FAULT
                LOG.warning("binding refused", pod=plan.pod.key, node=plan.node, error=str(error))
            except ApiUnreachable:
                await asyncio.sleep(backoff.next())
            else:
                return BindingOutcome.BOUND
            now = await self._read(plan.pod)
            outcome = await self._settle(plan, now)
            if outcome is not None or is_final:
                return outcome or BindingOutcome.FAILED
            assert now is not None
            pod = now
        return BindingOutcome.FAILED

    async def _settle(self, plan: BindingPlan, now: Pod | None) -> BindingOutcome | None:
        """What the pod as it is now makes of the plan; None: still to be bound.

        Of a plan without devices the claim, if there is one, is not ours: a unit of a machine.
        """
        match standing_of(plan, now):
            case Standing.AS_PLANNED:
                return BindingOutcome.BOUND
            case Standing.GONE:
                if plan.holdings:
                    await self._claims.drop_resource_claim(plan)
                    await self._claims.release(plan.uid)
                return BindingOutcome.GONE
            case Standing.OTHERWISE:
                assert now is not None
                if plan.holdings:
                    await self._claims.make_ledger_agree(now)
                return BindingOutcome.OTHERWISE
            case Standing.FENCED:
                return BindingOutcome.VOID
            case Standing.UNBOUND:
                return None

    async def _read(self, pod: Pod) -> Pod | None:
        """The pod as it is now, however long it takes to be told; None if there is none."""
        backoff = self._pause()
        while True:
            try:
                return await self._api.get(Pod, pod.metadata.name, pod.metadata.namespace)
            except ApiNotFound:
                return None
            except (ApiError, ApiUnreachable) as error:
                LOG.info("pod not read", pod=pod.key, error=str(error))
            await asyncio.sleep(backoff.next())
