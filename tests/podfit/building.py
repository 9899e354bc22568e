"""Nodes and pods in a few words, and the question where a pod fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dovetail.core.rows import Rows
from dovetail.podfit.filtered_nodes import FilteredNodes
from dovetail.podfit.objects import Condition, Namespace, Node, Pod
from dovetail.podfit.pod_request import pod_request_of
from dovetail.podfit.scores.resources import ScoringStrategy
from dovetail.podfit.table import NodeTable

Json = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def node(
    name: str,
    labels: Mapping[str, str] | None = None,
    *,
    taints: Sequence[Json] = (),
    unschedulable: bool = False,
    **amounts: str,
) -> Node:
    has = {"cpu": "4", "memory": "8Gi", "pods": "110", **amounts}
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            },
            "spec": {"taints": list(taints), "unschedulable": unschedulable},
            "status": {"allocatable": {key.replace("__", "/"): has[key] for key in has}},
        },
        Node,
    )


def pod(
    name: str,
    labels: Mapping[str, str] | None = None,
    *,
    on: str = "",
    namespace: str = "default",
    requests: Mapping[str, str | int] | None = None,
    leaving: bool = False,
    phase: str = "",
    **spec: Any,
) -> Pod:
    """Further fields of the spec as the API has them; the uid is the name."""
    meta: Json = {"name": name, "namespace": namespace, "uid": name, "labels": dict(labels or {})}
    if leaving:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    container = {"name": "main", "resources": {"requests": dict(requests or {})}}
    return msgspec.convert(
        {
            "metadata": meta,
            "spec": {"containers": [container], "nodeName": on, **spec},
            "status": {"phase": phase},
        },
        Pod,
    )


def conditions(*written: Json) -> tuple[Condition, ...]:
    return msgspec.convert(written, tuple[Condition, ...])


class Fleet:
    """A table that is asked by name."""

    def __init__(
        self,
        nodes: Sequence[Node],
        pods: Sequence[Pod] = (),
        namespaces: Mapping[str, Mapping[str, str]] | None = None,
        strategy: ScoringStrategy = ScoringStrategy.LEAST_ALLOCATED,
    ) -> None:
        self.rows = Rows()
        self.table = NodeTable(self.rows, strategy)
        for name, labels in (namespaces or {}).items():
            self.set_namespace(name, labels)
        for one in nodes:
            self.table.set_node(one)
        for other in pods:
            self.table.add_pod(other)

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        meta = {"metadata": {"name": name, "labels": dict(labels)}}
        self.table.set_namespace(msgspec.convert(meta, Namespace))

    def verdict(self, asked: Pod) -> FilteredNodes:
        return self.table.filter(pod_request_of(asked))

    def fitting(self, asked: Pod) -> str:
        """The names of the nodes that fit, in the order of rows."""
        return " ".join(self.rows.names[row] for row in self.verdict(asked).mask.nonzero()[0])

    def why(self, asked: Pod, name: str) -> str:
        return self.table.why(self.row(name), pod_request_of(asked))

    def scores(self, asked: Pod) -> dict[str, float]:
        """Of the nodes that fit."""
        mask = self.verdict(asked).mask
        found = self.table.score(pod_request_of(asked), mask)
        return {self.rows.names[row]: float(found[row]) for row in mask.nonzero()[0]}

    def best(self, asked: Pod) -> str:
        return self.rows.names[
            int(self.table.score(pod_request_of(asked), self.verdict(asked).mask).argmax())
        ]

    def row(self, name: str) -> int:
        found = self.rows.find(name)
        assert found is not None
        return found
