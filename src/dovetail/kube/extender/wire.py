"""Messages between kube-scheduler and an extender (extender API v1).

Go's encoder writes fields as they are called, so they begin with capitals here; objects of the
Kubernetes API inside them are written as everywhere else. `Nodes` comes where kube-scheduler was
not told that this extender knows the nodes (`nodeCacheCapable`), `NodeNames` where it was; the
answer uses the same one.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dovetail.podfit.objects import Pod


class NodeList(msgspec.Struct, frozen=True):
    """Nodes as they came: they go back whole, so nothing of them may be lost."""

    items: list[dict[str, Any]] = []

    def names(self) -> list[str]:
        return [each["metadata"]["name"] for each in self.items]


class Args(msgspec.Struct, frozen=True, rename="pascal"):
    pod: Pod
    nodes: NodeList | None = None
    node_names: list[str] | None = None

    def names(self) -> list[str]:
        """Of the nodes that are in question."""
        if self.node_names is not None:
            return self.node_names
        return self.nodes.names() if self.nodes is not None else []


class FilterResult(msgspec.Struct, frozen=True, rename="pascal", kw_only=True):
    nodes: NodeList | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] = {}
    failed_and_unresolvable_nodes: dict[str, str] = {}
    """Those where not even evicting pods would help."""
    error: str = ""


class HostPriority(msgspec.Struct, frozen=True, rename="pascal"):
    host: str
    score: int


class BindingArgs(msgspec.Struct, frozen=True, rename="pascal"):
    pod_name: str
    pod_namespace: str
    pod_uid: str = msgspec.field(name="PodUID")
    node: str


class BindingResult(msgspec.Struct, frozen=True, rename="pascal"):
    error: str = ""


HIGHEST = 10
"""The best score that an extender may give."""
