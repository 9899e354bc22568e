"""A parser of Kubernetes pod documents into the agent's `Pod`; the pod sources call it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec

from dovetail.core import quantity
from dovetail.core.errors import Malformed
from dovetail.node.common.pods import Amounts, ContainerSpec, Pod
from dovetail.node.wire.resource_plugin import ContainerType
from dovetail.podfit.pod_sum import ENDED_PHASES, qos_class

MAIN = "kubernetes.io/main-container-name"
HASH, MIRROR = "kubernetes.io/config.hash", "kubernetes.io/config.mirror"
ORIGIN = "kubernetes.io/config.source"


class BadPodDocument(Malformed):
    """A document that is no pod, with the place in it."""


def pod_of(document: Any) -> Pod:
    """Raises BadPodDocument."""
    metadata = part(document, "", "metadata", required=True)
    spec = part(document, "", "spec", required=True)
    annotations = texts(metadata, "metadata", "annotations")
    containers = containers_of(spec, annotations.get(MAIN))
    requests, limits = amounts(spec, "spec")
    return Pod(
        uid=uid_of(document),
        namespace=text(metadata, "metadata", "namespace") or "default",
        name=text(metadata, "metadata", "name", required=True),
        labels=texts(metadata, "metadata", "labels"),
        annotations=annotations,
        qos_class=text(part(document, "", "status"), "status", "qosClass")
        or qos_class(
            (
                (each.requests, each.limits)
                for each in containers
                if each.type is not ContainerType.EPHEMERAL
            ),
            (requests, limits),
        ),
        runtime_class=text(spec, "spec", "runtimeClassName"),
        owner_kind=owner_kind(metadata),
        containers=containers,
        requests=requests,
        limits=limits,
    )


def uid_of(document: Any) -> str:
    """As the runtime knows it. Raises BadPodDocument.

    Pods from files on the node go by a hash, whatever uid their mirror at the API server has. The
    kubelet itself says where a pod is from, so nobody else can pass for another pod.
    """
    metadata = part(document, "", "metadata", required=True)
    annotations = texts(metadata, "metadata", "annotations")
    static = MIRROR in annotations or annotations.get(ORIGIN) in ("file", "http")
    return (static and annotations.get(HASH)) or text(metadata, "metadata", "uid")


def is_over(document: Any) -> bool:
    return text(part(document, "", "status"), "status", "phase") in ENDED_PHASES


def stub_of(document: Any) -> Pod:
    """As little as tells that the pod exists. Raises BadPodDocument."""
    metadata = part(document, "", "metadata", required=True)
    return Pod(
        uid=uid_of(document),
        namespace=text(metadata, "metadata", "namespace") or "default",
        name=text(metadata, "metadata", "name", required=True),
    )


def containers_of(spec: Mapping[str, Any], main: str | None) -> tuple[ContainerSpec, ...]:
    starting = items(spec, "spec", "initContainers")
    ordinary = items(spec, "spec", "containers")
    ephemeral = items(spec, "spec", "ephemeralContainers")
    if not ordinary:
        raise BadPodDocument(
            "spec.containers is missing or empty: a pod has at least one container"
        )
    names = [text(each, where, "name", required=True) for where, each in ordinary]
    main = main if main in names else names[0]
    found = [
        *(_starting(each, where, at) for at, (where, each) in enumerate(starting)),
        *(
            _container(each, where, at, _ordinary(each, where, main))
            for at, (where, each) in enumerate(ordinary)
        ),
        *(
            _container(each, where, at, ContainerType.EPHEMERAL)
            for at, (where, each) in enumerate(ephemeral)
        ),
    ]
    if len({each.name for each in found}) < len(found):
        raise BadPodDocument("spec has two containers of one name")
    return tuple(found)


def _starting(each: Mapping[str, Any], where: str, at: int) -> ContainerSpec:
    """One that is restarted stays: its CPUs are not free for the containers after it."""
    if text(each, where, "restartPolicy") == "Always":
        found = _container(each, where, at, ContainerType.SIDECAR)
        return msgspec.structs.replace(found, restartable=True)
    return _container(each, where, at, ContainerType.INIT)


def _ordinary(each: Mapping[str, Any], where: str, main: str) -> ContainerType:
    own = text(each, where, "name")
    return ContainerType.MAIN if own == main else ContainerType.SIDECAR


def _container(each: Mapping[str, Any], where: str, at: int, kind: ContainerType) -> ContainerSpec:
    requests, limits = amounts(each, where)
    name = text(each, where, "name", required=True)
    return ContainerSpec(name=name, type=kind, index=at, requests=requests, limits=limits)


def amounts(holder: Mapping[str, Any], where: str) -> tuple[Amounts, Amounts]:
    """Requests and limits; what is only limited is requested up to the limit."""
    resources = part(holder, where, "resources")
    inside = f"{where}.resources"
    limits = quantities(resources, inside, "limits")
    return {**limits, **quantities(resources, inside, "requests")}, limits


def quantities(holder: Mapping[str, Any], where: str, name: str) -> dict[str, Fraction]:
    found = {}
    for resource, value in part(holder, where, name).items():
        place = f"{where}.{name}[{resource!r}]"
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise BadPodDocument(
                f"{place} is {value!r}; a quantity such as 500m or 2Gi is expected"
            )
        try:
            found[resource] = quantity.parse(str(value))
        except quantity.BadQuantity as error:
            raise BadPodDocument(f"{place}: {error}") from None
        if found[resource] < 0:
            raise BadPodDocument(f"{place} is {value}, less than nothing")
    return found


def owner_kind(metadata: Mapping[str, Any]) -> str:
    owners = items(metadata, "metadata", "ownerReferences")
    for where, each in owners:
        if each.get("controller") is True:
            return text(each, where, "kind")
    return ""


def part(holder: Any, where: str, name: str, *, required: bool = False) -> Mapping[str, Any]:
    """A member that is an object; an empty one if it is missing."""
    if not isinstance(holder, dict):
        raise BadPodDocument(f"{where or 'the document'} is {_kind(holder)}; an object is expected")
    found = holder.get(name)
    if found is None and not required:
        return {}
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found):
        raise BadPodDocument(f"{_place(where, name)} is {_kind(found)}; an object is expected")
    return found


def text(holder: Mapping[str, Any], where: str, name: str, *, required: bool = False) -> str:
    found = holder.get(name)
    if found is None and not required:
        return ""
    if not isinstance(found, str) or (required and not found):
        raise BadPodDocument(f"{_place(where, name)} is {_kind(found)}; a text is expected")
    return found


def texts(holder: Mapping[str, Any], where: str, name: str) -> Mapping[str, str]:
    found = part(holder, where, name)
    for key in found:
        text(found, f"{where}.{name}", key, required=False)
    return {key: value or "" for key, value in found.items()}


def items(holder: Mapping[str, Any], where: str, name: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The objects of a list, each with its place."""
    found = holder.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise BadPodDocument(f"{_place(where, name)} is {_kind(found)}; a list is expected")
    for at, each in enumerate(found):
        if not isinstance(each, dict):
            raise BadPodDocument(
                f"{_place(where, name)}[{at}] is {_kind(each)}; an object is expected"
            )
    return [(f"{_place(where, name)}[{at}]", each) for at, each in enumerate(found)]


def _place(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _kind(found: Any) -> str:
    words = {dict: "an object", list: "a list", bool: "a truth value", type(None): "missing"}
    return words.get(type(found)) or (repr(found) if found != "" else "empty")
