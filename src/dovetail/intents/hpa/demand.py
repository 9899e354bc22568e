"""Demand: what the pods of an app ask of nodes, with its requirements and some of its options.

The HPA controller reads it once for a group. An option is a requirement that is not mandatory; sets
of options are bit masks, and the demand with each is worked out when it is asked for. All of it is
the same for every cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from dovetail.core.errors import Malformed
from dovetail.devices.classes.documents import DeviceClass
from dovetail.intents.group import (
    AnyRequirement,
    DeploymentGroup,
    DeviceRequirement,
    HpaIntent,
    LabelRequirement,
    ResourceConsumer,
)
from dovetail.intents.manifests.errors import UnknownContainer
from dovetail.intents.manifests.workloads import (
    AppWorkload,
    pods_of,
    with_requirements,
    workload_of,
)
from dovetail.podfit.objects import Container, SelectorRequirement
from dovetail.podfit.pod_request import PodRequest, pod_request_of
from dovetail.podfit.pod_sum import CLASS_PREFIX, is_sidecar, pod_sum, quantity_of, units

DeviceKey = str | DeviceClass
"""A device class of the cluster by its name, or one that the intent brings along."""


class UnknownIntentApp(Malformed):
    """An HPA intent is for an app that the group does not have."""


class DeviceUnits(msgspec.Struct, frozen=True):
    """Units of a device class that a container of each pod gets."""

    container: str
    key: DeviceKey
    count: int


class IntentConsumer(msgspec.Struct, frozen=True):
    """A resource consumer, and the name of the intent that it stands in."""

    intent: str
    consumer: ResourceConsumer


class HardwareOption(msgspec.Struct, frozen=True):
    """A requirement that is not mandatory."""

    app: str
    intent: str
    consumer: str
    requirement: AnyRequirement


class WorkloadDemand(msgspec.Struct, frozen=True, kw_only=True):
    """One workload of an app, as it is to be packed."""

    app: str
    at: int
    """Its place among the workloads of the app."""
    workload: AppWorkload
    """With mandatory requirements and granted options applied."""
    request: PodRequest
    """Of one pod; a label that is an option is required here, if it is granted."""
    written: PodRequest
    """As it comes out of the manifest, where such a label is a preference."""
    devices: tuple[DeviceUnits, ...] = ()
    within_one: tuple[str, ...] = ()
    """Keys of labels: all pods are on nodes with one value of each."""
    needs_node: bool = False
    """Of a DaemonSet: whether it has to be on one at least, since a consumer demands something of
    the nodes that it is on."""

    @property
    def title(self) -> str:
        return f"{self.app}/{self.workload.name}"


class AppHardware:
    def __init__(
        self,
        name: str,
        workloads: Sequence[AppWorkload],
        consumers: Sequence[Sequence[IntentConsumer]],
    ) -> None:
        """`consumers`: by workload. Raises UnknownContainer and Uneditable."""
        self.name = name
        self.workloads = tuple(workloads)
        self.consumers = tuple(map(tuple, consumers))
        self.options = tuple(
            HardwareOption(name, each.intent, each.consumer.name, requirement)
            for of_workload in self.consumers
            for each in of_workload
            for requirement in each.consumer.requirements
            if not requirement.mandatory
        )
        self._demands: dict[int, tuple[WorkloadDemand, ...]] = {}
        self._lowering = 0
        for bit in range(len(self.options)):
            if self._is_lowering(bit):
                self._lowering |= 1 << bit

    def demands(self, granted: int) -> tuple[WorkloadDemand, ...]:
        """By workload, with these options: a bit for each. Options that ask for less than the chart
        does are granted always: nothing fits worse with them."""
        granted |= self._lowering
        if granted not in self._demands:
            self._demands[granted] = tuple(self._demands_with(granted))
        return self._demands[granted]

    def _is_lowering(self, option: int) -> bool:
        pairs = zip(self._demands_with(0), self._demands_with(1 << option), strict=True)
        return any(
            amount < dict(one.request.amounts).get(name, 0)
            for one, other in pairs
            for name, amount in other.request.amounts
        )

    def _demands_with(self, granted: int) -> Iterator[WorkloadDemand]:
        bits = iter(range(len(self.options)))
        for at in range(len(self.workloads)):
            given = [
                (each.consumer, _granted(each.consumer, granted, bits))
                for each in self.consumers[at]
            ]
            yield self._demand(at, given)

    def _demand(
        self, at: int, given: Sequence[tuple[ResourceConsumer, tuple[AnyRequirement, ...]]]
    ) -> WorkloadDemand:
        workload = self.workloads[at]
        preferred: list[SelectorRequirement] = []
        for consumer, requirements in given:
            applied = []
            for each in requirements:
                if isinstance(each, LabelRequirement) and not each.mandatory:
                    preferred.append(_selector(each))
                elif not isinstance(each, DeviceRequirement):
                    applied.append(each)
            workload = with_requirements(workload, consumer, applied)
        written = pod_request_of(workload.pod)
        request = replace(written, node_labels=(*written.node_labels, *preferred))
        return WorkloadDemand(
            app=self.name,
            at=at,
            workload=workload,
            request=request if preferred else written,
            written=written,
            devices=_devices(workload, given),
            within_one=tuple(dict.fromkeys(one.within_one for one, _ in given if one.within_one)),
            needs_node=any(
                one.within_one or any(each.mandatory for each in listed) for one, listed in given
            ),
        )

    def changed(self, change: Callable[[IntentConsumer], ResourceConsumer]) -> AppHardware:
        """The same app with other consumers: explanations try what would help."""
        consumers = [
            [IntentConsumer(each.intent, change(each)) for each in of_workload]
            for of_workload in self.consumers
        ]
        return AppHardware(self.name, self.workloads, consumers)

    def resized(self, at: int, count: int) -> AppHardware:
        """The same app with so many pods of one workload."""
        workloads = [
            replace(each, count=count) if place == at else each
            for place, each in enumerate(self.workloads)
        ]
        consumers = list(self.consumers)
        consumers[at] = tuple(
            IntentConsumer(each.intent, replace(each.consumer, replicas=None))
            for each in consumers[at]
        )
        return AppHardware(self.name, workloads, consumers)


def demands_of(group: DeploymentGroup) -> tuple[AppHardware, ...]:
    """By app, in the group's order. Raises BadManifest, UnknownIntentApp, UnknownWorkload,
    UnknownContainer and Uneditable, each of which says what there is."""
    names = [app.name for app in group.apps]
    for intent in group.hpa:
        if intent.app not in names:
            raise UnknownIntentApp(
                f"HPA intent {intent.name}: there is no app {intent.app!r}: the group has"
                f" {', '.join(names) or 'none'}"
            )
    found = []
    for app in group.apps:
        workloads = pods_of(app, group.namespace)
        intents = [each for each in group.hpa if each.app == app.name]
        demand = AppHardware(app.name, workloads, _consumers(workloads, intents))
        # With every option, so that what is wrong with any is told before clusters are looked at.
        demand.demands((1 << len(demand.options)) - 1)
        found.append(demand)
    return tuple(found)


def _consumers(
    workloads: Sequence[AppWorkload], intents: Sequence[HpaIntent]
) -> list[list[IntentConsumer]]:
    """By workload."""
    found: list[list[IntentConsumer]] = [[] for _ in workloads]
    for intent in intents:
        for consumer in intent.consumers:
            at = workloads.index(workload_of(workloads, consumer))
            found[at].append(IntentConsumer(intent.name, consumer))
    return found


def _granted(
    consumer: ResourceConsumer, granted: int, bits: Iterator[int]
) -> tuple[AnyRequirement, ...]:
    """Its mandatory requirements, and the options of the mask; `bits` number the options."""
    return tuple(
        each for each in consumer.requirements if each.mandatory or granted >> next(bits) & 1
    )


def _selector(requirement: LabelRequirement) -> SelectorRequirement:
    return SelectorRequirement(
        key=requirement.key, operator=requirement.operator, values=requirement.values
    )


def _devices(
    workload: AppWorkload, given: Sequence[tuple[ResourceConsumer, tuple[AnyRequirement, ...]]]
) -> tuple[DeviceUnits, ...]:
    """What containers of a pod get: by intents, else by the chart. Different requirements get
    different devices. Init containers use what later ones get; what one needs beyond that counts
    once, as Kubernetes sums up pods (`pod_sum`)."""
    spec = workload.pod.spec
    names = [each.name for each in (*spec.init_containers, *spec.containers)]
    wanted: dict[str, dict[DeviceKey, int]] = {}
    for consumer, requirements in given:
        for each in requirements:
            if isinstance(each, DeviceRequirement):
                name = _container_name(workload, consumer, names)
                key = each.selector if each.selector is not None else each.class_name
                of_container = wanted.setdefault(name, {})
                of_container[key] = of_container.get(key, 0) + each.count
    steps = [
        *((each, is_sidecar(each)) for each in spec.init_containers),
        *((each, True) for each in spec.containers),
    ]
    counts = [{**_units_in_chart(each), **wanted.get(each.name, {})} for each, _ in steps]
    if not any(counts):
        return ()
    keys = list(dict.fromkeys(key for each in counts for key in each))
    # `pod_sum` goes by name.
    numbered = [{str(keys.index(key)): count for key, count in each.items()} for each in counts]
    total = pod_sum((each, stays) for each, (_, stays) in zip(numbered, steps, strict=True))
    beyond = [
        DeviceUnits(steps[index][0].name, keys[int(at)], peak - total.staying.get(at, 0))
        for at, (peak, index) in total.peaks.items()
        if peak > total.staying.get(at, 0)
    ]
    held = [
        DeviceUnits(container.name, key, count)
        for (container, stays), each in zip(steps, counts, strict=True)
        if stays
        for key, count in each.items()
        if count
    ]
    return (*beyond, *held)


def _container_name(workload: AppWorkload, consumer: ResourceConsumer, names: Sequence[str]) -> str:
    if consumer.container in names:
        return consumer.container
    if not consumer.container and len(names) == 1:
        return names[0]
    raise UnknownContainer(workload.title, consumer.container, names)


def _units_in_chart(container: Container) -> dict[DeviceKey, int]:
    return {
        name.removeprefix(CLASS_PREFIX): units(name, quantity_of(str(text)))
        for name, text in container.resources.requests.items()
        if name.startswith(CLASS_PREFIX)
    }
