"""Trees of providers with what each has and who holds it, read from the server for `tree`."""

from __future__ import annotations

from collections import defaultdict

import orjson

from dovetail.cli.support.client import ServerClient, segment
from dovetail.cli.support.tree_text import Node
from dovetail.core.inventory import capacity


def read_trees(server: ServerClient, tree: str | None) -> list[Node]:
    """The trees (or the one that has this provider), with use and consumers at every provider."""
    query = "" if tree is None else f"?tree={segment(tree)}"
    document = b"".join(server.stream("GET", f"/dovetail/v1/fleet{query}"))
    lines = [orjson.loads(line) for line in document.splitlines()]
    holders: dict[str, list[Node]] = defaultdict(list)
    for line in lines:
        for provider, resources in line.get("allocations", {}).items():
            owner = {key: line[key] for key in ("consumer", "project_id", "user_id")}
            holders[provider].append({**owner, "resources": resources})
    return [tree_of(line, holders) for line in lines if "consumer" not in line]


def tree_of(node: Node, holders: dict[str, list[Node]]) -> Node:
    consumers = holders.get(node["name"], [])
    return {
        "name": node["name"],
        "uuid": node["uuid"],
        "traits": node.get("traits", []),
        "aggregates": node.get("aggregates", []),
        "attributes": node.get("attributes", {}),
        "inventories": {
            name: inventory_of(name, given, consumers)
            for name, given in node.get("inventories", {}).items()
        },
        "consumers": consumers,
        "children": [tree_of(child, holders) for child in node.get("children", [])],
    }


def inventory_of(name: str, given: int | Node, consumers: list[Node]) -> Node:
    written = {"total": given} if isinstance(given, int) else given
    room = capacity(
        written["total"], written.get("reserved", 0), written.get("allocation_ratio", 1.0)
    )
    used = sum(consumer["resources"].get(name, 0) for consumer in consumers)
    return {**written, "capacity": room, "used": used}


def find_provider(nodes: list[Node], key: str) -> Node | None:
    """The provider of this name or UUID, with what is under it."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if key in {node["name"], node["uuid"]}:
            return node
        waiting += node["children"]
    return None
