"""Roles: what the plugins do for which pods, as data. Read from a file by `role_file`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import msgspec

from dovetail.node.common.cpus import CpuSet
from dovetail.node.plugins.common.cpu_policy_options import CpuPolicyOption

SHARED = "shared"
"""The pool of all CPUs that are not reserved and in no other pool. It is always there."""

QosClass = Literal["Guaranteed", "Burstable", "BestEffort"]
QOS_CLASSES: tuple[QosClass, ...] = get_args(QosClass)


class RoleTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class CpuPool(RoleTable, frozen=True):
    """CPUs that containers share. Either listed, and then fixed, or so many."""

    cpus: CpuSet | None = None
    size: int | None = None
    min: int = 1
    max: int | None = None
    spread: Literal["even", "packed"] = "even"
    """Over NUMA nodes: as many from each, or from as few as possible."""
    ramp: int | None = None
    """By how many CPUs it grows or shrinks at a time; all at once if not given."""


class RoleMatch(RoleTable, frozen=True):
    """A pod must meet all that is given; any of the values of each."""

    roles: tuple[str, ...] = ()
    """What the pod says it is (kubernetes.io/pod-role, or one of the other keys)."""
    types: tuple[str, ...] = ()
    """The same for kubernetes.io/resource-type."""
    qos_classes: tuple[QosClass, ...] = ()
    namespaces: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class CpuRule(RoleTable, frozen=True):
    pool: str = SHARED
    """Where the containers run; of exclusive CPUs, where these are taken from."""
    exclusive: bool = False
    """CPUs of its own for a container that asks for whole ones; others share the pool."""
    numa: Literal["any", "single"] = "any"
    options: tuple[CpuPolicyOption, ...] = ()


class MemoryRule(RoleTable, frozen=True):
    bind: bool = False
    """To NUMA nodes on which that much is set aside; else anywhere."""
    numa: Literal["any", "single"] = "any"


class NicRule(RoleTable, frozen=True):
    """Which of the names are set depends on what the NIC has."""

    ipv6_env: str = "AFFINITY_NIC_ADDR_IPV6"
    ipv4_env: str = "AFFINITY_NIC_ADDR_IPV4"
    name_env: str = ""
    netns_annotation: str = "kubernetes.io/host-netns-path"
    bandwidth: bool = False
    """What is asked for is Mb/s, and no NIC is given away more often than it has."""


class PodRole(RoleTable, frozen=True):
    name: str = ""
    """The key of its table."""
    matches: RoleMatch | None = None
    """Without, pods whose role has the same name."""
    cpu: CpuRule = CpuRule()
    memory: MemoryRule = MemoryRule()
    nic: NicRule | None = None
    """Without, it gets no NIC."""
    numa_exclusive: bool = False
    """No other pod may have CPUs or memory of its own on the same NUMA nodes."""
    anti_affinity: tuple[str, ...] = ()
    """Roles whose pods may not have any there."""


class ReservedResources(RoleTable, frozen=True):
    """For the system: never given to a container as its own."""

    cpus: CpuSet = CpuSet()
    memory: Mapping[int, int] = {}
    """Bytes by NUMA node."""


class NicFacts(RoleTable, frozen=True):
    """What is not in sysfs, or should be another way."""

    numa: int | None = None
    netns: str | None = None
    ipv6: str | None = None
    ipv4: str | None = None
    speed: int | None = None
    ignore: bool = False


class AdjusterRule(RoleTable, frozen=True):
    """Lets a pool breathe with its load, at the expense of another."""

    pool: str
    donor: str
    grow_above: float = 0.8
    """Of the pool's CPU time that is used."""
    shrink_below: float = 0.5
    pressure_above: float = 20.0
    """Percent of time in which something on the node waited for a CPU (PSI some, 10 s)."""
    step: int = 2
    patience: int = 3
    """So many looks in a row must say the same before anything shrinks."""


class RoleBook(msgspec.Struct, frozen=True, kw_only=True):
    """All that the file says."""

    pools: Mapping[str, CpuPool] = {}
    """In the order of the file."""
    roles: Mapping[str, PodRole] = {}
    reserved: ReservedResources = ReservedResources()
    nics: Mapping[str, NicFacts] = {}
    adjuster: AdjusterRule | None = None

    def role(self, pod: PodDescription) -> PodRole:
        """The first that matches; one that shares everything if none does."""
        for role in self.roles.values():
            if matches(role, pod):
                return role
        return ELSE

    def depends_on_qos_class(self, pod: PodDescription) -> bool:
        """Whether a pod of unknown class could have different roles."""
        if pod.qos_class:
            return False
        of_classes = (
            self.role(msgspec.structs.replace(pod, qos_class=each)) for each in QOS_CLASSES
        )
        return any(each != self.role(pod) for each in of_classes)


class PodDescription(msgspec.Struct, frozen=True, kw_only=True):
    """What roles can tell pods apart by."""

    role: str = ""
    type: str = ""
    qos_class: str = ""
    namespace: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


ELSE = PodRole()


def matches(role: PodRole, pod: PodDescription) -> bool:
    wanted = role.matches
    if wanted is None:
        return pod.role == role.name
    return (
        (not wanted.roles or pod.role in wanted.roles)
        and (not wanted.types or pod.type in wanted.types)
        and (not wanted.qos_classes or pod.qos_class in wanted.qos_classes)
        and (not wanted.namespaces or pod.namespace in wanted.namespaces)
        and wanted.labels.items() <= pod.labels.items()
        and wanted.annotations.items() <= pod.annotations.items()
    )
