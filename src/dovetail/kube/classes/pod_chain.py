"""Chain of a pod: from the classes it asks for to the devices in its containers, or where it ended.

`dovetail explain pod` reads it from a cluster: the pod, its ResourceClaim, its node and its events.
What its reader may not see, or is no more, is left out. `chain_of` itself is pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from dovetail.core.device import Device, DraOrigin, Origin
from dovetail.core.errors import Malformed
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.devices.allocation_document import Allocation, BadAllocation, read_allocation
from dovetail.kube.api.port import ApiError, KubeApi
from dovetail.kube.classes.device_ways import way_of
from dovetail.kube.classes.resource_claims import ResourceClaim, allocated_devices
from dovetail.kube.classes.sources import devices_of
from dovetail.kube.runtime.events import Recorder
from dovetail.podfit.objects import (
    ApiResource,
    ApiStruct,
    Condition,
    ExtendedClaimStatus,
    KubeObject,
    Node,
    ObjectMeta,
    Pod,
    PodSpec,
    ResourceSlice,
)
from dovetail.podfit.pod_sum import CLASS_PREFIX

AGENT, GIVEN = "dovetail-agent", "Allocated"
"""Who tells what a pod was given on its node, and the reason of that event."""
DEVICES_AVAILABLE = "dovetail.dev/DevicesAvailable"
RESIZES = ("PodResizePending", "PodResizeInProgress")
ENDED = ("Succeeded", "Failed")


class ContainerWords(ApiStruct, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class ContainerReport(ApiStruct, frozen=True, kw_only=True):
    name: str
    state: dict[str, ContainerWords] = msgspec.field(default_factory=dict)

    @property
    def words(self) -> str:
        for state, told in self.state.items():
            return ", ".join(filter(None, (state, told.reason, told.message)))
        return "not started"


class ReportedStatus(ApiStruct, frozen=True, kw_only=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerReport, ...] = ()
    init_container_statuses: tuple[ContainerReport, ...] = ()
    extended_resource_claim_status: ExtendedClaimStatus | None = None


class ReportedPod(KubeObject, frozen=True, kw_only=True):
    """A pod with all the words that its status has."""

    API = Pod.API

    spec: PodSpec = PodSpec()
    status: ReportedStatus = ReportedStatus()


class ToldEvent(KubeObject, frozen=True, kw_only=True):
    API = ApiResource("", "v1", "events", "Event")

    type: str = ""
    reason: str = ""
    message: str = ""
    reporting_component: str = ""
    source: dict[str, str] = msgspec.field(default_factory=dict)
    last_timestamp: str | None = None
    event_time: str | None = None
    series: dict[str, Any] | None = None

    @property
    def at(self) -> str:
        repeated = (self.series or {}).get("lastObservedTime")
        return repeated or self.last_timestamp or self.event_time or ""

    @property
    def teller(self) -> str:
        return self.reporting_component or self.source.get("component", "")


class AskedUnits(msgspec.Struct, frozen=True, rename="camel"):
    container: str
    class_name: str = msgspec.field(name="class")
    units: str


class GivenDevice(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    container: str
    class_name: str = msgspec.field(name="class")
    device: str
    units: int
    way: str
    """How it comes into the container."""
    id: str = ""
    properties: dict[str, str] = {}
    is_there: bool = True
    """Whether the node still has it; it may also not be known, then it is believed."""
    healthy: bool = True


class ChainClaim(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    devices: tuple[str, ...] = ()
    trouble: str = ""


class ChainStop(msgspec.Struct, frozen=True):
    """Where it ended, and why."""

    where: str
    why: str


class PodChain(msgspec.Struct, frozen=True, rename="camel"):
    pod: str
    node: str
    phase: str
    asked: tuple[AskedUnits, ...]
    devices: tuple[GivenDevice, ...]
    claim: ChainClaim | None
    given: str
    """What the agent of the node tells: CPUs, memory and devices by container."""
    containers: dict[str, str]
    stopped: ChainStop | None
    notes: tuple[str, ...]
    """What else its conditions say."""


class GivenTeller:
    """Tells by an event of a pod what the agent of its node gave it; the agent calls it."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __call__(self, *, namespace: str, name: str, uid: str, words: str) -> None:
        pod = Pod(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid))
        self._recorder.event(pod, "Normal", GIVEN, "Starting", words)


async def read_chain(api: KubeApi, name: str, namespace: str) -> PodChain:
    """Raises ApiError if there is no such pod, or it may not be read."""
    pod = await api.get(ReportedPod, name, namespace)
    claim = pod.status.extended_resource_claim_status
    claims: Sequence[ResourceClaim] = ()
    if claim is not None:
        claims = await _readable(api, ResourceClaim, claim.resource_claim_name, namespace)
    nodes = await _readable(api, Node, pod.spec.node_name) if pod.spec.node_name else ()
    slices = await _listed(api, ResourceSlice, fields=f"spec.nodeName={pod.spec.node_name}")
    events = await _listed(
        api, ToldEvent, namespace=namespace, fields=f"involvedObject.uid={pod.metadata.uid}"
    )
    return chain_of(
        pod,
        claim=next(iter(claims), None),
        devices=_devices(nodes[0], slices) if nodes else None,
        events=sorted(events, key=lambda each: each.at),
    )


async def _readable(api: KubeApi, kind: type[Any], name: str, namespace: str = "") -> Sequence[Any]:
    try:
        return (await api.get(kind, name, namespace),)
    except ApiError:
        return ()


async def _listed(api: KubeApi, kind: type[Any], **which: str) -> Sequence[Any]:
    try:
        return (await api.list(kind, **which)).items
    except ApiError:
        return ()


def _devices(node: Node, slices: Sequence[ResourceSlice]) -> dict[str, Device] | None:
    try:
        return {each.name: each for each in devices_of(node, slices)}
    except Malformed:
        return None


def chain_of(
    pod: ReportedPod,
    *,
    claim: ResourceClaim | None = None,
    devices: dict[str, Device] | None = None,
    events: Sequence[ToldEvent] = (),
) -> PodChain:
    """`devices`: those of its node, by name; None if they are not known. `events`: oldest first."""
    allocation, broken = None, ""
    try:
        allocation = read_allocation(pod.metadata.annotations)
    except BadAllocation as error:
        broken = str(error)
    wanted = pod.status.extended_resource_claim_status
    name = wanted.resource_claim_name if wanted else ""
    told = [each.message for each in events if (each.teller, each.reason) == (AGENT, GIVEN)]
    made = _claim(pod, name, claim) if name else None
    reports = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return PodChain(
        pod=pod.key,
        node=pod.spec.node_name,
        phase=pod.status.phase,
        asked=tuple(_asked(pod)),
        devices=tuple(_given(allocation, devices, name)) if allocation else (),
        claim=made,
        given=told[-1] if told else "",
        containers={each.name: each.words for each in reports},
        stopped=_stop(pod, allocation, broken, made, events),
        notes=tuple(_notes(pod.status.conditions)),
    )


def _asked(pod: ReportedPod) -> Iterator[AskedUnits]:
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        written = {**container.resources.limits, **container.resources.requests}
        for name, amount in sorted(written.items()):
            if name.startswith(CLASS_PREFIX):
                yield AskedUnits(container.name, name.removeprefix(CLASS_PREFIX), str(amount))


def _given(
    allocation: Allocation, devices: dict[str, Device] | None, claim: str
) -> Iterator[GivenDevice]:
    for held in allocation.holdings:
        found = (devices or {}).get(held.device)
        origin = _origin(allocation, held, found)
        yield GivenDevice(
            container=held.container,
            class_name=held.class_name,
            device=held.device,
            units=held.units,
            way=way_of(origin, claim if isinstance(origin, DraOrigin) else ""),
            id=getattr(origin, "id", ""),
            properties=dict(found.properties) if found else {},
            is_there=found is not None or devices is None,
            healthy=found is None or found.healthy,
        )


def _origin(allocation: Allocation, held: DeviceHolding, found: Device | None) -> Origin | None:
    """As the pod says; the claim's devices are known by their node only."""
    written = allocation.origins.get(held.device)
    if written is None and found is not None and isinstance(found.origin, DraOrigin):
        return found.origin
    return written


def _claim(pod: ReportedPod, name: str, claim: ResourceClaim | None) -> ChainClaim:
    if claim is None:
        return ChainClaim(name, trouble="it is not there, or may not be read")
    allocated = sorted(allocated_devices(claim), key=lambda each: (each.driver, each.device))
    listed = tuple(f"{each.driver}/{each.pool}/{each.device}" for each in allocated)
    if not listed:
        return ChainClaim(name, trouble="it is not allocated")
    if all(each.uid != pod.metadata.uid for each in claim.status.reserved_for):
        return ChainClaim(name, listed, trouble="it is not reserved for the pod")
    return ChainClaim(name, listed)


def _stop(
    pod: ReportedPod,
    allocation: Allocation | None,
    broken: str,
    claim: ChainClaim | None,
    events: Sequence[ToldEvent],
) -> ChainStop | None:
    if not pod.spec.node_name:
        return ChainStop("scheduling", _why_unscheduled(pod))
    if broken:
        return ChainStop("binding", broken)
    if allocation is None and any(_asked(pod)):
        return ChainStop(
            "binding",
            f"no devices were given: {pod.spec.scheduler_name!r} or whoever bound the pod knows no"
            " resource classes",
        )
    if claim is not None and claim.trouble and pod.status.phase not in ENDED:
        return ChainStop("claim", f"ResourceClaim {claim.name}: {claim.trouble}")
    if pod.status.phase == "Failed":
        told = ": ".join(filter(None, (pod.status.reason, pod.status.message)))
        return ChainStop("node", told or "the pod failed")
    return _stop_on_node(pod, events)


def _why_unscheduled(pod: ReportedPod) -> str:
    if gates := ", ".join(each.name for each in pod.spec.scheduling_gates):
        return f"it waits for its scheduling gates to be lifted: {gates}"
    for each in pod.status.conditions:
        if each.type == "PodScheduled" and each.status == "False":
            return each.message or each.reason
    return f"scheduler {pod.spec.scheduler_name!r} has not looked at it yet, or does not run"


def _stop_on_node(pod: ReportedPod, events: Sequence[ToldEvent]) -> ChainStop | None:
    for each in pod.status.conditions:
        if each.type == DEVICES_AVAILABLE and each.status == "False":
            return ChainStop("devices", f"{each.reason}: {each.message}")
    if pod.status.phase != "Pending":
        return None
    # Sandboxes that are refused leave no trace in the pod but these.
    warnings = [each for each in events if each.type == "Warning" and each.teller == "kubelet"]
    if warnings:
        last = warnings[-1]
        return ChainStop("node", f"{last.reason}: {last.message}")
    waiting = [f"{each.name}: {each.words}" for each in pod.status.container_statuses]
    return ChainStop("node", "; ".join(waiting) or "the kubelet has not begun to start it")


def _notes(conditions: Sequence[Condition]) -> Iterator[str]:
    for each in conditions:
        if each.type in RESIZES and each.status == "True":
            told = ": ".join(filter(None, (each.reason, each.message)))
            yield f"{each.type}: {told}" if told else each.type
