"""Fleets to show: random ones, and one whose every name is hostile. Documents of POST /fleet."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any
from uuid import UUID

Document = dict[str, Any]

HOSTILE = (
    "<script>document.title='pwned'</script>",
    "<img src=x onerror=document.title='pwned'>",
    "\"><b onmouseover=document.title='pwned'>x</b>",
    "${7*7}{{7*7}}<%= 7*7 %>&lt;b&gt;&amp;",
    "../../../console/login?next=//evil.example",
    "\u202egnp.tsoh\u202c",
    "\u202ebad",
    "\u2067bad",
    "\u2069\u202ebad",
    "\u2067\u05e9\u05dc\u05d5\u05dd\u2069 \u0645\u0631\u062d\u0628\u0627",
    "\u202e12 of 48",
    "\u2067open",
    "shut\u2069\u202eopen",
    "\U0001f525\U0001f469\u200d\U0001f4bb\U0001f1e9\U0001f1ea rack",
    "z\u0351\u0310\u0357a\u0321\u0328l\u0348\u0353g\u032f\u0332o\u0353\u0316",
    "W" * 200,
    "a b  c\ttab",
    "' OR 1=1; --",
)
"""Names that a ledger may hold. The longest is as long as a name can be; some turn the direction of
writing and never turn it back, or close what they did not open."""


class World:
    """A random fleet: some racks of hosts, flat or with NUMA nodes, devices and consumers."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def documents(self) -> Iterator[Document]:
        rng = self._rng
        for rack in range(rng.randint(1, 4)):
            for number in range(rng.randint(1, 6)):
                yield from self._host(f"rack{rack}-host{number}")

    def _host(self, name: str) -> Iterator[Document]:
        rng = self._rng
        root = self._node(name, {"DISK_GB": rng.randint(10, 2000)})
        places = [root]
        if rng.random() < 0.2:
            root["inventories"] |= {"VCPU": rng.randint(1, 64)}
        else:
            for numa in range(rng.randint(1, 2)):
                node = self._node(f"{name}_numa{numa}", self._cpu_and_memory())
                for device in range(rng.randint(0, 3)):
                    kind = rng.choice(["FPGA", "VGPU", "SRIOV_NET_VF"])
                    held = {kind: 1 if kind == "FPGA" else rng.randint(1, 8)}
                    node["children"].append(self._node(f"{node['name']}_dev{device}", held))
                root["children"].append(node)
                places += [node, *node["children"]]
        yield root
        yield from self._consumers(places)

    def _cpu_and_memory(self) -> Document:
        rng = self._rng
        vcpu = {"total": rng.randint(4, 64), "reserved": rng.randint(0, 3)}
        if rng.random() < 0.5:
            vcpu["allocation_ratio"] = rng.choice([1.0, 1.5, 4.0])  # type: ignore[assignment]
        return {"VCPU": vcpu, "MEMORY_MB": 1024 * rng.randint(4, 256)}

    def _node(self, name: str, inventories: Document) -> Document:
        return {"name": name, "uuid": self._uuid(), "inventories": inventories, "children": []}

    def _consumers(self, places: list[Document]) -> Iterator[Document]:
        """Each holds a little of some places; nothing is held twice."""
        rng = self._rng
        for place in places:
            if not place["inventories"] or rng.random() < 0.5:
                continue
            held = {name: self._part(free) for name, free in place["inventories"].items()}
            yield {
                "consumer": self._uuid(),
                "project_id": rng.choice(["red", "green"]),
                "user_id": rng.choice(["ann", "bob"]),
                "consumer_type": rng.choice(["INSTANCE", "MIGRATION"]),
                "allocations": {place["uuid"]: held},
            }

    def _part(self, inventory: int | Document) -> int:
        if isinstance(inventory, int):
            return self._rng.randint(1, inventory)
        return self._rng.randint(1, inventory["total"] - inventory["reserved"])

    def _uuid(self) -> str:
        return str(UUID(int=self._rng.getrandbits(128), version=4))


def hostile_documents() -> Iterator[Document]:
    """Hosts, devices, projects, users and types with names that want to be something else."""
    rng = random.Random(1)
    for name in HOSTILE:
        root, below, consumer = (str(UUID(int=rng.getrandbits(128), version=4)) for _ in range(3))
        device = {"name": f"{name[:195]}/dev", "uuid": below, "inventories": {"FPGA": 2}}
        yield {
            "name": name,
            "uuid": root,
            "inventories": {"VCPU": 8},
            "attributes": {"rack": name, "note": name},
            "children": [device],
        }
        yield {
            "consumer": consumer,
            "project_id": name,
            "user_id": name,
            "consumer_type": "INSTANCE",
            "allocations": {root: {"VCPU": 3}, below: {"FPGA": 1}},
        }


def ndjson(documents: Iterator[Document]) -> bytes:
    return "\n".join(map(json.dumps, documents)).encode()
