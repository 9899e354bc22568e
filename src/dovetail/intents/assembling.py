"""Assembly of a group from its documents, for `service/intents`: what users wrote, as typed values.

Documents were checked when they were written; apps come with their objects, which somebody else has
rendered. Of generic placement intents those count that the group's `intents` name, and all of them
where they name none.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from dovetail.devices.classes.documents import DeviceClass
from dovetail.devices.classes.documents import read as read_class
from dovetail.intents.controllers import GENERIC_INTENT
from dovetail.intents.documents.hpa import SELECTOR_NAME
from dovetail.intents.group import (
    AllocatableRequirement,
    AnyRequirement,
    AppAffinityRule,
    AppPlacementRule,
    ClusterTerm,
    DeploymentGroup,
    DeviceRequirement,
    GroupApp,
    HpaIntent,
    LabelRequirement,
    PlacementGroup,
    ResourceConsumer,
)
from dovetail.intents.manifests.quantities import amount_of
from dovetail.intents.names import ClusterName, cluster_name

Json = Mapping[str, Any]
DEVICES = "device"
"""The resource that devices by their properties are counted as."""


class WrittenDocument(msgspec.Struct, frozen=True):
    """A document as it is kept."""

    path: str
    kind: str
    body: Json

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> str:
        return self.path.rsplit("/", 2)[0]

    @property
    def spec(self) -> Json:
        spec: Json = self.body.get("spec") or {}
        return spec


class GroupDocuments(msgspec.Struct, frozen=True, kw_only=True):
    """All that was written about a group."""

    group: WrittenDocument
    below: Sequence[WrittenDocument]
    """Siblings in the order in which they were made."""
    cloud: WrittenDocument | None = None
    cluster_references: Sequence[WrittenDocument] = ()

    def of_kind(self, kind: str) -> list[WrittenDocument]:
        return [each for each in self.below if each.kind == kind]

    @property
    def controller_maps(self) -> list[Mapping[str, str]]:
        """Controllers that the group names, with their intents."""
        return [each.spec["intent"] for each in self.of_kind("group-intent")]

    @property
    def namespace(self) -> str:
        spec = self.cloud.spec if self.cloud is not None else {}
        return spec.get("namespace") or "default"


def group_of(documents: GroupDocuments, apps: Sequence[GroupApp]) -> DeploymentGroup:
    return DeploymentGroup(
        name=documents.group.path,
        apps=tuple(apps),
        hpa=tuple(hpa_intents(documents)),
        placement=tuple(placement_rules(documents)),
        affinity=tuple(map(affinity_rule, documents.of_kind("affinity-intent"))),
        namespace=documents.namespace,
        pin_nodes=documents.group.spec.get("pin") == "nodes",
        only_clusters=cloud_clusters(documents.cluster_references),
    )


def cloud_clusters(references: Iterable[WrittenDocument]) -> frozenset[ClusterName] | None:
    """A logical cloud that names none has all of them."""
    names = (
        cluster_name(each.spec["clusterProvider"], each.spec["cluster"]) for each in references
    )
    return frozenset(names) or None


# -- hardware --------------------------------------------------------------------------------------


def hpa_intents(documents: GroupDocuments) -> Iterator[HpaIntent]:
    requirements = by_parent(documents.of_kind("hpa-requirement"))
    consumers = by_parent(documents.of_kind("hpa-consumer"))
    for intent in documents.of_kind("hpa-intent"):
        yield HpaIntent(
            name=intent.name,
            app=intent.spec["app"],
            consumers=tuple(
                consumer_of(each, requirements[each.path]) for each in consumers[intent.path]
            ),
        )


def by_parent(documents: Iterable[WrittenDocument]) -> defaultdict[str, list[WrittenDocument]]:
    found: defaultdict[str, list[WrittenDocument]] = defaultdict(list)
    for each in documents:
        found[each.parent].append(each)
    return found


def consumer_of(
    written: WrittenDocument, requirements: Iterable[WrittenDocument]
) -> ResourceConsumer:
    spec = written.spec
    return ResourceConsumer(
        name=written.name,
        kind=spec.get("kind", ""),
        object_name=spec["name"],
        api_version=spec.get("apiVersion", ""),
        container=spec.get("container", ""),
        replicas=spec.get("replicas"),
        within_one=spec.get("withinOne", ""),
        requirements=tuple(map(requirement_of, requirements)),
    )


def requirement_of(written: WrittenDocument) -> AnyRequirement:
    """Raises BadAmount, if rules were others when it was written."""
    spec = written.spec
    resource: Json = spec["resource"]
    about = {
        "name": written.name,
        "mandatory": spec.get("mandatory", True),
        "weight": spec.get("weight", 1),
    }
    if "key" in resource:
        value = resource.get("value")
        return LabelRequirement(
            key=resource["key"],
            operator=resource.get("operator", "In"),
            values=tuple(resource.get("values", ())) if value is None else (value,),
            **about,
        )
    units = resource.get("units", "")
    name = resource.get("name", DEVICES)
    limits = amount_of(name, resource["limits"], units) if "limits" in resource else None
    requests = amount_of(name, resource["requests"], units) if "requests" in resource else limits
    assert requests is not None
    if "name" in resource:
        return AllocatableRequirement(resource=name, requests=requests, limits=limits, **about)
    return DeviceRequirement(
        count=int(requests),
        class_name=resource.get("class", ""),
        selector=own_class(resource["selector"]) if "selector" in resource else None,
        **about,
    )


def own_class(selector: Json) -> DeviceClass:
    """Of a requirement that brings its class along: the same selectors are the same class."""
    digest = hashlib.sha256(msgspec.json.encode(selector, order="sorted")).hexdigest()[:8]
    return read_class(f"{SELECTOR_NAME}-{digest}", dict(selector))


# -- clusters --------------------------------------------------------------------------------------


def placement_rules(documents: GroupDocuments) -> Iterator[AppPlacementRule]:
    """One for each app: what several intents say of it is put together."""
    named = {each[GENERIC_INTENT] for each in documents.controller_maps if GENERIC_INTENT in each}
    rules: dict[str, list[AppPlacementRule]] = defaultdict(list)
    for written in documents.of_kind("app-intent"):
        intent = written.parent.rpartition("/")[2]
        if not named or intent in named:
            rules[written.spec["app"]].append(placement_rule(written.spec))
    for app, several in rules.items():
        counts = [each.count for each in several if each.count is not None]
        yield AppPlacementRule(
            app=app,
            groups=tuple(group for each in several for group in each.groups),
            count=max(counts, default=None),
            preference=next((each.preference for each in several if each.preference), ()),
        )


def placement_rule(spec: Json) -> AppPlacementRule:
    intent: Json = spec["intent"]
    count = spec.get("count")
    groups = [
        PlacementGroup(terms=tuple(map(term_of, each["anyOf"])))
        if "anyOf" in each
        else PlacementGroup(terms=(term_of(each),), count=None)
        for each in intent.get("allOf", ())
    ]
    if intent.get("anyOf"):
        # The count is about all groups, and only here is there a choice.
        left = max((count or 1) - len(groups), 1)
        groups.append(PlacementGroup(terms=tuple(map(term_of, intent["anyOf"])), count=left))
    return AppPlacementRule(
        app=spec["app"],
        groups=tuple(groups),
        count=count,
        preference=tuple(tuple(map(term_of, each)) for each in spec.get("preference", ())),
    )


def term_of(term: Json) -> ClusterTerm:
    return ClusterTerm(
        provider=term["clusterProvider"],
        cluster=term.get("cluster", ""),
        label=term.get("clusterLabel", ""),
    )


def affinity_rule(written: WrittenDocument) -> AppAffinityRule:
    spec = written.spec
    allow = spec.get("allow")
    return AppAffinityRule(
        app=spec["app"],
        allow=None if allow is None else tuple(allow),
        deny=tuple(spec.get("deny", ())),
        require=tuple(spec.get("require", ())),
    )
