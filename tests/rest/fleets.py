"""Small fleets, written as fleet documents."""

from __future__ import annotations

import json
import uuid
from typing import Any

from tests.rest.client import Client

NDJSON = "application/x-ndjson"


def uid(name: str) -> str:
    """A UUID that is always the same for a name."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def tree(name: str, *children: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "uuid": uid(name), "children": list(children), **more}


def load(client: Client, *lines: dict[str, Any]) -> None:
    document = "\n".join(map(json.dumps, lines)).encode()
    reply = client.call("POST", "/dovetail/v1/fleet", document, content_type=NDJSON)
    assert reply.status_code == 200, reply.text


def numa_hosts(count: int = 2) -> list[dict[str, Any]]:
    """Hosts with two NUMA nodes, each with an FPGA and a NIC of two ports."""
    return [
        tree(
            f"h{h}",
            *(
                tree(
                    f"h{h}n{n}",
                    tree(f"h{h}n{n}fpga", inventories={"FPGA": 1}),
                    tree(
                        f"h{h}n{n}nic",
                        *(
                            tree(f"h{h}n{n}pf{p}", inventories={"SRIOV_NET_VF": 4})
                            for p in range(2)
                        ),
                        traits=["CUSTOM_NIC"],
                    ),
                    inventories={"VCPU": 8, "MEMORY_MB": 4096},
                    traits=["HW_NUMA_ROOT"],
                )
                for n in range(2)
            ),
            inventories={"DISK_GB": 100},
            aggregates=[uid(f"rack{h % 2}")],
        )
        for h in range(count)
    ]
