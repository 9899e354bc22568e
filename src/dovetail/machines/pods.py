"""Guests and sleepers: what the planner reads of a pod of a machine group."""

from __future__ import annotations

from dovetail.machines.names import (
    CREATOR,
    ENABLED,
    GUEST,
    INJECT_RESOURCE,
    INJECT_RESOURCE_ALIAS,
    MACHINE_GROUP,
    MACHINE_TYPE,
    POD_ROLE,
    RESERVATION,
    STOCK_GATE,
    UNIT_GATE,
    UNIT_GROUP,
    UNIT_GROUP_SIZE,
    USER,
)
from dovetail.podfit.objects import Namespace, Pod
from dovetail.podfit.pod_sum import ENDED_PHASES

MOST_DIGITS = 9


def group_of(pod: Pod) -> str:
    return pod.metadata.labels.get(MACHINE_GROUP, "")


def type_of(pod: Pod) -> str:
    return pod.metadata.labels.get(MACHINE_TYPE, "")


def is_guest(pod: Pod) -> bool:
    labels = pod.metadata.labels
    return labels.get(POD_ROLE) == GUEST and MACHINE_GROUP in labels and MACHINE_TYPE in labels


def is_sleeper(pod: Pod, namespace: str) -> bool:
    """Whether the pod holds stock: only those of the operator's own namespace do."""
    return pod.metadata.namespace == namespace and pod.metadata.labels.get(POD_ROLE) == RESERVATION


def is_opted_in(namespace: Namespace | None) -> bool:
    if namespace is None:
        return False
    labels = namespace.metadata.labels
    return ENABLED in (labels.get(INJECT_RESOURCE), labels.get(INJECT_RESOURCE_ALIAS))


def is_over(pod: Pod) -> bool:
    """Whether the pod holds nothing any more."""
    return pod.status.phase in ENDED_PHASES


def is_bound(pod: Pod) -> bool:
    return bool(pod.spec.node_name)


def is_leaving(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def has_gate(pod: Pod, gate: str) -> bool:
    gates = pod.spec.scheduling_gates
    return bool(gates) and any(each.name == gate for each in gates)


def is_gated_guest(pod: Pod) -> bool:
    return has_gate(pod, UNIT_GATE)


def is_gated_sleeper(pod: Pod) -> bool:
    return has_gate(pod, STOCK_GATE)


def other_gates(pod: Pod) -> tuple[str, ...]:
    """Gates of others, behind which a guest would hold a unit that it cannot use."""
    return tuple(
        each.name for each in pod.spec.scheduling_gates if each.name not in (UNIT_GATE, STOCK_GATE)
    )


def is_live_sleeper(pod: Pod) -> bool:
    """Whether it counts as reserved: on a node, and neither over nor going."""
    return is_bound(pod) and not is_over(pod) and not is_leaving(pod)


def is_operating(pod: Pod, counting: str) -> bool:
    """Whether a guest counts as used.

    `bound`: what the scheduler charges. `spec`: any of its containers runs or is being created, or
    the pod is going; so a pod of which no container is told yet does not count.
    """
    if not is_bound(pod) or is_over(pod):
        return False
    if counting != "spec" or is_leaving(pod):
        return True
    return any(
        each.state.running is not None
        or (each.state.waiting is not None and each.state.waiting.reason != "Error")
        for each in pod.status.container_statuses
    )


def ordinal_of(pod: Pod) -> int:
    """Of a StatefulSet's pod, by its name."""
    digits = pod.metadata.name.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0


def user_of(pod: Pod, namespace: Namespace | None) -> str:
    """Whose the guest is: what its namespace says, else who created it."""
    owner = namespace.metadata.annotations.get(USER, "") if namespace is not None else ""
    return owner or pod.metadata.annotations.get(CREATOR, "")


def unit_group_of(pod: Pod) -> str:
    """`namespace/name` of its unit group; empty if it has none."""
    name = pod.metadata.labels.get(UNIT_GROUP, "")
    return f"{pod.metadata.namespace}/{name}" if name else ""


def controller_of(pod: Pod) -> str:
    """Uid of the Job, or whatever else it is, that makes the pod again; empty if nothing does."""
    return next((each.uid for each in pod.metadata.owner_references if each.controller), "")


def unit_group_size(pod: Pod) -> int | None:
    """How many pods its group has; None if that is not written, or makes no sense."""
    text = pod.metadata.annotations.get(UNIT_GROUP_SIZE, "")
    is_number = text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS
    return int(text) or None if is_number else None


def line_order(pod: Pod) -> tuple[int, str, int, str]:
    """Sorts those who wait: by priority, then age.

    Times are in whole seconds. Within one, versions tell who was created first: hardly anybody
    writes to a pod that waits behind its gate.
    """
    meta = pod.metadata
    version = int(meta.resource_version) if meta.resource_version.isdecimal() else 0
    return -pod.spec.priority, meta.creation_timestamp or "", version, meta.uid
