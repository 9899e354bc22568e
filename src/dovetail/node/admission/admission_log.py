"""A bounded log of admissions: what the gate decided and why; `dovetail agent explain` reads it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from dovetail.core.explanation import Explanation
from dovetail.node.wire.resource_plugin import ResourceAllocationInfo

MOST_PODS = 1000
"""Pods that are kept in mind."""


class HintRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    nodes: str | None
    """As in 0-1; None is any."""
    preferred: bool


class ResourceRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a container, or the whole pod, got of a resource, and how that came about."""

    resource: str
    container: str = ""
    """Nothing: all of them."""
    requested: str = ""
    limit: str = ""
    hints: tuple[HintRecord, ...] | None = None
    """What the plugin offered; None if it had no preference."""
    merged: HintRecord | None = None
    """What all resources together got."""
    reused: bool = False
    """It had enough from before: the plugin was not asked."""
    failure: str = ""
    """The reason why it is started without, or with what it had: its plugin's failure."""
    missing: str = ""
    """The same in words."""
    allocation: ResourceAllocationInfo | None = None


class AdmissionRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One admission of a pod, or of a container that came later."""

    uid: str
    namespace: str
    name: str
    at: float
    """Seconds since 1970."""
    role: str = ""
    type: str = ""
    container: str = ""
    """Nothing: the whole pod."""
    result: str = "admitted"
    """Or skipped, or rejected; failed, if that is our own fault."""
    reason: str = ""
    words: str = ""
    later: bool = False
    """It may succeed without anything being freed."""
    resources: list[ResourceRecord] = []
    explanation: Explanation | None = None
    """Of a refusal by the topology policy."""


class AdmissionLog:
    """The latest admissions of the latest pods: a few of the whole, and of each late container."""

    def __init__(self, most: int = MOST_PODS, each: int = 4) -> None:
        self._most, self._each = most, each
        self._pods: OrderedDict[str, list[AdmissionRecord]] = OrderedDict()

    def add(self, record: AdmissionRecord) -> None:
        kept = [*self._pods.pop(record.uid, ()), record]
        alike = [at for at, other in enumerate(kept) if other.container == record.container]
        if len(alike) > self._each:
            del kept[alike[0]]
        self._pods[record.uid] = kept
        if len(self._pods) > self._most:
            self._pods.popitem(last=False)

    def of(self, pod: str) -> Sequence[AdmissionRecord]:
        """Of a pod, latest last: by uid, by namespace/name, or by a name alone."""
        if pod in self._pods:
            return tuple(self._pods[pod])
        found = [
            record
            for records in self._pods.values()
            for record in records
            if pod in (f"{record.namespace}/{record.name}", record.name)
        ]
        return tuple(found)
