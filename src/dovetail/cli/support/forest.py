"""Hosts as the server knows them: trees of providers with what each has and who holds it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import orjson

from dovetail.cli.support.client import Server, segment
from dovetail.core.inventory import capacity

Node = dict[str, Any]


def read(server: Server, tree: str | None) -> list[Node]:
    """The trees (or the one that has this provider), with use and consumers at every provider."""
    query = "" if tree is None else f"?tree={segment(tree)}"
    document = b"".join(server.stream("GET", f"/dovetail/v1/fleet{query}"))
    lines = [orjson.loads(line) for line in document.splitlines()]
    holders: dict[str, list[Node]] = defaultdict(list)
    for line in lines:
        for provider, resources in line.get("allocations", {}).items():
            owner = {key: line[key] for key in ("consumer", "project_id", "user_id")}
            holders[provider].append({**owner, "resources": resources})
    return [filled(line, holders) for line in lines if "consumer" not in line]


def filled(node: Node, holders: dict[str, list[Node]]) -> Node:
    consumers = holders.get(node["name"], [])
    return {
        "name": node["name"],
        "uuid": node["uuid"],
        "traits": node.get("traits", []),
        "aggregates": node.get("aggregates", []),
        "attributes": node.get("attributes", {}),
        "inventories": {
            name: stock(name, given, consumers)
            for name, given in node.get("inventories", {}).items()
        },
        "consumers": consumers,
        "children": [filled(child, holders) for child in node.get("children", [])],
    }


def stock(name: str, given: int | Node, consumers: list[Node]) -> Node:
    written = {"total": given} if isinstance(given, int) else given
    room = capacity(
        written["total"], written.get("reserved", 0), written.get("allocation_ratio", 1.0)
    )
    used = sum(consumer["resources"].get(name, 0) for consumer in consumers)
    return {**written, "capacity": room, "used": used}


def below(nodes: list[Node], key: str) -> Node | None:
    """The provider of this name or UUID, with what is under it."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if key in {node["name"], node["uuid"]}:
            return node
        waiting += node["children"]
    return None
