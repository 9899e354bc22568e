"""Posted snapshots: `kubectl get nodes,pods,resourceslices -A -o json` as a whole cluster.

The document store has one read when a cluster is posted with it, through the port `SnapshotReader`
of `service/intents/fleet.py`. What is wrong is told with its place. Kinds that say nothing of
capacity are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from dovetail.core.errors import Malformed
from dovetail.intents.documents.errors import broken_rule
from dovetail.intents.names import ClusterName
from dovetail.kube.classes.resource_claims import ResourceClaim
from dovetail.kube.mirror.observation import ClusterObservation
from dovetail.ledger.intents.clusters import SeenCluster
from dovetail.ledger.intents.observed import observed_pod
from dovetail.podfit.objects import KubeObject, Node, Pod, ResourceClass, ResourceSlice
from dovetail.podfit.pod_sum import allocatable_of

KINDS: Mapping[str, type[KubeObject]] = {
    each.API.kind: each for each in (Node, Pod, ResourceSlice, ResourceClaim, ResourceClass)
}
NODE_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?", re.ASCII)
OBSERVED_AT = "observedAt"


def snapshot_of(
    document: Mapping[str, Any], cluster: ClusterName, field: str = "spec.snapshot"
) -> SeenCluster:
    """`field` is where the snapshot stands in what was posted. Raises BadDocument."""
    observation = ClusterObservation(cluster)
    handlers: Mapping[type[KubeObject], Callable[[Any, Any], None]] = {
        Node: observation.on_node,
        Pod: observation.on_pod,
        ResourceSlice: observation.on_slice,
        ResourceClaim: observation.on_claim,
        ResourceClass: observation.on_class,
    }
    keys: set[tuple[str, str]] = set()
    for place, item in items_of(document, field):
        if (item.API.kind, item.key) in keys:
            raise broken_rule(place, f"{item.API.kind} {item.key!r} is there already")
        keys.add((item.API.kind, item.key))
        refuse_unreadable(place, item)
        handlers[type(item)](None, item)
    return SeenCluster(
        nodes=observation.taken(observation.changed_nodes()).nodes,
        classes=observation.classes,
        observed_at=observed_at_of(document, field),
    )


def items_of(document: Mapping[str, Any], field: str) -> Iterator[tuple[str, KubeObject]]:
    """Objects that count, each with its place."""
    kind, items = document.get("kind"), document.get("items")
    if not isinstance(items, list):
        raise broken_rule(f"{field}.items", "a list of objects is expected, as kubectl writes it")
    listed = kind.removesuffix("List") if isinstance(kind, str) else ""
    for number, item in enumerate(items):
        place = f"{field}.items[{number}]"
        if not isinstance(item, dict):
            raise broken_rule(place, "an object is expected")
        said = item.get("kind", listed)
        if not isinstance(said, str) or not said:
            raise broken_rule(f"{place}.kind", "it says not what it is")
        if said in KINDS:
            yield place, read(place, item, KINDS[said])


def read(place: str, item: Mapping[str, Any], kind: type[KubeObject]) -> KubeObject:
    try:
        found = msgspec.convert(without_nulls(item), kind)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        raise broken_rule(f"{place}{path.removesuffix('`')}", message) from error
    if not found.metadata.name:
        raise broken_rule(f"{place}.metadata.name", "it has no name")
    return found


def without_nulls(value: Any) -> Any:
    """Null stands for what is not there, as in the API."""
    if isinstance(value, Mapping):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value]
    return value


def refuse_unreadable(place: str, item: KubeObject) -> None:
    """What an informer would pass over is told to those who post it."""
    try:
        if isinstance(item, Node):
            if not NODE_NAME.fullmatch(item.metadata.name):
                raise broken_rule(f"{place}.metadata.name", "no node can be called so")
            place = f"{place}.status.allocatable"
            allocatable_of(item.status.allocatable)
        elif isinstance(item, Pod):
            observed_pod(item)
    except Malformed as error:
        if hasattr(error, "field"):
            raise
        raise broken_rule(place, str(error)) from error


def observed_at_of(document: Mapping[str, Any], field: str) -> int:
    """When it was taken, if it says so, in Unix seconds; else 0."""
    written = document.get(OBSERVED_AT)
    if written is None:
        return 0
    try:
        if isinstance(written, str):
            return int(datetime.fromisoformat(written).timestamp())
        if isinstance(written, int) and not isinstance(written, bool) and written >= 0:
            return min(written, 2**53)
    except (ValueError, OverflowError):
        pass
    raise broken_rule(f"{field}.{OBSERVED_AT}", "a time is expected, as 2026-01-31T12:00:00Z")
