"""One pod's way through its plugins: topology hints, their merge, allocations.

The admission transaction calls it. It changes nothing but the slots, and leaves to the transaction
what is remembered or taken back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import groupby

from dovetail.node.admission import plugin_answers, resource_requests
from dovetail.node.admission.configuration import AdmissionConfiguration, Scope
from dovetail.node.admission.outage_policy import OutagePolicy
from dovetail.node.admission.resource_requests import RequestedResource
from dovetail.node.admission.resource_slot import ResourceSlot
from dovetail.node.common.pod_identity import PodIdentity
from dovetail.node.common.pods import Pod
from dovetail.node.common.ports import AdmissionRejected, Plugin, PluginError, PluginFailure
from dovetail.node.common.reasons import PLUGIN_REFUSED, TOPOLOGY_AFFINITY
from dovetail.node.hints.explain import explain
from dovetail.node.hints.hint import Hint, Hints, to_wire
from dovetail.node.hints.merge import MergedHint, merge
from dovetail.node.hints.policy import TopologyPolicy
from dovetail.node.wire.resource_plugin import (
    ALLOCATE,
    ALLOCATE_FOR_POD,
    GET_POD_TOPOLOGY_HINTS,
    GET_TOPOLOGY_HINTS,
)


class PodAdmission:
    """Of one pod, or of a container that comes later."""

    def __init__(
        self,
        configuration: AdmissionConfiguration,
        pod: Pod,
        who: PodIdentity,
        outage_policy: OutagePolicy,
    ) -> None:
        self._configuration = configuration
        self.pod, self.who, self.outage_policy = pod, who, outage_policy
        self.plugins_told: set[str] = set()
        """Resources whose plugins were asked to allocate, whatever came of it."""
        self.pod_wide: set[str] = set()

    async def decide(self, slots: Sequence[ResourceSlot]) -> None:
        """By container or pod, as the scope says; a pod that asks as a whole is decided on as
        one. Raises AdmissionRejected."""
        if self._configuration.scope is Scope.POD or any(each.whole for each in slots):
            await self.by_pod(slots)
        else:
            await self.by_container(slots)

    async def by_container(self, slots: Sequence[ResourceSlot]) -> None:
        """One container after the other. Raises AdmissionRejected."""
        for _, group in groupby(slots, key=lambda each: each.container.name):
            own = list(group)
            if not any(each.open for each in own):
                continue
            await _together(self._late_hints(each) for each in own)
            merged = self._merge(
                {each.request.resource: each.hints for each in own},
                f"container {own[0].container.name}",
            )
            for slot in own:
                hint = merged.of(slot.request.resource)
                if slot.whole is not None:
                    await self._allocate_for_pod(slot.whole, [slot], hint)
                else:
                    await self._allocate(slot, hint)

    async def by_pod(self, slots: Sequence[ResourceSlot]) -> None:
        """All containers on the same nodes. Raises AdmissionRejected."""
        if not any(each.open for each in slots):
            return
        counted = {
            each.request.resource: [besides.resource for besides in each.request.besides]
            for each in slots
        }
        requests = resource_requests.together(
            resource_requests.of_pod(self.pod, self._configuration.names),
            lambda resource: counted.get(resource, ()),
        )
        members = {
            request: [each for each in slots if each.request.resource == request.resource]
            for request in requests
        }
        chosen = {request: own for request, own in members.items() if own}
        await _together(self._pod_hints(request, own) for request, own in chosen.items())
        offers = {request.resource: _shared(own) for request, own in chosen.items()}
        merged = self._merge(offers, "the pod")
        for request, own in chosen.items():
            await self._allocate_for_pod(request, own, merged.of(request.resource))

    async def _late_hints(self, slot: ResourceSlot) -> None:
        """Of a container by itself, which may have to have what its pod gets."""
        if slot.whole is not None:
            await self._pod_hints(slot.whole, [slot])
        else:
            await self._container_hints(slot)

    async def _container_hints(self, slot: ResourceSlot) -> None:
        async def asked(plugin: Plugin) -> Hints:
            question = resource_requests.container_question(
                self.pod, self.who, slot.container, slot.request
            )
            answer = await self.outage_policy.call(plugin, GET_TOPOLOGY_HINTS, question)
            return plugin_answers.hints(
                answer.resource_hints, slot.request, self._configuration.nodes
            )

        try:
            await self._offer([slot], asked)
        except PluginError as error:
            self.outage_policy.settle(slot, error)
            self._remember_hints(slot)

    async def _pod_hints(self, request: RequestedResource, slots: Sequence[ResourceSlot]) -> None:
        async def asked(plugin: Plugin) -> Hints:
            question = resource_requests.pod_question(self.pod, self.who, request)
            answer = await self.outage_policy.call(plugin, GET_POD_TOPOLOGY_HINTS, question)
            return plugin_answers.hints(answer.resource_hints, request, self._configuration.nodes)

        try:
            await self._offer(slots, asked)
        except PluginError as error:
            if error.failure is PluginFailure.UNIMPLEMENTED:
                await self._common_hints([each for each in slots if not each.borrowed])
                return
            for slot in slots:
                if slot.open:
                    self.outage_policy.settle(slot, error)
                self._remember_hints(slot)

    async def _common_hints(self, slots: Sequence[ResourceSlot]) -> None:
        """For a plugin that knows no pods, only containers."""
        await _together(self._container_hints(each) for each in slots)
        common = plugin_answers.common_hints(each.hints for each in slots)
        for slot in slots:
            slot.set_hints(common)

    async def _offer(
        self, slots: Sequence[ResourceSlot], asked: Callable[[Plugin], Awaitable[Hints]]
    ) -> None:
        """Find the hints of slots that share them: remembered ones if nothing is to be asked."""
        asking = [each for each in slots if each.open]
        if not asking:
            for slot in slots:
                self._remember_hints(slot)
        elif asking[0].aligned and self._configuration.policy is not TopologyPolicy.NONE:
            plugin = asking[0].plugin
            assert plugin is not None
            found = await asked(plugin)
            for slot in slots:
                slot.set_hints(found)

    def _remember_hints(self, slot: ResourceSlot) -> None:
        if slot.given and slot.stored:
            slot.set_hints(plugin_answers.remembered_hints(slot.stored, self._configuration.nodes))

    def _merge(self, hints: Mapping[str, Hints], who: str) -> MergedHint:
        own = self._configuration
        merged = merge(own.policy, own.options, hints, own.nodes, own.distances)
        if not merged.admitted:
            why = explain(own.policy, own.options, hints, own.nodes, own.distances)
            words = f"{who} does not fit by the policy {own.policy}: {why.summary}"
            raise AdmissionRejected(TOPOLOGY_AFFINITY, words, explanation=why)
        return merged

    async def _allocate(self, slot: ResourceSlot, hint: Hint) -> None:
        slot.set_merged(hint)
        if not slot.open:
            return
        if slot.borrowed:
            raise AdmissionRejected(PLUGIN_REFUSED, _no_pods(slot))
        assert slot.plugin is not None
        self.plugins_told.add(slot.request.resource)
        question = resource_requests.container_question(
            self.pod, self.who, slot.container, slot.request, to_wire(hint)
        )
        try:
            answer = await self.outage_policy.call(slot.plugin, ALLOCATE, question)
            given = plugin_answers.allocations(
                answer.allocation_result, slot.request, optional=slot.optional
            )
            plugin_answers.check_chosen(given, slot.request, slot.chosen)
        except PluginError as error:
            self.outage_policy.settle(slot, error)
        else:
            slot.take(given)

    async def _allocate_for_pod(
        self, request: RequestedResource, slots: Sequence[ResourceSlot], hint: Hint
    ) -> None:
        asking = [each for each in slots if each.open]
        for slot in slots:
            slot.set_merged(hint)
        if not asking:
            return
        plugin = asking[0].plugin
        assert plugin is not None
        self.plugins_told.add(request.resource)
        question = resource_requests.pod_question(self.pod, self.who, request, to_wire(hint))
        try:
            answer = await self.outage_policy.call(plugin, ALLOCATE_FOR_POD, question)
            given = plugin_answers.allocations(answer.allocation_result, request, optional=False)
            chosen = [choice for each in slots for choice in each.chosen]
            plugin_answers.check_chosen(given, request, chosen)
        except PluginError as error:
            for slot in asking:
                if error.failure is PluginFailure.UNIMPLEMENTED:
                    await self._allocate(slot, hint)
                else:
                    self.outage_policy.settle(slot, error)
        else:
            self.pod_wide.add(request.resource)
            for slot in slots:
                slot.take(given)


def _no_pods(slot: ResourceSlot) -> str:
    return (
        f"the pod asks for {slot.request.original} as a whole (spec.resources), and the plugin for "
        f"{slot.request.resource} does not know AllocateForPod: give container "
        f"{slot.container.name} a request of its own"
    )


def _shared(slots: Sequence[ResourceSlot]) -> Hints:
    """The hints of slots that have them in common, but for those who have none."""
    return next((each.hints for each in slots if each.hints is not None), None)


async def _together(work: Iterable[Awaitable[None]]) -> None:
    """All at once; of several errors the first in order counts, whichever came first in time."""
    for each in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(each, BaseException):
            raise each
