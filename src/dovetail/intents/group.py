"""What one deployment intent group asks for: its apps with their objects, and all its intents.

`service/intents` puts it together from documents that were checked when they were written; the
controllers, the pick and the editor of manifests read it. Amounts are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import msgspec

from dovetail.devices.classes.documents import DeviceClass
from dovetail.intents.names import ClusterName

HIGHEST_WEIGHT = 10

ManifestObject: TypeAlias = Mapping[str, Any]
"""A Kubernetes object as it was written; what is unknown here survives."""


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """One resource that a microservice needs, or would like."""

    name: str
    mandatory: bool = True
    weight: int = 1
    """Of an optional one: what having it adds to the score."""


class AllocatableRequirement(Requirement, frozen=True, kw_only=True):
    """An amount of a resource for a container."""

    resource: str
    """As Kubernetes calls it: `cpu`, `memory`, `nvidia.com/gpu`."""
    requests: Fraction
    """In cores, bytes or pieces; the limits, where only those are given."""
    limits: Fraction | None = None


class LabelRequirement(Requirement, frozen=True, kw_only=True):
    """A property of the node, told by its labels."""

    key: str
    operator: str = "In"
    """In, NotIn, Exists, DoesNotExist, Gt or Lt, as in node affinity."""
    values: tuple[str, ...] = ()


class DeviceRequirement(Requirement, frozen=True, kw_only=True):
    """Devices chosen by their properties."""

    count: int
    class_name: str = ""
    """Of a resource class of the cluster; empty if `selector` stands in the requirement."""
    selector: DeviceClass | None = None
    """A class that the intent brings along, whatever the cluster has."""


AnyRequirement: TypeAlias = AllocatableRequirement | LabelRequirement | DeviceRequirement


class ResourceConsumer(msgspec.Struct, frozen=True, kw_only=True):
    """A microservice: the object that makes its pods, and the container that gets the resources."""

    name: str
    kind: str
    object_name: str
    api_version: str = ""
    container: str = ""
    replicas: int | None = None
    """None: as the object says."""
    within_one: str = ""
    """The key of a node label: all its pods stay on nodes with one value of it (a fabric)."""
    requirements: tuple[AnyRequirement, ...] = ()


class HpaIntent(msgspec.Struct, frozen=True, kw_only=True):
    """The hardware that the microservices of one app need."""

    name: str
    app: str
    consumers: tuple[ResourceConsumer, ...] = ()


class GroupApp(msgspec.Struct, frozen=True, kw_only=True):
    """An app of the group, as it is deployed: its objects after rendering."""

    name: str
    objects: tuple[ManifestObject, ...] = ()


class ClusterTerm(msgspec.Struct, frozen=True, kw_only=True):
    """Clusters of a provider by name or by label; both empty: all of the provider's."""

    provider: str
    cluster: str = ""
    label: str = ""


class PlacementGroup(msgspec.Struct, frozen=True, kw_only=True):
    """`count` clusters of those that any of the terms names; None: every one of them."""

    terms: tuple[ClusterTerm, ...]
    count: int | None = 1


class AppPlacementRule(msgspec.Struct, frozen=True, kw_only=True):
    """What the generic placement intent says of one app. Without any groups: one cluster of all."""

    app: str
    groups: tuple[PlacementGroup, ...] = ()
    """Each gets clusters of its own; allOf makes one of each term, anyOf one of all its terms."""
    count: int | None = None
    """How many clusters in all, where the intent says so."""
    preference: tuple[tuple[ClusterTerm, ...], ...] = ()
    """Earlier ones first; later ones only when those before have no room."""


class AppAffinityRule(msgspec.Struct, frozen=True, kw_only=True):
    """Which apps one app may, or must, share a cluster with. `allow` and `deny` are read both ways
    round, `require` is not: where this app is, those have to be as well."""

    app: str
    allow: tuple[str, ...] | None = None
    """None: all but those of `deny`."""
    deny: tuple[str, ...] = ()
    require: tuple[str, ...] = ()


class DeploymentGroup(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    name: str
    """The path of its document: `projects/P/composite-apps/C/V/deployment-intent-groups/G`."""
    apps: tuple[GroupApp, ...]
    """In the order of the composite app: who comes first is served first."""
    hpa: tuple[HpaIntent, ...] = ()
    placement: tuple[AppPlacementRule, ...] = ()
    affinity: tuple[AppAffinityRule, ...] = ()
    namespace: str = "default"
    pin_nodes: bool = False
    """`pin: nodes`: every pod is tied to the nodes that were charged."""
    only_clusters: frozenset[ClusterName] | None = None
    """Of the logical cloud that it is deployed to; None: all."""
    logical_cloud: str = ""
    release: str = ""
    """Of its charts: the group's `version`."""
