"""Editing: an app's objects as they are sent to one cluster, by what the app was granted there.

Plans show the edits, the deployment applies the objects. Only fields that an intent owns are
written: requests and limits, node rules, replicas, devices, and two labels by which objects and
pods of a deployment are recognised. Everything else is as the chart has it, unknown fields
included; what is given is never changed. Editing what was edited changes nothing.

Each workload is edited in this order: requirements (the same rule as for packing), devices, fabric,
pin, replicas, labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dovetail.intents.group import (
    AnyRequirement,
    DeviceRequirement,
    GroupApp,
    HpaIntent,
    ManifestObject,
    ResourceConsumer,
)
from dovetail.intents.manifests import node_rules, requirements
from dovetail.intents.manifests.claims import GrantedDevices, add_devices
from dovetail.intents.manifests.drafts import Draft, ManifestEdit, RawObject, child
from dovetail.intents.manifests.errors import Uneditable
from dovetail.intents.manifests.grants import AppGrants, ConsumerGrant, WorkloadPin
from dovetail.intents.manifests.requirements import GrantedConsumer
from dovetail.intents.manifests.workloads import (
    KINDS,
    AppWorkload,
    kind_of,
    pods_of,
    replicas_for,
    template_of,
    title_of,
    workload_of,
)
from dovetail.intents.names import APP_LABEL, DEPLOYMENT_LABEL, label_value


class EditedApp(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of an app for one cluster."""

    objects: tuple[ManifestObject, ...]
    """Those of the app in their order, then those that devices need beside them."""
    edits: tuple[ManifestEdit, ...]
    """Of the app's own objects, in their order; labels of ours left out."""


class GrantedWorkload(msgspec.Struct, frozen=True):
    """All that editing does to one object."""

    consumers: list[tuple[ResourceConsumer, ConsumerGrant]]
    pins: list[WorkloadPin]


def edited(
    app: GroupApp, intents: Iterable[HpaIntent], grants: AppGrants, namespace: str
) -> EditedApp:
    """`intents`: of all apps, or of this one. Raises BadManifest, UnknownWorkload, UnknownContainer
    and Uneditable."""
    own = [each for each in intents if each.app == app.name]
    workloads = {each.object_index: each for each in pods_of(app, namespace)}
    granted = _by_workload(workloads, own, grants)
    objects: list[ManifestObject] = []
    beside: list[RawObject] = []
    edits: list[ManifestEdit] = []
    labels = {DEPLOYMENT_LABEL: label_value(grants.deployment), APP_LABEL: label_value(app.name)}
    for index, manifest in enumerate(app.objects):
        draft = Draft(manifest, title_of(manifest))
        if index in granted:
            made = _edit(draft, workloads[index], granted[index], grants.deployment)
            beside += [each for each in made if each not in beside]
        edits += draft.edits
        objects.append(_labelled(draft.value, labels))
    return EditedApp(objects=(*objects, *_new(beside, objects, labels)), edits=tuple(edits))


def _new(
    beside: Iterable[RawObject], objects: Sequence[ManifestObject], labels: Mapping[str, str]
) -> list[ManifestObject]:
    """What is not among the objects already, because they were edited before."""
    made = [_labelled(each, labels) for each in beside]
    return [each for each in made if each not in objects]


def _by_workload(
    workloads: Mapping[int, AppWorkload], intents: Iterable[HpaIntent], grants: AppGrants
) -> dict[int, GrantedWorkload]:
    found: dict[int, GrantedWorkload] = {}
    by_name = {(each.intent, each.consumer): each for each in grants.consumers}
    for intent in intents:
        for consumer in intent.consumers:
            index = workload_of(workloads.values(), consumer).object_index
            none = ConsumerGrant(intent=intent.name, consumer=consumer.name)
            grant = by_name.pop((intent.name, consumer.name), none)
            found.setdefault(index, GrantedWorkload([], [])).consumers.append((consumer, grant))
    if by_name:
        unknown = ", ".join(f"{consumer} of {intent}" for intent, consumer in by_name)
        raise Uneditable(f"granted to consumers that are not there: {unknown}")
    for pin in grants.pins:
        if pin.object_index not in workloads:
            raise Uneditable(f"pinned, but no workload: object {pin.object_index}")
        found.setdefault(pin.object_index, GrantedWorkload([], [])).pins.append(pin)
    return found


def granted_requirements(
    consumer: ResourceConsumer, grant: ConsumerGrant
) -> tuple[AnyRequirement, ...]:
    return tuple(
        each for each in consumer.requirements if each.mandatory or each.name in grant.optional
    )


def _edit(
    draft: Draft, workload: AppWorkload, granted: GrantedWorkload, deployment: str
) -> list[RawObject]:
    """The draft of an object; answers what has to be beside it."""
    kind = KINDS[workload.kind]
    path = "".join(f"{key}." for key in kind.template)
    pods = Draft(template_of(draft.value, kind), draft.where, path)
    all_granted = [
        GrantedConsumer(consumer, granted_requirements(consumer, grant))
        for consumer, grant in granted.consumers
    ]
    amounts = requirements.apply(pods, all_granted)
    devices = [
        one
        for each, (_, grant) in zip(all_granted, granted.consumers, strict=True)
        for one in _devices(each, grant)
    ]
    beside = add_devices(pods, devices, amounts=amounts, owner=workload.name, deployment=deployment)
    for consumer, grant in granted.consumers:
        _stay_within_one(pods, consumer, grant)
    for pin in granted.pins:
        node_rules.pin(pods, pin.nodes, pin.why)
    draft.edits += pods.edits
    _put_template(draft, kind.template, pods.value)
    _put_replicas(draft, workload, [consumer for consumer, _ in granted.consumers])
    own = draft.value.get("metadata", {}).get("namespace")
    return [_in_namespace(each, own) for each in beside]


def _devices(granted: GrantedConsumer, grant: ConsumerGrant) -> Iterable[GrantedDevices]:
    for each in granted.requirements:
        if isinstance(each, DeviceRequirement):
            if each.name not in grant.devices:
                raise Uneditable(
                    f"consumer {granted.consumer.name}, requirement {each.name}: where the devices"
                    " come from is not said"
                )
            source = grant.devices[each.name]
            yield GrantedDevices(grant.intent, granted.consumer, each, source)


def _stay_within_one(pods: Draft, consumer: ResourceConsumer, grant: ConsumerGrant) -> None:
    key, value = consumer.within_one, grant.within_one
    if not key:
        return
    if not value:
        raise Uneditable(f"consumer {consumer.name}: which {key} it stays within is not said")
    expression = {"key": key, "operator": "In", "values": [value]}
    node_rules.require(pods, expression, f"consumer {consumer.name} stays within one {key}")


def _put_template(draft: Draft, path: Sequence[str], template: RawObject) -> None:
    if not path:
        draft.value = template
        return
    _at(draft.value, path[:-1])[path[-1]] = template


def _put_replicas(
    draft: Draft, workload: AppWorkload, consumers: Sequence[ResourceConsumer]
) -> None:
    replicas = replicas_for(workload, consumers)
    path = KINDS[workload.kind].replicas
    if replicas is not None and path:
        why = f"replicas of consumer {', '.join(each.name for each in consumers if each.replicas)}"
        parent = _at(draft.value, path[:-1])
        draft.put(parent, path[-1], replicas, path=".".join(path), why=why)


def _in_namespace(made: RawObject, namespace: str | None) -> RawObject:
    """Templates of claims are where their workload is; classes are in none."""
    if namespace and made["kind"] == "ResourceClaimTemplate":
        made["metadata"]["namespace"] = namespace
    return made


def _labelled(manifest: RawObject, labels: Mapping[str, str]) -> ManifestObject:
    """The object, and the pods that it makes."""
    owners = [child(manifest, "metadata")]
    kind = kind_of(manifest)
    if kind is not None and kind.template:
        owners.append(child(_at(manifest, kind.template), "metadata"))
    for each in owners:
        child(each, "labels").update(labels)
    return manifest


def _at(manifest: RawObject, path: Sequence[str]) -> RawObject:
    for key in path:
        manifest = manifest[key]
    return manifest
