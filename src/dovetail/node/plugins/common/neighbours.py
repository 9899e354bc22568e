"""Who may be on a NUMA node together: whole nodes for one pod, and roles that keep apart. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from dovetail.node.common.cpus import CpuSet
from dovetail.node.plugins.common.roles import PodRole


class Neighbour(msgspec.Struct, frozen=True, kw_only=True):
    """A container that has something of its own on NUMA nodes."""

    pod: str
    """Its uid."""
    shown: str
    """As people know it."""
    role: str
    nodes: CpuSet


def barred(
    role: PodRole, pod: str, neighbours: Iterable[Neighbour], roles: Mapping[str, PodRole]
) -> dict[int, str]:
    """The nodes that are not for this pod, and why. A pod does not keep apart from itself."""
    found: dict[int, str] = {}
    for each in neighbours:
        words = _reason(role, each, roles) if each.pod != pod else None
        if words:
            for node in sorted(each.nodes):
                found.setdefault(node, words)
    return found


def _reason(role: PodRole, other: Neighbour, roles: Mapping[str, PodRole]) -> str | None:
    """A role that the file does not have any more asks for nothing."""
    theirs = roles.get(other.role)
    if theirs and theirs.numa_exclusive:
        return f"{other.shown} has it for itself (role {other.role})"
    if role.numa_exclusive:
        return f"{other.shown} is there, and role {role.name} wants nodes for itself"
    if other.role in role.anti_affinity or (theirs and role.name in theirs.anti_affinity):
        return f"{other.shown} is there, and roles {role.name} and {other.role} keep apart"
    return None
