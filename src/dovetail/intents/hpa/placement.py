"""Placement on one cluster: on which nodes the pods of apps are planned, with what, and pinned why.

A plan asks for it when clusters are picked: claims are taken by it, manifests edited, and people
see it. Names are those of the cluster, whichever of its shape was decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from dovetail.devices.allocation.request import DeviceHolding
from dovetail.intents.group import DeviceRequirement, ResourceConsumer
from dovetail.intents.hpa.cluster_shape import ShapedCluster, Sight
from dovetail.intents.hpa.demand import AppHardware, IntentConsumer, WorkloadDemand
from dovetail.intents.hpa.device_resources import DeviceResources
from dovetail.intents.hpa.packer import ACCESS, Fit
from dovetail.intents.hpa.shape_decisions import ShapeDecisions, members
from dovetail.intents.hpa.stranding import Pin, Pins, pins_of
from dovetail.intents.manifests.drivers import asking_drivers
from dovetail.intents.manifests.exclusivity import CpuExclusivity, exclusivity_of
from dovetail.intents.manifests.grants import (
    AppGrants,
    ConsumerGrant,
    DeviceAccess,
    DeviceSource,
    WorkloadPin,
)
from dovetail.intents.names import ClusterName

Amounts = Mapping[str, int]
"""By resource, in whole units as podfit counts."""


class PlannedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """Units of a device that a container of a planned pod gets."""

    node: str
    device: str
    units: int
    class_name: str
    container: str


class WorkloadPlacement(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    name: str
    object_index: int
    nodes: Mapping[str, int]
    """Pods by node."""
    amounts: Amounts
    """Of one pod, its place among the pods of a node included; devices by class are not."""
    devices: tuple[PlannedDevice, ...] = ()
    pin: Pin | None = None
    fabrics: Mapping[str, str] = {}
    """The value of each label that all its pods stay within."""
    exclusivity: CpuExclusivity
    """QoS class, and whether CPUs are exclusive."""


class OptionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an optional requirement."""

    intent: str
    consumer: str
    requirement: str
    weight: int
    granted: bool


class AppPlacement(msgspec.Struct, frozen=True, kw_only=True):
    app: str
    score: int
    workloads: tuple[WorkloadPlacement, ...]
    options: tuple[OptionOutcome, ...] = ()
    consumers: tuple[ConsumerGrant, ...] = ()

    def charges(self) -> dict[str, dict[str, int]]:
        """What its pods take, by node and resource."""
        found: dict[str, dict[str, int]] = {}
        for workload in self.workloads:
            for node, count in workload.nodes.items():
                taken = found.setdefault(node, {})
                for resource, amount in workload.amounts.items():
                    taken[resource] = taken.get(resource, 0) + amount * count
        return found

    def devices(self) -> dict[str, tuple[PlannedDevice, ...]]:
        """By node."""
        found: dict[str, tuple[PlannedDevice, ...]] = {}
        for workload in self.workloads:
            for each in workload.devices:
                found[each.node] = (*found.get(each.node, ()), each)
        return found

    def grants(self, deployment: str) -> AppGrants:
        """For the editor of manifests."""
        return AppGrants(
            deployment=deployment,
            consumers=self.consumers,
            pins=tuple(
                WorkloadPin(object_index=each.object_index, nodes=each.pin.nodes, why=each.pin.why)
                for each in self.workloads
                if each.pin is not None
            ),
        )


class ClusterPlacement(msgspec.Struct, frozen=True, kw_only=True):
    cluster: ClusterName
    apps: tuple[AppPlacement, ...]
    """In the order of the group."""
    score: int
    is_best: bool
    """Whether no more weight of options can be had there: proved."""
    unproved: tuple[str, ...] = ()
    """Workloads (`app/name`) that a scheduler may leave without a node, whatever is pinned."""


def placement_of(
    cluster: ShapedCluster, decisions: ShapeDecisions, sight: Sight, apps: int, *, pins_all: bool
) -> ClusterPlacement | None:
    """None: these apps do not fit there together, or nobody knows."""
    if not decisions.fits(apps, 0):
        return None
    best = decisions.best(apps)
    demands = decisions.group.demands(apps, best.members)
    fit = decisions.packer.roomiest(
        demands, decisions.group.demands(apps, 0), decisions.some_fit(apps, best.members)
    )
    pins = pins_of(decisions.packer, demands, fit, pins_all=pins_all)
    builder = _Builder(cluster, sight, demands, fit, pins)
    placed = [
        builder.app(decisions.group.apps[at], decisions.group.own_options(at, best.members))
        for at in members(apps)
    ]
    return ClusterPlacement(
        cluster=cluster.inventory.name,
        apps=tuple(placed),
        score=best.weight,
        is_best=best.is_proven,
        unproved=tuple(demands[at].title for at in pins.unproved),
    )


class _Builder:
    """Reads off what was decided of the shape, by the names of one cluster."""

    def __init__(
        self,
        cluster: ShapedCluster,
        sight: Sight,
        demands: Sequence[WorkloadDemand],
        fit: Fit,
        pins: Pins,
    ) -> None:
        self._cluster, self._demands, self._fit, self._pins = cluster, demands, fit, pins
        self._names = cluster.names()
        self._nodes = {each.node.metadata.name: each for each in cluster.nodes}
        self._on = [
            {self._names[name]: count for name, count in sorted(on.items())} for on in fit.nodes
        ]
        self._resources: DeviceResources | None = None
        if any(each.devices for each in demands):
            classes = cluster.inventory.classes
            self._resources = DeviceResources(sight.devices, classes, cluster.nodes)
        self._devices: list[list[PlannedDevice]] = [[] for _ in demands]
        for name in self._nodes:
            self._choose_devices(name)

    def _choose_devices(self, node: str) -> None:
        pods = [
            (at, demand.devices)
            for at, demand in enumerate(self._demands)
            if demand.devices
            for _ in range(self._on[at].get(node, 0))
        ]
        if not pods or self._resources is None:
            return
        chosen = self._resources.choose(node, [devices for _, devices in pods])
        assert chosen is not None, "what fits a shape fits each of its clusters"
        for (at, _), holdings in zip(pods, chosen, strict=True):
            self._devices[at] += [_planned(node, each) for each in holdings]

    def app(self, app: AppHardware, granted: int) -> AppPlacement:
        names = [at for at, each in enumerate(self._demands) if each.app == app.name]
        options = tuple(
            OptionOutcome(
                intent=each.intent,
                consumer=each.consumer,
                requirement=each.requirement.name,
                weight=each.requirement.weight,
                granted=bool(granted >> bit & 1),
            )
            for bit, each in enumerate(app.options)
        )
        return AppPlacement(
            app=app.name,
            score=sum(each.weight for each in options if each.granted),
            workloads=tuple(map(self._workload, names)),
            options=options,
            consumers=tuple(self._grants(app, names, options)),
        )

    def _workload(self, at: int) -> WorkloadPlacement:
        demand, nodes = self._demands[at], self._on[at]
        pin = self._pins.by_workload.get(at)
        return WorkloadPlacement(
            kind=demand.workload.kind,
            name=demand.workload.name,
            object_index=demand.workload.object_index,
            nodes=nodes,
            amounts=dict(demand.written.amounts),
            devices=tuple(self._devices[at]),
            pin=self._pin(pin) if pin else None,
            fabrics=self._fabrics(at),
            exclusivity=exclusivity_of(
                demand.workload.pod, [self._nodes[name].pins_cpus for name in nodes]
            ),
        )

    def _pin(self, pin: Pin) -> Pin:
        return Pin(tuple(sorted(self._names[name] for name in pin.nodes)), pin.why)

    def _fabrics(self, at: int) -> dict[str, str]:
        return {
            key: value
            for (on, key), value in self._fit.fabrics.items()
            if on == at and key != ACCESS
        }

    def _grants(
        self, app: AppHardware, names: Sequence[int], options: Sequence[OptionOutcome]
    ) -> Iterator[ConsumerGrant]:
        granted = {(one.intent, one.consumer, one.requirement) for one in options if one.granted}
        for at, consumers in zip(names, app.consumers, strict=True):
            for each in consumers:
                yield self._grant(at, each, granted)

    def _grant(
        self, at: int, each: IntentConsumer, granted: set[tuple[str, str, str]]
    ) -> ConsumerGrant:
        consumer = each.consumer
        optional = frozenset(
            one.name
            for one in consumer.requirements
            if (each.intent, consumer.name, one.name) in granted
        )
        return ConsumerGrant(
            intent=each.intent,
            consumer=consumer.name,
            optional=optional,
            within_one=self._fabrics(at).get(consumer.within_one, ""),
            devices={
                one.name: self._source(at, one) for one in _granted_devices(consumer, optional)
            },
        )

    def _source(self, at: int, requirement: DeviceRequirement) -> DeviceSource:
        """By claim, if devices of the nodes that were chosen are handed out so."""
        on = [self._nodes[name] for name in self._on[at]]
        is_by_claim = bool(on) and all(each.devices_by_claim for each in on)
        classes = self._cluster.inventory.classes
        definition = requirement.selector or classes.get(requirement.class_name)
        if is_by_claim:
            given = {each.device for each in self._devices[at]}
            chosen = [one for each in on for one in each.devices if one.name in given]
            asked = None if definition is None else asking_drivers(definition, chosen)
            return DeviceSource(access=DeviceAccess.CLAIM, definition=asked)
        return DeviceSource(
            access=DeviceAccess.CLASS,
            name="" if requirement.selector is not None else requirement.class_name,
            definition=definition,
        )


def _planned(node: str, holding: DeviceHolding) -> PlannedDevice:
    return PlannedDevice(
        node=node,
        device=holding.device,
        units=holding.units,
        class_name=holding.class_name,
        container=holding.container,
    )


def _granted_devices(
    consumer: ResourceConsumer, optional: frozenset[str]
) -> Iterator[DeviceRequirement]:
    for each in consumer.requirements:
        if isinstance(each, DeviceRequirement) and (each.mandatory or each.name in optional):
            yield each
