"""A slot: one request for one resource of one container, on its way through an admission."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import ceil

import msgspec

from dovetail.core.quantity import format as written
from dovetail.node.admission import resource_requests
from dovetail.node.admission.admission_log import HintRecord, ResourceRecord
from dovetail.node.admission.configuration import AdmissionConfiguration, Scope
from dovetail.node.admission.resource_requests import RequestedResource
from dovetail.node.common.container_settings import CPUSET_MEMS
from dovetail.node.common.pods import ContainerSpec, DeviceChoice, Pod
from dovetail.node.common.ports import AdmissionRejected, Plugin, Plugins
from dovetail.node.common.reasons import CONFLICTING_SETTINGS, PLUGIN_DOWN
from dovetail.node.hints.hint import Hint, Hints
from dovetail.node.state.pod_state import (
    Allocations,
    ContainerHolding,
    PodState,
    amount_texts,
)
from dovetail.node.wire.resource_plugin import ContainerType, ResourceAllocationInfo

BYTES = ("memory", "hugepages-", "ephemeral-storage")


@dataclass(eq=False, kw_only=True)
class ResourceSlot:
    request: RequestedResource
    container: ContainerSpec
    plugin: Plugin | None
    """None: it is not there, but what it gave before is."""
    stored: ResourceAllocationInfo | None = None
    given: Allocations | None = None
    """What it got; None as long as that is open."""
    hints: Hints = None
    whole: RequestedResource | None = None
    """What the pod itself asks for: the container has what the pod gets."""
    borrowed: bool = False
    """Only the pod asks for it, and the container does not."""
    missing: bool = False
    """It does without, because its plugin is down."""
    record: ResourceRecord = field(init=False)

    def __post_init__(self) -> None:
        request = self.request
        besides = (f", {each.original} {_written(each, each.amount)}" for each in request.besides)
        self.record = ResourceRecord(
            resource=request.resource,
            container=self.container.name,
            requested=_written(request, request.amount) + "".join(besides),
            limit="" if request.limit is None else _written(request, request.limit),
        )

    @property
    def open(self) -> bool:
        return self.given is None

    @property
    def chosen(self) -> tuple[DeviceChoice, ...]:
        """The devices that are meant, if the scheduler chose some."""
        return resource_requests.chosen_of(self.container, self.request)

    @property
    def aligned(self) -> bool:
        return self.plugin is not None and self.plugin.options.with_topology_alignment

    @property
    def optional(self) -> bool:
        """Plugins may leave out containers that are over before the others start, or that come
        before those whose place they are to share."""
        return self.container.type is ContainerType.INIT or self.container.restartable

    def take(self, given: Allocations) -> None:
        self.given = given
        self.record.allocation = given.get(self.request.resource)

    def reopen(self) -> None:
        """It is to be asked for anew, for another amount."""
        self.given, self.record.allocation, self.record.reused = None, None, False

    def keep(self) -> None:
        """What it has will do."""
        assert self.stored is not None
        self.take({self.request.resource: self.stored})
        self.record.reused = True

    def go_without(self) -> None:
        self.take({})
        self.missing = True

    def set_hints(self, hints: Hints) -> None:
        self.hints = hints
        self.record.hints = None if hints is None else tuple(map(hint_record, hints))

    def set_merged(self, hint: Hint) -> None:
        self.record.merged = hint_record(hint)


def _written(request: RequestedResource, amount: Fraction) -> str:
    return written(amount, binary=request.resource.startswith(BYTES))


def hint_record(hint: Hint) -> HintRecord:
    nodes = None if hint.nodes is None else str(hint.nodes)
    return HintRecord(nodes=nodes, preferred=hint.preferred)


def slots(
    pod: Pod,
    containers: Iterable[ContainerSpec],
    before: PodState | None,
    plugins: Plugins,
    configuration: AdmissionConfiguration,
) -> list[ResourceSlot]:
    """Resources that have a plugin, or had one, by container; settled if nothing need be asked."""
    whole = wholes(pod, plugins, configuration)
    found = []
    for container in containers:
        own = requests_of(container, plugins, configuration)
        lent = _lent(pod, whole, own)
        for request in sorted((*own, *lent)):
            slot = _slot(request, container, before, plugins, whole.get(request.resource, request))
            if slot is not None:
                slot.borrowed = request in lent
                slot.whole = _asked_by_pod(pod, whole.get(request.resource))
                found.append(slot)
    return found


def wholes(
    pod: Pod, plugins: Plugins, configuration: AdmissionConfiguration
) -> dict[str, RequestedResource]:
    """What plugins are asked for the pod as a whole, by resource."""
    if configuration.scope is not Scope.POD and not pod.requests:
        return {}
    requests = resource_requests.together(
        resource_requests.of_pod(pod, configuration.names), partial(_besides, plugins)
    )
    return {
        each.resource: each
        for each in requests
        if configuration.scope is Scope.POD or _asked_by_pod(pod, each)
    }


def _asked_by_pod(pod: Pod, request: RequestedResource | None) -> RequestedResource | None:
    asked = request is not None and resource_requests.is_pod_level(request, pod)
    return request if asked else None


def asked_as_whole(
    pod: Pod, slots: Iterable[ResourceSlot], pod_wide: Collection[str]
) -> dict[str, str]:
    """What the pod itself asks for, of resources that it gets as a whole; as it is stored."""
    return amount_texts(
        {
            each.original: each.amount
            for slot in slots
            if slot.whole and slot.request.resource in pod_wide
            for each in (slot.whole, *slot.whole.besides)
            if each.original in pod.requests
        }
    )


def requests_of(
    container: ContainerSpec, plugins: Plugins, configuration: AdmissionConfiguration
) -> tuple[RequestedResource, ...]:
    """As the plugins are asked for them."""
    requests = resource_requests.of_container(container, configuration.names)
    return resource_requests.together(requests, partial(_besides, plugins))


def check_served(containers: Iterable[ContainerSpec], slots: Iterable[ResourceSlot]) -> None:
    """A device that the scheduler chose has somebody to give it. Raises AdmissionRejected."""
    asked = {
        (slot.container.name, each.original)
        for slot in slots
        for each in (slot.request, *slot.request.besides)
    }
    for container in containers:
        for name, chosen in sorted(container.chosen.items()):
            if (container.name, name) not in asked:
                words = (
                    f"container {container.name} was given {chosen[0].resource} {chosen[0].id} by "
                    f"class, and there is no plugin for {name} on this node"
                )
                raise AdmissionRejected(PLUGIN_DOWN, words, later=True)


def _besides(plugins: Plugins, resource: str) -> list[str]:
    """Resources that the plugin counts, too, and that have none of their own."""
    plugin = plugins.of(resource)
    extra = plugin.options.extra_resources if plugin else ()
    return [each for each in extra if plugins.of(each) is None]


def _lent(
    pod: Pod, whole: Mapping[str, RequestedResource], own: Iterable[RequestedResource]
) -> list[RequestedResource]:
    """What the pod itself asks for, and the container does not."""
    asked = {each.resource for each in own}
    return [
        each
        for each in whole.values()
        if resource_requests.is_pod_level(each, pod) and each.resource not in asked
    ]


def _slot(
    request: RequestedResource,
    container: ContainerSpec,
    before: PodState | None,
    plugins: Plugins,
    whole: RequestedResource,
) -> ResourceSlot | None:
    shared = before is not None and request.resource in before.pod_wide
    known = held(before, container.name).allocations.get(request.resource)
    if known is None and shared:
        known = shared_allocation(before, request.resource)
    plugin = plugins.of(request.resource)
    if plugin is None and known is None:
        return None
    slot = ResourceSlot(request=request, container=container, plugin=plugin, stored=known)
    amount = whole.amount if shared else request.amount
    if known and (plugin is None or suffices(known, amount)):
        slot.keep()
    return slot


def suffices(info: ResourceAllocationInfo, requested: Fraction) -> bool:
    """Whether a container that is admitted again can have what it had.

    What binds memory counts NUMA nodes, or bytes, as its plugin likes: it is not compared.
    """
    if info.oci_property_name == CPUSET_MEMS:
        return bool(info.allocation_result)
    return info.is_scalar_resource and ceil(info.allocated_quantity) >= requested


def held(before: PodState | None, container: str) -> ContainerHolding:
    return before.containers.get(container, ContainerHolding()) if before else ContainerHolding()


def shared_allocation(before: PodState | None, resource: str) -> ResourceAllocationInfo | None:
    """What any container has of a resource that all share."""
    holdings = before.containers.values() if before else ()
    return next(
        (each.allocations[resource] for each in holdings if resource in each.allocations), None
    )


def holdings(
    containers: Iterable[ContainerSpec], slots: Sequence[ResourceSlot], before: PodState | None
) -> dict[str, ContainerHolding]:
    """What containers had, and on top of it what they got. Raises AdmissionRejected."""
    found = {}
    for container in containers:
        own = [each for each in slots if each.container.name == container.name]
        had = held(before, container.name)
        found[container.name] = msgspec.structs.replace(
            had,
            allocations=dict(sorted({**had.allocations, **_given(own)}.items())),
            missing=tuple(each.request.resource for each in own if each.missing),
            requests=amount_texts(container.requests),
            limits=amount_texts(container.limits),
        )
    return found


def _given(slots: Iterable[ResourceSlot]) -> dict[str, ResourceAllocationInfo]:
    """All together. What accompanies a resource may be a resource that another plugin gives."""
    found: dict[str, ResourceAllocationInfo] = {}
    givers: dict[str, str] = {}
    for slot in slots:
        for name, info in (slot.given or {}).items():
            giver = givers.setdefault(name, slot.request.resource)
            if found.setdefault(name, info) != info:
                raise AdmissionRejected(
                    CONFLICTING_SETTINGS,
                    f"the plugins for {giver} and {slot.request.resource} both allocate {name} to"
                    f" container {slot.container.name}, and not the same of it",
                )
    return found
