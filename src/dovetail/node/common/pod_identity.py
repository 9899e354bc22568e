"""A pod's identity to plugins: role and resource type, by annotations and labels."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from dovetail.node.common.pods import Pod

ROLE, TYPE = "kubernetes.io/pod-role", "kubernetes.io/resource-type"
"""Annotations of the specification."""

KATALYST_ROLE, KATALYST_TYPE = "katalyst.kubewharf.io/pod_role", "katalyst.kubewharf.io/pod_type"
"""A label and an annotation."""
QOS_LEVEL = "katalyst.kubewharf.io/qos_level"
SKIP = "katalyst.kubewharf.io/skip_qrm_admit"
SYSTEM = "system_cores"


class PodIdentity(NamedTuple):
    role: str
    type: str


def identity_of(pod: Pod) -> PodIdentity:
    """The specification's words count most, then Katalyst's role, then its level of QoS."""
    annotations = pod.annotations
    role = annotations.get(ROLE) or pod.labels.get(KATALYST_ROLE) or annotations.get(QOS_LEVEL, "")
    return PodIdentity(role, annotations.get(TYPE) or annotations.get(KATALYST_TYPE, ""))


def is_skipped(pod: Pod, owners: Collection[str], *, first: bool) -> bool:
    """Whether the pod starts without plugins being asked; some do so the `first` time only.

    Katalyst leaves out DaemonSets, other than those of the system's level. Here pods are the same
    whoever made them, unless their kind of owner is among `owners`.
    """
    if first and pod.annotations.get(SKIP) == "true":
        return True
    return pod.owner_kind in owners and pod.annotations.get(QOS_LEVEL) != SYSTEM
