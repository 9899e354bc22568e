"""Finishes what somebody began: from a claim in the ledger to the plan that it was made for."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from dovetail.core.rows import Rows
from dovetail.devices.allocation.inventory import DeviceInventory
from dovetail.devices.allocation.request import DeviceHolding, DeviceRequest
from dovetail.kube.scheduler.device_holders import Amounts
from dovetail.kube.scheduler.state import ClusterState


def holdings_for(
    state: ClusterState, asks: Sequence[DeviceRequest], node: str, claimed: Amounts
) -> tuple[DeviceHolding, ...] | None:
    """Which of the claimed devices are for which ask; None if they are not for these asks.

    The ledger does not say what devices were asked by. They are dealt out as if the node had
    nothing else, so that everybody who adopts the claim deals them out alike.
    """
    there = {each.name: each for each in state.devices.get(node, ())}
    if claimed.keys() - there.keys():
        return None
    # Claimed is claimed, whatever the device's health is now: its pod will be told.
    devices = [
        replace(there[name], units=units, healthy=True) for name, units in sorted(claimed.items())
    ]
    book = DeviceInventory(Rows())
    for each in state.classes.values():
        book.set_class(each)
    book.set_node(node, devices)
    found = book.choose(node, asks)
    if found is None or sum(each.units for each in found) != sum(claimed.values()):
        return None
    return found
