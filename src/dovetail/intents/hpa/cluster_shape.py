"""Cluster shapes: clusters that are the same to a group's pods but for names, decided once for all.

The HPA controller sorts a fleet into shapes before it packs anything. Of a node only that counts
which any pod of the group could notice (`Sight`): what is free of the resources that are asked for,
labels that are looked at, taints, devices by the properties that are asked for. A shape has its
nodes in one order for all of its clusters, so what is found on the nodes of the first is read off
for the others by place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from dovetail.devices.classes.documents import DeviceClass
from dovetail.intents.fleet import ClusterInventory, ClusterNode
from dovetail.intents.hpa.demand import AppHardware, WorkloadDemand
from dovetail.intents.hpa.device_resources import DeviceClassNames, DeviceDemands
from dovetail.podfit.filters.node_affinity import NAME_FIELD
from dovetail.podfit.objects import SelectorRequirement
from dovetail.podfit.pod_request import PodRequest, pod_request_of
from dovetail.podfit.pod_sum import allocatable_of
from dovetail.podfit.readiness import is_ready
from dovetail.podfit.selectors import matches
from dovetail.podfit.terms import PodTerm, SelectablePod

OWN_NAME = "\0"
"""Stands for the value of a label that is the node's name, as its hostname mostly is."""


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """All that pods of a group look at."""

    requests: tuple[PodRequest, ...]
    resources: tuple[str, ...]
    selected_keys: tuple[str, ...]
    """Of labels whose values matter."""
    topology_keys: tuple[str, ...]
    """Of labels of which only that matters which nodes have the same value."""
    looks_at_names: bool
    devices: DeviceDemands


class NodeStock(msgspec.Struct, frozen=True):
    """What a node has, and what of that pods and claims have taken; by resource."""

    has: Mapping[str, int]
    pods: Mapping[str, int]
    aside: Mapping[str, int]
    """Held in the ledger, beyond what pods on the node ask for: claims whose pods are to come."""

    def free(self, resource: str) -> int:
        taken = self.pods.get(resource, 0) + self.aside.get(resource, 0)
        return self.has.get(resource, 0) - taken


class ClusterShape(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    first: ClusterInventory
    """The cluster that stands for all."""
    nodes: tuple[ClusterNode, ...]
    """Of the first, in the shape's order."""


class ShapedCluster(msgspec.Struct, frozen=True):
    """A cluster, and its nodes by their places in the shape."""

    inventory: ClusterInventory
    shape: ClusterShape
    nodes: tuple[ClusterNode, ...]

    def names(self) -> dict[str, str]:
        """Its nodes by the names of those of the shape's first cluster."""
        return {
            theirs.node.metadata.name: ours.node.metadata.name
            for theirs, ours in zip(self.shape.nodes, self.nodes, strict=True)
        }


def stock_of(node: ClusterNode) -> NodeStock:
    """Raises BadQuantity."""
    used: dict[str, int] = {}
    for pod in node.pods:
        for name, amount in pod_request_of(pod).amounts:
            used[name] = used.get(name, 0) + amount
    aside = {
        name: held - used.get(name, 0)
        for name, held in node.held.items()
        if held > used.get(name, 0)
    }
    return NodeStock(allocatable_of(node.node.status.allocatable), used, aside)


def sight_of(apps: Sequence[AppHardware]) -> Sight:
    demands = [each for app in apps for each in _demands_seen(app)]
    requests = list({id(each.request): each.request for each in demands}.values())
    expressions = [one for each in requests for one in _expressions(each)]
    fields = [
        one for each in requests for term in each.node_terms or () for one in term.match_fields
    ]
    selected = {one.key for one in expressions}
    selected |= {key for each in demands for key in each.within_one}
    topology = {key for each in requests for key in _topology_keys(each)}
    return Sight(
        requests=tuple(requests),
        resources=tuple(sorted({name for each in requests for name, _ in each.amounts})),
        selected_keys=tuple(sorted(selected)),
        topology_keys=tuple(sorted(topology - selected)),
        looks_at_names=any(one.key == NAME_FIELD for one in fields),
        devices=DeviceDemands.of(one for each in demands for one in each.devices),
    )


def _demands_seen(app: AppHardware) -> Iterator[WorkloadDemand]:
    """With none, each and all of the options: no other set of them looks at more."""
    every = (1 << len(app.options)) - 1
    for granted in {0, every, *(1 << bit for bit in range(len(app.options)))}:
        yield from app.demands(granted)


def _expressions(request: PodRequest) -> Iterator[SelectorRequirement]:
    yield from request.node_labels
    for term in request.node_terms or ():
        yield from term.match_expressions


def _topology_keys(request: PodRequest) -> Iterator[str]:
    for term in (*request.pod_affinity, *request.pod_anti_affinity):
        yield term.topology_key
    for spread in request.spread:
        yield spread.topology_key


class ShapeSorter:
    """Takes clusters in, one after another, and tells the shape of each. Raises BadQuantity."""

    def __init__(self, sight: Sight) -> None:
        self.shapes: list[ClusterShape] = []
        self._sight = sight
        self._looks_at_pods = any(
            each.pod_affinity or each.pod_anti_affinity or each.spread for each in sight.requests
        )
        self._has_ports = any(each.ports for each in sight.requests)
        self._has_disks = any(each.disks for each in sight.requests)
        self._needs_features = any(each.features for each in sight.requests)
        self._selectable = {each.selectable for each in sight.requests}
        self._numbers: dict[object, int] = {}
        self._shapes: dict[object, ClusterShape] = {}
        self._kept_away: dict[PodTerm, bool] = {}
        self._seen: dict[SelectablePod, bool] = {}

    def shaped(self, cluster: ClusterInventory) -> ShapedCluster:
        names = DeviceClassNames(self._sight.devices, cluster.classes)
        classes = tuple(sorted(names, key=lambda each: each.name))
        keys = frozenset(key for cls in classes for key in _device_keys(cls))
        further = self._topology_keys_of_others(cluster)
        numbered = []
        for node in cluster.nodes:
            signature = self._signature(node, keys, further)
            number = self._numbers.setdefault(signature, len(self._numbers))
            numbered.append((number, node.node.metadata.name, node))
        numbered.sort(key=lambda each: each[:2])
        nodes = tuple(node for _, _, node in numbered)
        key = (tuple(number for number, _, _ in numbered), classes, further)
        shape = self._shapes.get(key)
        if shape is None:
            shape = ClusterShape(number=len(self.shapes), first=cluster, nodes=nodes)
            self._shapes[key] = shape
            self.shapes.append(shape)
        return ShapedCluster(cluster, shape, nodes)

    def _topology_keys_of_others(self, cluster: ClusterInventory) -> tuple[str, ...]:
        """Of terms by which pods on nodes keep any of the group's away."""
        return tuple(
            sorted(
                {
                    term.topology_key
                    for node in cluster.nodes
                    for pod in node.pods
                    for term in pod_request_of(pod).pod_anti_affinity
                    if self._keeps_away(term)
                }
            )
        )

    def _signature(
        self, node: ClusterNode, device_keys: frozenset[str], further: Sequence[str]
    ) -> tuple[object, ...]:
        sight, meta, stock = self._sight, node.node.metadata, stock_of(node)
        labels, name = meta.labels, meta.name
        topology = (labels.get(key) for key in (*sight.topology_keys, *further))
        return (
            is_ready(node.node),
            node.node.spec.unschedulable,
            node.node.spec.taints,
            tuple(stock.free(each) for each in sight.resources),
            tuple(stock.has.get(each, 0) for each in sight.resources),
            tuple(labels.get(key) for key in sight.selected_keys),
            tuple(OWN_NAME if value == name else value for value in topology),
            name if sight.looks_at_names else "",
            node.node.status.declared_features if self._needs_features else (),
            self._pods(node),
            (_devices(node, device_keys), node.devices_by_claim) if sight.devices.counts else (),
        )

    def _pods(self, node: ClusterNode) -> tuple[object, ...]:
        """What pods of the group could notice of those that are there, but for amounts."""
        requests = [(pod, pod_request_of(pod)) for pod in node.pods]
        terms = [
            term
            for _, request in requests
            for term in request.pod_anti_affinity
            if self._keeps_away(term)
        ]
        ports = {port for _, each in requests for port in each.ports} if self._has_ports else ()
        disks = {disk for _, each in requests for disk in each.disks} if self._has_disks else ()
        seen = (
            [
                (request.selectable, pod.metadata.deletion_timestamp is not None)
                for pod, request in requests
                if self._is_seen(request.selectable)
            ]
            if self._looks_at_pods
            else []
        )
        return (
            tuple(sorted(map(repr, terms))),
            tuple(sorted(map(repr, ports))),
            tuple(sorted(map(repr, disks))),
            tuple(sorted(map(repr, seen))),
        )

    def _keeps_away(self, term: PodTerm) -> bool:
        """Namespaces have no labels that are known."""
        if term not in self._kept_away:
            self._kept_away[term] = any(
                term.selects(each.namespace, dict(each.labels), {}) for each in self._selectable
            )
        return self._kept_away[term]

    def _is_seen(self, pod: SelectablePod) -> bool:
        """Whether a term or a spread constraint of the group selects it."""
        if pod not in self._seen:
            labels = dict(pod.labels)
            self._seen[pod] = any(
                any(
                    term.selects(pod.namespace, labels, {})
                    for term in (*each.pod_affinity, *each.pod_anti_affinity)
                )
                or any(matches(spread.selector, labels) for spread in each.spread)
                for each in self._sight.requests
            )
        return self._seen[pod]


def _device_keys(cls: DeviceClass) -> Iterator[str]:
    yield from cls.same
    for branch in cls.selector:
        for each in branch:
            yield each.key


def _devices(node: ClusterNode, keys: frozenset[str]) -> tuple[object, ...]:
    return tuple(
        sorted(
            (
                tuple(sorted((k, v) for k, v in each.attributes.items() if k in keys)),
                each.units,
                each.healthy,
                each.name in node.held_devices,
            )
            for each in node.devices
        )
    )
