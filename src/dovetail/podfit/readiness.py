"""Whether a node is ready, by its conditions: asked by intents, machines and the ledger alike."""

from __future__ import annotations

from dovetail.podfit.objects import Node


def is_ready(node: Node) -> bool:
    """A node that says nothing of it is; a snapshot that people write may leave it out."""
    ready = (each.status for each in node.status.conditions if each.type == "Ready")
    return next(ready, "True") == "True"
