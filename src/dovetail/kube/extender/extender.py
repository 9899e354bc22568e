"""Answers kube-scheduler: which of these nodes have the devices, which are best, bind this pod.

kube-scheduler looks at everything but devices; those are chosen and claimed here, in the same book
and by the same protocol as in Dovetail's own scheduler. Any replica may be asked: where two of them
are, the ledger decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from dovetail.classes.asks import Ask
from dovetail.classes.strategies import Strategy
from dovetail.core.errors import DovetailError, Malformed
from dovetail.kube.extender.wire import (
    HIGHEST,
    Args,
    BindingArgs,
    BindingResult,
    FilterResult,
    HostPriority,
    NodeList,
)
from dovetail.kube.objects import Pod
from dovetail.kube.port import ApiError, KubeApi, Unreachable
from dovetail.kube.scheduler.adoption import holdings_for
from dovetail.kube.scheduler.binding import Outcome
from dovetail.kube.scheduler.plans import Plan, fence_of
from dovetail.kube.scheduler.scheduler import Scheduler
from dovetail.kube.scheduler.wants import asks_of_pod

LOG = structlog.get_logger("dovetail.kube.extender")

TRIES = 4
"""Bindings that others may outrun before kube-scheduler is told to look again."""
EXPLAINED = 8
"""Nodes of an answer for which it is told who holds the devices; of the others, how many lack."""


class Extender:
    def __init__(self, api: KubeApi, scheduler: Scheduler, strategy: Strategy) -> None:
        self._api = api
        self._parts = scheduler
        self._state = scheduler.state
        self._strategy = strategy
        self._giving_back: dict[str, asyncio.Task[None]] = {}
        """By pod: kube-scheduler asks more often than that takes."""

    def filter(self, args: Args) -> FilterResult:
        try:
            asks = asks_of_pod(args.pod)
        except Malformed as error:
            return FilterResult(error=str(error))
        names = args.names()
        failed = self._lacking(args.pod, asks, names) if asks else {}
        kept = [name for name in names if name not in failed]
        # Evicting pods is no way to devices here: what those held would not come to this pod.
        if args.node_names is not None:
            return FilterResult(node_names=kept, failed_and_unresolvable_nodes=failed)
        left = set(kept)
        items = args.nodes.items if args.nodes is not None else []
        nodes = NodeList([each for each in items if each["metadata"]["name"] in left])
        return FilterResult(nodes=nodes, failed_and_unresolvable_nodes=failed)

    def _lacking(self, pod: Pod, asks: tuple[Ask, ...], names: Sequence[str]) -> dict[str, str]:
        """Nodes without the devices, with the reason."""
        lost = [each.class_name for each in asks if each.class_name not in self._state.classes]
        if lost:
            return dict.fromkeys(names, f"there is no resource class {lost[0]!r}")
        claimed = self._state.holders.claimed(pod.metadata.uid)
        if claimed is not None:
            return self._claimed_elsewhere(pod, claimed[0], names)
        fits = self._state.book.fits(asks, self._strategy)
        failed: dict[str, str] = {}
        for name in names:
            row = self._state.rows.find(name)
            if row is None or not fits[row]:
                failed[name] = self._why_not(name, asks, brief=len(failed) >= EXPLAINED)
        return failed

    def _why_not(self, name: str, asks: tuple[Ask, ...], *, brief: bool) -> str:
        if not self._state.has_node(name):
            return "the node is not known yet"
        if brief:
            return "too few free devices of resource classes"
        return self._state.book.why_not(name, asks, self._state.name_of)

    def _claimed_elsewhere(self, pod: Pod, node: str, names: Sequence[str]) -> dict[str, str]:
        """A binding was begun and not finished: it is finished where it was begun."""
        failed = {name: f"devices of {node} are claimed already" for name in names if name != node}
        if len(failed) == len(names):
            self._give_back(pod, node)
        return failed

    def _give_back(self, pod: Pod, node: str) -> None:
        uid = pod.metadata.uid
        if uid not in self._giving_back:
            task = asyncio.get_running_loop().create_task(self._given_back(pod, node))
            self._giving_back[uid] = task
            task.add_done_callback(lambda _: self._giving_back.pop(uid))

    async def _given_back(self, pod: Pod, node: str) -> None:
        try:
            await self._parts.claims.give_back(pod, f"{node} no longer fits the pod")
            await self._parts.view.refresh()
        except DovetailError as error:
            LOG.warning("claim not given back", pod=pod.key, error=str(error))

    def prioritize(self, args: Args) -> list[HostPriority]:
        """By the strategy; by none, all are equal."""
        try:
            asks = asks_of_pod(args.pod)
        except Malformed:
            asks = ()
        if not asks:
            return [HostPriority(name, 0) for name in args.names()]
        scores = self._state.book.score(asks, self._strategy)
        rows = [(name, self._state.rows.find(name)) for name in args.names()]
        return [
            HostPriority(name, 0 if row is None else round(HIGHEST * float(scores[row])))
            for name, row in rows
        ]

    async def bind(self, args: BindingArgs) -> BindingResult:
        try:
            for _ in range(TRIES):
                why = await self._bound(args)
                if why is None:
                    return BindingResult()
            return BindingResult(why or "")
        except (ApiError, Unreachable, DovetailError) as error:
            return BindingResult(str(error))

    async def _bound(self, args: BindingArgs) -> str | None:
        """None if it is; else why not, this time."""
        pod = self._state.pods.get(args.pod_uid)
        if pod is None:
            pod = await self._api.get(Pod, args.pod_name, args.pod_namespace)
        if pod.metadata.uid != args.pod_uid:
            return f"pod {pod.key} is another by now"
        plan = self._plan(pod, args.node)
        if isinstance(plan, str):
            return plan
        self._state.assume(plan)
        outcome = await self._parts.binder.carry_out(plan)
        if outcome is Outcome.BOUND:
            self._parts.teller.scheduled(pod, plan.node, plan.holdings)
            return None
        await self._parts.view.refresh()
        self._state.forget(plan.uid)
        return f"not bound to {plan.node}: {outcome.value}"

    def _plan(self, pod: Pod, node: str) -> Plan | str:
        asks = asks_of_pod(pod)
        if not asks:
            return Plan(pod, node)
        claimed = self._state.holders.claimed(pod.metadata.uid)
        if claimed is None:
            chosen = self._state.book.choose(node, asks, self._strategy)
            if chosen is None:
                why = self._state.book.why_not(node, asks, self._state.name_of)
                return f"no devices left on {node}: {why}"
            return Plan(pod, node, chosen)
        if claimed[0] != node or fence_of(pod):
            return f"devices of {claimed[0]} are claimed already"
        holdings = holdings_for(self._state, asks, node, claimed[1])
        if holdings is None:
            return f"devices claimed on {node} are no longer those asked for"
        return Plan(pod, node, holdings, is_claimed=True)
