"""ResourceClaims as far as the mirror reads them: which devices are allocated, and to whom."""

from __future__ import annotations

from dovetail.kube.classes.resource_claims import ResourceClaim
from dovetail.kube.classes.slices import device_name
from dovetail.ledger.intents.observed import DeviceUse


def uses_of(claim: ResourceClaim) -> tuple[DeviceUse, ...]:
    """A claim that several pods share is the first one's; of one that is not reserved for any,
    nobody knows whose it will be, but its devices are taken."""
    allocation = claim.status.allocation
    if allocation is None:
        return ()
    pods = sorted(each.uid for each in claim.status.reserved_for if each.resource == "pods")
    return tuple(
        DeviceUse(device_name(each.driver, each.pool, each.device), pods[0] if pods else "")
        for each in allocation.devices.results
        if not each.admin_access
    )
