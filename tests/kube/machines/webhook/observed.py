"""What the informers of a replica told, for reviews: two Machines, their nodes, some namespaces."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec

from dovetail.kube.machines.state import MachineState
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.machines.documents import Machine
from dovetail.machines.names import ENABLED, GUEST, INJECT_RESOURCE, role_labels
from dovetail.machines.snapshot import StockSettings
from tests.machines.building import machine, namespace, node

LAB = {
    "nodePool": [{"name": "one", "machineType": [{"name": "whole"}]}],
    "machineTypes": [
        {
            "name": "whole",
            "spec": {"cpu": 8, "memory": "16Gi"},
            "available": 1,
            "whenSoldOut": "refuse",
        },
        {"name": "other", "spec": {"cpu": 2, "memory": "4Gi"}, "available": 1},
    ],
}
SHELF = {
    "nodePool": [{"name": "two", "machineType": [{"name": "tiny"}]}],
    "machineTypes": [{"name": "tiny", "spec": {"cpu": 1, "memory": "1Gi"}, "available": 8}],
}


def state() -> MachineState:
    """Of a replica that does not lead: of the ledger it knows nothing."""
    found = MachineState(
        StockSettings(),
        groups=WorkQueue("groups"),
        nodes=WorkQueue("nodes"),
        pools=WorkQueue("pools"),
    )
    for name in ("one", "two", "three"):
        found.on_node(None, node(name))
    found.on_namespace(None, namespace("team", {INJECT_RESOURCE: ENABLED}))
    for name, spec in (("lab", LAB), ("shelf", SHELF)):
        accept(found, machine(spec, name, name, uid=f"uid-{name}", generation=1))
    return found


def accept(found: MachineState, given: Machine) -> None:
    found.on_machine(None, given)
    found.accepted.accept(given)
    found.own_nodes()


def pod(group: str = "lab", kind: str = "whole", **spec: Any) -> dict[str, Any]:
    """A guest as the API server sends it for review: without namespace, and its name is to come."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "train-",
            "creationTimestamp": None,
            "labels": role_labels(group, kind, GUEST),
        },
        "spec": {"containers": [{"name": "main", "image": "any"}], **spec},
    }


def written(spec: dict[str, Any], name: str = "lab", **meta: Any) -> dict[str, Any]:
    """A Machine as the API server sends it for review."""
    found: dict[str, Any] = msgspec.to_builtins(machine(deepcopy(spec), name, name, **meta))
    return found
