"""Devices in manifests: requests for classes, resource claims, or a device plugin's resource.

`editing` calls it with the draft of a pod template. What a cluster has no class for is written
beside the workload, as an object of its own; so are the templates of resource claims.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import msgspec

from dovetail.devices.classes import documents
from dovetail.devices.classes.documents import LONGEST_NAME, DeviceClass
from dovetail.devices.classes.dra.convention import Untranslatable
from dovetail.devices.classes.dra.to_cel import to_device_class
from dovetail.intents.group import DeviceRequirement, ResourceConsumer
from dovetail.intents.manifests.drafts import Draft, RawObject, child, items
from dovetail.intents.manifests.errors import Uneditable
from dovetail.intents.manifests.grants import DeviceAccess, DeviceSource
from dovetail.intents.manifests.requirements import (
    ContainerAmounts,
    ResourceFields,
    WantedAmount,
    container_name,
    containers_of,
)
from dovetail.podfit.objects import ResourceClass
from dovetail.podfit.pod_sum import CLASS_PREFIX

CLAIMS_API = "resource.k8s.io/v1"
LONGEST_LABEL = 63


class GrantedDevices(msgspec.Struct, frozen=True):
    """The devices of one requirement, and who asked for them."""

    intent: str
    consumer: ResourceConsumer
    requirement: DeviceRequirement
    source: DeviceSource


def dns_label(text: str, longest: int = LONGEST_LABEL) -> str:
    """The text itself if Kubernetes takes it for a name; else one like it, of its own."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower(), flags=re.ASCII).strip("-")
    if plain == text and len(plain) <= longest:
        return plain
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{plain[: longest - 9].strip('-')}-{digest}".lstrip("-")


def add_devices(
    draft: Draft,
    devices: Sequence[GrantedDevices],
    *,
    amounts: ContainerAmounts,
    owner: str,
    deployment: str,
) -> list[RawObject]:
    """All devices of the workload named `owner`, to its pod template, where `amounts` are granted
    already; answers what has to be beside it. Raises UnknownContainer and Uneditable."""
    editor = _DeviceEditor(draft, owner, deployment)
    counted: dict[tuple[str, str], list[GrantedDevices]] = {}
    claimed: dict[tuple[str, str], list[GrantedDevices]] = {}
    for each in devices:
        if each.source.access is DeviceAccess.CLAIM:
            claimed.setdefault((each.intent, each.consumer.name), []).append(each)
        else:
            container = container_name(draft, each.consumer)
            counted.setdefault((container, editor.resource(each)), []).append(each)
    for (container, resource), group in counted.items():
        granted = amounts.get(container, {}).get(resource)
        editor.count(container, resource, group, granted.requests if granted else Fraction(0))
    for group in claimed.values():
        editor.claim(group)
    return editor.beside


def _why(group: Sequence[GrantedDevices]) -> str:
    names = ", ".join(dict.fromkeys(each.requirement.name for each in group))
    consumers = ", ".join(dict.fromkeys(each.consumer.name for each in group))
    return f"requirement {names} of consumer {consumers}"


class _DeviceEditor:
    """Writes devices into one pod template; `beside` are the objects that this takes."""

    def __init__(self, draft: Draft, owner: str, deployment: str) -> None:
        self._draft, self._owner, self._deployment = draft, owner, deployment
        self.beside: list[RawObject] = []

    def resource(self, devices: GrantedDevices) -> str:
        """The name by which a container asks."""
        source = devices.source
        if source.access is DeviceAccess.RESOURCE:
            return source.name
        if source.name:
            return f"{CLASS_PREFIX}{source.name}"
        definition = self._own_class(devices)
        self._add(
            {
                "apiVersion": ResourceClass.API.api_version,
                "kind": ResourceClass.API.kind,
                "metadata": {"name": definition.name},
                "spec": documents.write(definition),
            }
        )
        return f"{CLASS_PREFIX}{definition.name}"

    def count(
        self, container: str, resource: str, group: Sequence[GrantedDevices], granted: Fraction
    ) -> None:
        """Different requirements get different devices: they add up."""
        total = granted + sum(each.requirement.count for each in group)
        path, target = containers_of(self._draft.value)[container]
        resources = child(target, "resources")
        fields = ResourceFields(self._draft, resources, f"{path}.resources", resource)
        fields.write(WantedAmount(total, None, _why(group)))
        for scheduler in sorted({each.source.scheduler for each in group} - {""}):
            spec = child(self._draft.value, "spec")
            why = f"it hands out devices of {resource}"
            self._draft.put(spec, "schedulerName", scheduler, path="spec.schedulerName", why=why)

    def claim(self, group: Sequence[GrantedDevices]) -> None:
        """One claim for all devices of a consumer: they are allocated together, on one node."""
        requests = [self._request(each) for each in group]
        consumer, intent = group[0].consumer, group[0].intent
        path, target = containers_of(self._draft.value)[container_name(self._draft, consumer)]
        name = dns_label(f"{intent}-{consumer.name}")
        template = dns_label(f"{self._owner}-{intent}-{consumer.name}")
        claim = {"name": name, "resourceClaimTemplateName": template}
        why = _why(group)
        self._list(child(self._draft.value, "spec"), "resourceClaims", claim, "spec", why)
        self._list(child(target, "resources"), "claims", {"name": name}, f"{path}.resources", why)
        self._add(
            {
                "apiVersion": CLAIMS_API,
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": template},
                "spec": {"spec": {"devices": {"requests": requests}}},
            }
        )

    def _list(self, parent: RawObject, key: str, item: RawObject, path: str, why: str) -> None:
        """In place of what has the same name; others stay."""
        there = items(parent, key)
        if item not in there:
            others = [each for each in there if each.get("name") != item["name"]]
            self._draft.put(parent, key, [*others, item], path=f"{path}.{key}", why=why)

    def _request(self, devices: GrantedDevices) -> RawObject:
        source, requirement = devices.source, devices.requirement
        exactly: dict[str, Any] = {"allocationMode": "ExactCount", "count": requirement.count}
        try:
            if source.name:
                exactly["deviceClassName"] = source.name
                narrowing = source.definition or requirement.selector
                if narrowing is not None:
                    exactly["selectors"] = to_device_class(narrowing)["spec"]["selectors"]
            else:
                definition = self._own_class(devices)
                self._add(to_device_class(definition))
                exactly["deviceClassName"] = definition.name
        except Untranslatable as error:
            raise Uneditable(f"{_why([devices])}: {error}") from error
        return {"name": dns_label(requirement.name), "exactly": exactly}

    def _own_class(self, devices: GrantedDevices) -> DeviceClass:
        """One that belongs to the deployment, by a name of its own; equal ones are one."""
        found = devices.source.definition or devices.requirement.selector
        if found is None:
            raise Uneditable(
                f"{_why([devices])}: what devices of class"
                f" {devices.requirement.class_name!r} are like is not known there"
            )
        content = f"{self._deployment}\0{found!r}"
        digest = hashlib.sha256(content.encode()).hexdigest()[:10]
        name = f"{dns_label(found.name or 'intent', LONGEST_NAME - 11)}-{digest}"
        return msgspec.structs.replace(found, name=name)

    def _add(self, made: RawObject) -> None:
        if made not in self.beside:
            self.beside.append(made)
