"""Names on the wire of Imperator: label and annotation keys, gates, and names of owned objects."""

from __future__ import annotations

DOMAIN = "imperator.tenzen-y.io"

MACHINE_GROUP = f"{DOMAIN}/machine-group"
MACHINE_TYPE = f"{DOMAIN}/machine-type"
POD_ROLE = f"{DOMAIN}/pod-role"
GUEST, RESERVATION = "guest", "reservation"
"""Values of POD_ROLE."""

INJECTING_CONTAINER = f"{DOMAIN}/injecting-container"
INJECTING_CONTAINER_ALIAS = f"{DOMAIN}/inject-resource"
"""On a pod: the specification's prose has this key, its examples the other."""

INJECT_RESOURCE = f"{DOMAIN}/inject-resource"
INJECT_RESOURCE_ALIAS = "imperator.tenzen.io/inject-resource"
"""On a namespace: the specification's domain lacks a letter there."""
ENABLED = "enabled"

NODE_POOL = f"{DOMAIN}/node-pool"
READY, MAINTENANCE, NOT_READY = "ready", "maintenance", "not-ready"
"""Values of NODE_POOL on a node; the first two are modes, too."""

UNIT_GATE = f"{DOMAIN}/unit"
"""A guest waits behind it until it was sold a unit."""
STOCK_GATE = f"{DOMAIN}/stock"
"""A sleeper waits behind it until the operator knows where it goes."""

CREATOR = f"{DOMAIN}/creator"
"""Annotation of a guest: who created the pod, written by admission."""
USER = f"{DOMAIN}/user"
"""Annotation of a namespace: whose it is."""
UNIT_GROUP = f"{DOMAIN}/unit-group"
UNIT_GROUP_SIZE = f"{DOMAIN}/unit-group-size"

FINALIZER = f"{DOMAIN}/dovetail"
"""On a MachineNodePool: its marks on nodes go before it does."""
OPERATOR = f"{DOMAIN}/operator"
"""Annotation of the operator's service account: as whom it runs, if not as that account."""

HOSTNAME = "kubernetes.io/hostname"
GPU_TYPE = "nvidia.com/gpu"

LONGEST_STATEFUL_SET = 52
"""The revision label of its pods has eleven characters more, and a label 63."""
RESERVED_TYPES = frozenset(
    key.partition("/")[2]
    for key in (
        *(MACHINE_GROUP, MACHINE_TYPE, POD_ROLE, INJECTING_CONTAINER, INJECT_RESOURCE, NODE_POOL),
        *(UNIT_GATE, STOCK_GATE, CREATOR, USER, UNIT_GROUP, UNIT_GROUP_SIZE, OPERATOR),
    )
)
"""A type's name becomes a key of the domain: these keys mean something else already."""


def type_key(machine_type: str) -> str:
    """Key of the label, and of the taint, of nodes that serve the type."""
    return f"{DOMAIN}/{machine_type}"


def stock_name(machine_type: str, group: str) -> str:
    """Of the StatefulSet and the Service that hold a type's stock."""
    return f"{machine_type}-{group}"


def pool_name(machine: str) -> str:
    """Of a Machine's MachineNodePool."""
    return f"{machine}-node-pool"


def role_labels(group: str, machine_type: str, role: str) -> dict[str, str]:
    return {MACHINE_GROUP: group, MACHINE_TYPE: machine_type, POD_ROLE: role}
