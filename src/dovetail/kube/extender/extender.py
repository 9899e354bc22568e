"""Scheduler extender: filter, prioritize and bind, as kube-scheduler asks them over HTTP.

kube-scheduler looks at everything but devices; those are chosen and claimed here, in the same
inventory and by the same protocol as in Dovetail's own scheduler. Any replica may be asked: where
two of them are, the ledger decides. Where kube-scheduler also asks about pods that want units of a
plugin's pool without a class, it hears on which nodes too many of them are held by class.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager

import msgspec
import structlog
from msgspec.structs import replace

from dovetail.core.errors import DovetailError, Malformed
from dovetail.devices.allocation.request import DeviceHolding, DeviceRequest
from dovetail.devices.allocation.strategies import Strategy
from dovetail.kube.api.port import ApiError, ApiUnreachable, KubeApi
from dovetail.kube.classes.device_requests import device_requests_of_pod, requested_classes
from dovetail.kube.classes.extended_resources import direct_holdings_of
from dovetail.kube.extender.wire import (
    HIGHEST,
    Args,
    BindingArgs,
    BindingResult,
    FilterResult,
    HostPriority,
    NodeList,
)
from dovetail.kube.scheduler.binding import Binder, BindingOutcome
from dovetail.kube.scheduler.claims import PodClaims
from dovetail.kube.scheduler.decide import holdings_for
from dovetail.kube.scheduler.ledger_watch import LedgerWatch
from dovetail.kube.scheduler.plans import BindingPlan, fence_of, unwritable_reason
from dovetail.kube.scheduler.reporting import PodReporter
from dovetail.kube.scheduler.state import ClusterState
from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_request import pod_request_of

LOG = structlog.get_logger("dovetail.kube.extender")

TRIES = 4
"""Bindings that others may outrun before kube-scheduler is told to look again."""
EXPLAINED = 8
"""Nodes of an answer for which it is told who holds the devices; of the others, how many lack."""


class ExtenderParts(msgspec.Struct, frozen=True):
    """What the extender shares with the scheduler of its replica."""

    api: KubeApi
    state: ClusterState
    claims: PodClaims
    binder: Binder
    ledger_watch: LedgerWatch
    reporter: PodReporter
    strategy: Strategy


class Extender:
    def __init__(self, parts: ExtenderParts) -> None:
        self._parts = parts
        self._api, self._state, self._strategy = parts.api, parts.state, parts.strategy
        self._giving_back: dict[str, asyncio.Task[None]] = {}
        """By pod: kube-scheduler asks more often than that takes."""

    def filter(self, args: Args) -> FilterResult:
        try:
            requests = device_requests_of_pod(args.pod)
            direct = direct_holdings_of(pod_request_of(args.pod))
        except Malformed as error:
            return FilterResult(error=str(error))
        names = args.names()
        with self._own_claim_as_room(args.pod, requests, direct):
            crowded = {
                name: f"Insufficient {resource}"
                for name in (names if direct else ())
                if (resource := self._state.exhausted_resource(name, direct))
            }
        names = [name for name in names if name not in crowded]
        failed: dict[str, str] = {}
        if requests and (why := self._why_nowhere(args.pod)):
            failed = dict.fromkeys(names, why)
            if (claimed := self._state.holders.claim_of(args.pod.metadata.uid)) is not None:
                self._start_giving_back(args.pod, claimed[0])
        elif requests:
            failed = self._nodes_without_devices(args.pod, requests, names)
        kept = [name for name in names if name not in failed]
        # Evicting pods is no way to devices here: what those held would not come to this pod.
        found = FilterResult(failed_nodes=crowded, failed_and_unresolvable_nodes=failed)
        if args.node_names is not None:
            return replace(found, node_names=kept)
        left = set(kept)
        items = args.nodes.items if args.nodes is not None else []
        nodes = NodeList([each for each in items if each["metadata"]["name"] in left])
        return replace(found, nodes=nodes)

    def _why_nowhere(self, pod: Pod) -> str:
        """What of a pod that asks for classes kube-scheduler would serve by claims of its own."""
        mapped = self._state.mapped_reason(pod_request_of(pod))
        return mapped or self._state.twice_served_reason(requested_classes(pod))

    def _own_claim_as_room(
        self, pod: Pod, requests: tuple[DeviceRequest, ...], direct: tuple[DeviceHolding, ...]
    ) -> AbstractContextManager[None]:
        """What is claimed for a pod that asks for classes is no room for what it asks directly."""
        return self._state.own_claim_as_room(pod.metadata.uid, () if requests else direct)

    def _nodes_without_devices(
        self, pod: Pod, requests: tuple[DeviceRequest, ...], names: Sequence[str]
    ) -> dict[str, str]:
        """Nodes without the devices, with the reason."""
        lost = [each.class_name for each in requests if each.class_name not in self._state.classes]
        if lost:
            return dict.fromkeys(names, f"there is no resource class {lost[0]!r}")
        claimed = self._state.holders.claim_of(pod.metadata.uid)
        if claimed is not None:
            return self._nodes_but_claimed(pod, claimed[0], names)
        fits = self._state.inventory.fits(requests, self._strategy)
        failed: dict[str, str] = {}
        for name in names:
            row = self._state.rows.find(name)
            if row is None or not fits[row]:
                failed[name] = self._why_not(name, requests, brief=len(failed) >= EXPLAINED)
        return failed

    def _why_not(self, name: str, requests: tuple[DeviceRequest, ...], *, brief: bool) -> str:
        if not self._state.has_node(name):
            return "the node is not known yet"
        if brief:
            return "too few free devices of resource classes"
        return self._state.inventory.why_not(name, requests, self._state.name_of, self._strategy)

    def _nodes_but_claimed(self, pod: Pod, node: str, names: Sequence[str]) -> dict[str, str]:
        """A binding was begun and not finished: it is finished where it was begun.

        Unless a claim of the pod was given back before: who did so may still be about to release
        this one.
        """
        is_void = fence_of(pod) and not self._state.is_planned(pod.metadata.uid)
        failed = {
            name: f"devices of {node} are claimed already"
            for name in names
            if name != node or is_void
        }
        if len(failed) == len(names):
            self._start_giving_back(pod, node)
        return failed

    def _start_giving_back(self, pod: Pod, node: str) -> None:
        uid = pod.metadata.uid
        if uid not in self._giving_back:
            task = asyncio.get_running_loop().create_task(self._release_claim(pod, node))
            self._giving_back[uid] = task
            task.add_done_callback(lambda _: self._giving_back.pop(uid))

    async def _release_claim(self, pod: Pod, node: str) -> None:
        try:
            await self._parts.claims.release_fenced(
                pod, f"the binding to {node} cannot be finished"
            )
            await self._parts.ledger_watch.refresh()
        except DovetailError as error:
            LOG.warning("claim not given back", pod=pod.key, error=str(error))

    def prioritize(self, args: Args) -> list[HostPriority]:
        """By the strategy; by none, all are equal."""
        try:
            requests = device_requests_of_pod(args.pod)
        except Malformed:
            requests = ()
        if not requests:
            return [HostPriority(name, 0) for name in args.names()]
        scores = self._state.inventory.scores(requests, self._strategy)
        rows = [(name, self._state.rows.find(name)) for name in args.names()]
        return [
            HostPriority(name, 0 if row is None else round(HIGHEST * float(scores[row])))
            for name, row in rows
        ]

    async def bind(self, args: BindingArgs) -> BindingResult:
        try:
            for _ in range(TRIES):
                why = await self._try_to_bind(args)
                if why is None:
                    return BindingResult()
            return BindingResult(why or "")
        except (ApiError, ApiUnreachable, DovetailError) as error:
            return BindingResult(str(error))

    async def _try_to_bind(self, args: BindingArgs) -> str | None:
        """None if it is; else why not, this time."""
        pod = self._state.pods.get(args.pod_uid)
        if pod is None:
            pod = await self._api.get(Pod, args.pod_name, args.pod_namespace)
        if pod.metadata.uid != args.pod_uid:
            return f"pod {pod.key} is another by now"
        if pod.spec.node_name:
            # kube-scheduler asks again if it did not hear our answer.
            there = pod.spec.node_name
            return None if there == args.node else f"pod {pod.key} is bound to {there} already"
        plan = self._plan(pod, args.node)
        if isinstance(plan, str):
            return plan
        return await self._carry_out(plan)

    async def _carry_out(self, plan: BindingPlan) -> str | None:
        self._state.assume(plan)
        outcome = BindingOutcome.FAILED
        try:
            outcome = await self._parts.binder.carry_out(plan)
            if outcome is not BindingOutcome.BOUND or plan.uid not in self._state.pods:
                await self._parts.ledger_watch.refresh()
        finally:
            # A plan that was carried out counts until its pod is seen; but one that was never seen
            # may be gone again before it is.
            if outcome is not BindingOutcome.BOUND or plan.uid not in self._state.pods:
                self._state.forget(plan.uid)
        if outcome is not BindingOutcome.BOUND:
            return f"not bound to {plan.node}: {outcome.value}"
        self._parts.reporter.report_scheduled(plan)
        return None

    def _plan(self, pod: Pod, node: str) -> BindingPlan | str:
        requests, direct = (
            device_requests_of_pod(pod),
            direct_holdings_of(pod_request_of(pod)),
        )
        with self._own_claim_as_room(pod, requests, direct):
            if crowded := self._state.exhausted_resource(node, direct):
                return f"Insufficient {crowded} on {node}"
        if not requests:
            return self._state.plan(pod, node)
        claimed = self._state.holders.claim_of(pod.metadata.uid)
        if claimed is None:
            return self._plan_with_devices(pod, node, requests, direct)
        if claimed[0] != node or fence_of(pod):
            return f"devices of {claimed[0]} are claimed already"
        holdings = holdings_for(self._state, requests, node, claimed[1])
        if holdings is None:
            return f"devices claimed on {node} are no longer those asked for"
        return self._state.plan(pod, node, holdings, is_claimed=True)

    def _plan_with_devices(
        self,
        pod: Pod,
        node: str,
        requests: tuple[DeviceRequest, ...],
        direct: tuple[DeviceHolding, ...],
    ) -> BindingPlan | str:
        with self._state.holders.using(node, direct):
            chosen = self._state.inventory.choose(node, requests, self._strategy)
            if chosen is None:
                why = self._state.inventory.why_not(
                    node, requests, self._state.name_of, self._strategy
                )
                return f"no devices left on {node}: {why}"
        plan = self._state.plan(pod, node, chosen)
        return unwritable_reason(plan) or plan
