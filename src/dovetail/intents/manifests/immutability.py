"""Immutable fields: which changes of an object the API server refuses, so that only a replacement
brings them.

Updates ask before anything is sent: what has to be replaced is shown in the plan, and done only
when somebody asked for it. Both sides are objects as we write them, so that what the API server
fills in by itself is no change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from dovetail.core.quantity import BadQuantity, parse
from dovetail.intents.group import ManifestObject
from dovetail.intents.manifests.templates import without_nulls

JOB = {"template", "selector", "completions", "completionMode", "podFailurePolicy"}
JOB |= {"backoffLimitPerIndex", "maxFailedIndexes", "successPolicy", "managedBy"}
JOB |= {"podReplacementPolicy", "manualSelector"}
ONLY: Mapping[str, frozenset[str]] = {
    "Deployment": frozenset({"selector"}),
    "DaemonSet": frozenset({"selector"}),
    "ReplicaSet": frozenset({"selector"}),
    "Job": frozenset(JOB),
}
"""Fields of the spec that cannot be changed; all others can."""

STATEFUL_SET = {"replicas", "ordinals", "template", "updateStrategy", "minReadySeconds"}
STATEFUL_SET |= {"persistentVolumeClaimRetentionPolicy", "revisionHistoryLimit"}
ALL_BUT: Mapping[str, frozenset[str]] = {
    "StatefulSet": frozenset(STATEFUL_SET),
    "Pod": frozenset({"activeDeadlineSeconds", "containers", "initContainers"}),
    "PersistentVolumeClaim": frozenset({"resources", "volumeAttributesClassName"}),
    "ResourceClaimTemplate": frozenset(),
    "ResourceClaim": frozenset(),
}
"""Fields of the spec that can be changed; no others."""

TOP_LEVEL: Mapping[str, frozenset[str]] = {
    "RoleBinding": frozenset({"roleRef"}),
    "ClusterRoleBinding": frozenset({"roleRef"}),
    "Secret": frozenset({"type"}),
    "StorageClass": frozenset({"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"}),
    "PriorityClass": frozenset({"value", "preemptionPolicy"}),
}
AMOUNTS = ("requests", "limits", "overhead")
DATA_KINDS = ("ConfigMap", "Secret")
DATA = ("data", "stringData", "binaryData", "immutable")


class ImmutableChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change that takes a replacement."""

    path: str
    why: str


def immutable_changes(before: ManifestObject, after: ManifestObject) -> tuple[ImmutableChange, ...]:
    """Between an object as it was sent and as it would be sent now. Empty: it can be updated."""
    kind = str(after.get("kind"))
    old, new = without_nulls(before), without_nulls(after)
    paths = [
        *_changed(old, new, TOP_LEVEL.get(kind, frozenset())),
        *(f"spec.{each}" for each in _changed_in_spec(kind, old.get("spec"), new.get("spec"))),
    ]
    if kind in DATA_KINDS and old.get("immutable") is True:
        paths += _changed(old, new, DATA)
    if kind == "Pod":
        paths += _changed_containers(old["spec"], new["spec"])
    words = f"cannot be changed in a {kind}"
    return tuple(ImmutableChange(path=each, why=words) for each in paths)


def _changed(old: Mapping[str, Any], new: Mapping[str, Any], keys: Any) -> list[str]:
    return sorted(each for each in keys if not is_same(old.get(each), new.get(each)))


def _changed_in_spec(kind: str, old: Any, new: Any) -> list[str]:
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return []
    if kind in ONLY:
        return _changed(old, new, ONLY[kind])
    if kind in ALL_BUT:
        return _changed(old, new, (old.keys() | new.keys()) - ALL_BUT[kind])
    return []


def _changed_containers(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Of a pod's containers nothing can be changed but the image."""
    for group in ("initContainers", "containers"):
        stripped = [
            [{**each, "image": ""} for each in spec.get(group) or ()] for spec in (old, new)
        ]
        if not is_same(*stripped):
            yield f"spec.{group}"


def is_same(old: Any, new: Any) -> bool:
    """By value: amounts may be written otherwise, and nothing is as good as empty."""
    if _is_nothing(old) and _is_nothing(new):
        return True
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return all(
            _are_same_amounts(old.get(key), new.get(key))
            if key in AMOUNTS
            else is_same(old.get(key), new.get(key))
            for key in old.keys() | new.keys()
        )
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(is_same, old, new))
    return type(old) is type(new) and bool(old == new)


def _is_nothing(value: Any) -> bool:
    return value is None or value in ({}, [])


def _are_same_amounts(old: Any, new: Any) -> bool:
    try:
        amounts = [
            {name: parse(str(text)) for name, text in (each or {}).items()} for each in (old, new)
        ]
    except (AttributeError, BadQuantity):
        return bool(old == new)
    return amounts[0] == amounts[1]
