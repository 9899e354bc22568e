"""Placement found by trying everything: every pod on every node, in every way.

Written to be obviously right and nothing else: it reads the group's and the fleet's own documents,
and shares no code with what it is compared with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations
from math import ceil
from typing import Any

import msgspec

from dovetail.core.device import Device
from dovetail.core.quantity import parse
from dovetail.devices.classes.documents import DeviceClass
from dovetail.intents.fleet import ClusterInventory, ClusterNode
from dovetail.intents.group import (
    AllocatableRequirement,
    AnyRequirement,
    DeploymentGroup,
    DeviceRequirement,
    LabelRequirement,
    ResourceConsumer,
)

Json = dict[str, Any]
GOES_TO_CORDONED = "goes to cordoned nodes"
"""As pods of DaemonSets do."""
OptionName = tuple[str, str, str]
"""App, consumer and name of the requirement."""
Options = frozenset[OptionName]


class BrutePod(msgspec.Struct):
    amounts: dict[str, int]
    nodes: list[int]
    """That it may be on."""
    devices: list[DeviceClass]
    """One for each unit that it wants."""
    labels: dict[str, str]
    keeps_apart: bool
    gang: tuple[str, str] | None = None
    """What marks the gang, and the key of the label."""


class BruteCluster:
    def __init__(self, group: DeploymentGroup, cluster: ClusterInventory) -> None:
        self.group, self.cluster = group, cluster

    def fits(self, apps: Sequence[str]) -> bool:
        """With any of their options: one may ask for less than a chart does."""
        return any(self.fits_with(apps, frozenset(chosen)) for chosen in self._choices(apps))

    def fits_with(self, apps: Sequence[str], options: Options) -> bool:
        pods = [pod for app in apps for pod in self._pods(app, options)]
        if any(pod is None for pod in pods):
            return False
        found = [pod for pod in pods if pod is not None]
        free = [self.free(node) for node in self.cluster.nodes]
        return self._place(found, free, [[] for _ in free], {})

    def best(self, apps: Sequence[str]) -> int:
        """The most weight of options that fit; the apps do."""
        return max(
            sum(chosen.values())
            for chosen in self._choices(apps)
            if self.fits_with(apps, frozenset(chosen))
        )

    def _choices(self, apps: Sequence[str]) -> Iterator[dict[OptionName, int]]:
        """Every set of options, with their weights."""
        options = [
            ((intent.app, consumer.name, one.name), one.weight)
            for intent in self.group.hpa
            if intent.app in apps
            for consumer in intent.consumers
            for one in consumer.requirements
            if not one.mandatory
        ]
        for size in range(len(options) + 1):
            yield from map(dict, combinations(options, size))

    def written_pods(self, app: str, workload: str, options: Options) -> list[BrutePod]:
        """As schedulers see them: labels that are options are preferences."""
        found = next(each for each in self.group.apps if each.name == app)
        made = next(each for each in found.objects if each["metadata"]["name"] == workload)
        consumers = [each for each in self._consumers(app) if each.object_name == workload]
        plain = frozenset(
            (app, consumer.name, one.name)
            for consumer in consumers
            for one in consumer.requirements
            if not isinstance(one, LabelRequirement)
        )
        pods = self._pods_of(app, made, consumers, options & plain)
        return [pod for pod in pods if pod is not None]

    def _consumers(self, app: str) -> list[ResourceConsumer]:
        return [one for intent in self.group.hpa if intent.app == app for one in intent.consumers]

    def _pods(self, name: str, options: Options) -> Iterator[BrutePod | None]:
        """None: a workload that needs a node has none to go to."""
        app = next(each for each in self.group.apps if each.name == name)
        for made in app.objects:
            title = made["metadata"]["name"]
            consumers = [each for each in self._consumers(name) if each.object_name == title]
            yield from self._pods_of(name, made, consumers, options)

    def _pods_of(
        self,
        app: str,
        made: Mapping[str, Any],
        consumers: Sequence[ResourceConsumer],
        options: Options,
    ) -> Iterator[BrutePod | None]:
        granted = [
            one
            for consumer in consumers
            for one in consumer.requirements
            if one.mandatory or (app, consumer.name, one.name) in options
        ]
        template = made["spec"]["template"]
        (container,) = template["spec"]["containers"]
        amounts = {
            key: self._units(key, text) for key, text in container["resources"]["requests"].items()
        }
        for one in granted:
            if isinstance(one, AllocatableRequirement):
                scale = 1000 if one.resource == "cpu" else 1
                intents = [
                    ceil(each.requests * scale)
                    for each in granted
                    if isinstance(each, AllocatableRequirement) and each.resource == one.resource
                ]
                amounts[one.resource] = max(intents)
        amounts["pods"] = 1
        classes = [
            self._class(one)
            for one in granted
            if isinstance(one, DeviceRequirement)
            for _ in range(one.count)
        ]
        gang = next((one.within_one for one in consumers if one.within_one), "")
        title = f"{app}/{made['metadata']['name']}"
        spec = _with_selectors_of(granted, template["spec"])
        spec[GOES_TO_CORDONED] = made["kind"] == "DaemonSet"
        plain = self._matching(spec, [one for one in granted if one.mandatory], gang)
        fully = self._matching(spec, granted, gang)
        pod = BrutePod(
            amounts=amounts,
            nodes=fully,
            devices=classes,
            labels=template["metadata"]["labels"],
            keeps_apart="affinity" in template["spec"],
            gang=(title, gang) if gang else None,
        )
        if made["kind"] != "DaemonSet":
            replicas = next(
                (one.replicas for one in consumers if one.replicas is not None),
                made["spec"]["replicas"],
            )
            for _ in range(replicas):
                yield msgspec.structs.replace(pod)
            return
        if not plain and any(one.mandatory for one in granted):
            yield None
        for at in plain:
            yield msgspec.structs.replace(pod, nodes=[at] if at in fully else [])

    def _class(self, requirement: DeviceRequirement) -> DeviceClass:
        if requirement.selector is not None:
            return requirement.selector
        return self.cluster.classes.get(requirement.class_name, DeviceClass("", ()))

    @staticmethod
    def _units(resource: str, text: object) -> int:
        return ceil(parse(str(text)) * (1000 if resource == "cpu" else 1))

    def _matching(
        self, spec: Mapping[str, Any], granted: Sequence[AnyRequirement], gang: str
    ) -> list[int]:
        return [
            at
            for at, node in enumerate(self.cluster.nodes)
            if self._is_usable(node, spec)
            and (not gang or gang in node.node.metadata.labels)
            and all(
                self._is_met(one, node.node.metadata.labels)
                for one in granted
                if isinstance(one, LabelRequirement)
            )
        ]

    @staticmethod
    def _is_usable(node: ClusterNode, spec: Mapping[str, Any]) -> bool:
        labels = node.node.metadata.labels
        tolerated = {each["key"] for each in spec.get("tolerations", ())}
        return (
            (not node.node.spec.unschedulable or spec[GOES_TO_CORDONED])
            and all(each.status == "True" for each in node.node.status.conditions)
            and all(each.key in tolerated for each in node.node.spec.taints)
            and all(labels.get(key) == value for key, value in spec.get("nodeSelector", {}).items())
        )

    @staticmethod
    def _is_met(one: LabelRequirement, labels: Mapping[str, str]) -> bool:
        value = labels.get(one.key)
        if one.operator == "In":
            return value in one.values
        assert one.operator == "NotIn"
        return value not in one.values

    def free(self, node: ClusterNode) -> dict[str, int]:
        found = {key: self._units(key, text) for key, text in node.node.status.allocatable.items()}
        used: dict[str, int] = {}
        for pod in node.pods:
            used["pods"] = used.get("pods", 0) + 1
            for key, text in pod.spec.containers[0].resources.requests.items():
                used[key] = used.get(key, 0) + self._units(key, text)
        for key in found:
            found[key] -= max(used.get(key, 0), node.held.get(key, 0))
        return found

    def _place(
        self,
        pods: Sequence[BrutePod],
        free: list[dict[str, int]],
        there: list[list[BrutePod]],
        gangs: dict[tuple[str, str], str],
    ) -> bool:
        if not pods:
            return all(map(self._has_devices, range(len(there)), there))
        pod, *rest = pods
        for at in pod.nodes:
            has = free[at]
            if any(has.get(key, 0) < amount for key, amount in pod.amounts.items() if amount):
                continue
            if any(
                (one.keeps_apart or pod.keeps_apart) and one.labels == pod.labels
                for one in there[at]
            ):
                continue
            chosen = gangs
            if pod.gang is not None:
                value = self.cluster.nodes[at].node.metadata.labels[pod.gang[1]]
                if gangs.get(pod.gang, value) != value:
                    continue
                chosen = {**gangs, pod.gang: value}
            less = {key: amount - pod.amounts.get(key, 0) for key, amount in has.items()}
            now = [[*on, pod] if place == at else on for place, on in enumerate(there)]
            if self._place(rest, [*free[:at], less, *free[at + 1 :]], now, chosen):
                return True
        return False

    def _has_devices(self, at: int, pods: Sequence[BrutePod]) -> bool:
        """Any order of the node's units, one for each that is wanted."""
        wanted = [cls for pod in pods for cls in pod.devices]
        node = self.cluster.nodes[at]
        units = [
            device
            for device in node.devices
            if device.healthy and device.name not in node.held_devices
            for _ in range(device.units)
        ]
        return any(
            all(map(self._selects, wanted, chosen)) for chosen in permutations(units, len(wanted))
        )

    @staticmethod
    def _selects(of: DeviceClass, device: Device) -> bool:
        return any(
            all(device.properties.get(one.key) in one.values for one in branch)
            for branch in of.selector
        )


def _with_selectors_of(granted: Sequence[AnyRequirement], spec: Mapping[str, Any]) -> Json:
    """What a chart selects by a label gives way to what the intent selects by it."""
    taken = {
        one.key
        for one in granted
        if isinstance(one, LabelRequirement) and one.mandatory and one.operator == "In"
    }
    selector = spec.get("nodeSelector", {})
    kept = {key: value for key, value in selector.items() if key not in taken}
    return {**spec, "nodeSelector": kept}
