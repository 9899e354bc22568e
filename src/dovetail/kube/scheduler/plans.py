"""Binding plans: what was decided for a pod, and what the pod as it is found later makes of it.

Pure rules, for the binder, the reconciler and the cluster state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

import msgspec

from dovetail.core.device import Origin
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.devices.allocation_document import ALLOCATION, BadAllocation, read_allocation
from dovetail.kube.classes.device_requests import requested_classes
from dovetail.kube.classes.pod_annotation import annotations_of
from dovetail.kube.classes.resource_claims import (
    MOST_DEVICES,
    WantedClaim,
    claim_name,
    pod_claim_status,
    wanted_claim,
)
from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_sum import ENDED_PHASES

FENCE = "dovetail.dev/ClaimGivenBack"
"""Condition of a pod: a claim that was made for it is no longer to be relied on."""


class BindingPlan(msgspec.Struct, frozen=True):
    """A pod, the node it shall go to, and the devices it gets there."""

    pod: Pod
    node: str
    holdings: tuple[DeviceHolding, ...] = ()
    is_claimed: bool = False
    """The ledger has the claim already: only the binding is left to do."""
    origins: Mapping[str, Origin] = {}
    """By device: who brings it into containers."""

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid


class Standing(Enum):
    """How a pod stands to a plan whose binding was not simply accepted."""

    AS_PLANNED = "bound as planned"
    OTHERWISE = "bound otherwise"
    GONE = "gone, or never to be bound"
    FENCED = "the claim was given back by somebody"
    UNBOUND = "not bound"


def standing_of(plan: BindingPlan, now: Pod | None) -> Standing:
    if now is None or now.metadata.uid != plan.uid:
        return Standing.GONE
    if now.spec.node_name:
        planned = now.spec.node_name == plan.node and held_by(now) == amounts(plan.holdings)
        return Standing.AS_PLANNED if planned else Standing.OTHERWISE
    if is_over(now) or now.metadata.deletion_timestamp is not None:
        # The API server refuses to bind a pod that is being deleted, now and for ever.
        return Standing.GONE
    return Standing.UNBOUND if fence_of(now) == fence_of(plan.pod) else Standing.FENCED


def is_over(pod: Pod) -> bool:
    """It runs no longer and holds nothing."""
    return pod.status.phase in ENDED_PHASES


def fence_of(pod: Pod) -> str:
    """The words of the fence that was last put on the pod; none: empty."""
    return next((each.message for each in pod.status.conditions if each.type == FENCE), "")


def held_by(pod: Pod) -> dict[str, int]:
    """Units by device that a bound pod says it holds."""
    return amounts(holdings_of(pod))


def holdings_of(pod: Pod) -> tuple[DeviceHolding, ...]:
    """What a bound pod's annotation says, if it can be believed.

    Annotations of a new pod are its maker's. So what is said must be of the node that the pod is
    on, and of classes that it asks for: that much was checked when the pod was admitted.
    """
    if not pod.spec.node_name or ALLOCATION not in pod.metadata.annotations:
        return ()
    try:
        found = read_allocation(pod.metadata.annotations)
    except BadAllocation:
        return ()
    if found is None or found.node != pod.spec.node_name:
        return ()
    requested = requested_classes(pod)
    return found.holdings if all(each.class_name in requested for each in found.holdings) else ()


def amounts(holdings: Iterable[DeviceHolding]) -> dict[str, int]:
    """Units by device, whichever class they were asked by."""
    found: dict[str, int] = {}
    for each in holdings:
        found[each.device] = found.get(each.device, 0) + each.units
    return found


def notes_of(plan: BindingPlan) -> dict[str, str]:
    return annotations_of(plan.node, plan.holdings, plan.origins) if plan.holdings else {}


def claim_wanted_by(plan: BindingPlan) -> WantedClaim | None:
    """The ResourceClaim that the plan's devices come by; None: none of them does."""
    if not plan.origins:
        return None
    fence = fence_of(plan.pod)
    return wanted_claim(plan.pod, plan.node, plan.holdings, plan.origins, fence)


def unwritable_reason(plan: BindingPlan) -> str:
    """What no ResourceClaim can say; empty: one can."""
    wanted = claim_wanted_by(plan)
    if wanted is None or len(wanted.devices) <= MOST_DEVICES:
        return ""
    return (
        f"{len(wanted.devices)} devices of {plan.node} would have to come by one ResourceClaim,"
        f" which can have {MOST_DEVICES}."
    )


def claim_status_patch(
    plan: BindingPlan, wanted: WantedClaim | None, pod: Pod
) -> Mapping[str, Any] | None:
    """What the pod's status has to say of claims before it is bound; None: it says that.

    A claim of an earlier plan is taken back. What others wrote about claims of theirs stays, if the
    plan has none: kube-scheduler writes so for pods that it has bound here.
    """
    told = pod.status.extended_resource_claim_status
    if wanted is not None:
        should = pod_claim_status(wanted, plan.holdings, plan.origins)
        if told == should:
            return None
        said = msgspec.to_builtins(should)
    elif told is not None and told.resource_claim_name == claim_name(pod):
        said = None
    else:
        return None
    meta = {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version}
    return {"metadata": meta, "status": {"extendedResourceClaimStatus": said}}


def binding_of(plan: BindingPlan, version: str) -> Mapping[str, Any]:
    """The one write that binds and annotates, if the pod is still this one in this version.

    The API server copies a binding's annotations to the pod, and takes its uid and version for
    conditions.
    """
    meta = plan.pod.metadata
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
            "resourceVersion": version,
            "annotations": notes_of(plan),
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": plan.node},
    }
