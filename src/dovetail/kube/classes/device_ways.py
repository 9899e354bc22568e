"""Ways of devices into containers, in words: for events of pods, and for `dovetail explain pod`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dovetail.core.device import DraOrigin, Origin, PluginOrigin
from dovetail.devices.allocation.request import DeviceHolding

NOBODY = "which nobody brings into containers"


def way_of(origin: Origin | None, claim: str = "") -> str:
    """How a device comes into containers; `claim`: the name of the pod's ResourceClaim."""
    match origin:
        case PluginOrigin(resource=resource) if "/" in resource:
            return f"by device plugin {resource}"
        case PluginOrigin(resource=resource):
            return f"by the node agent's plugin for {resource}"
        case DraOrigin(driver=driver):
            return (
                f"by ResourceClaim {claim} of driver {driver}" if claim else f"by driver {driver}"
            )
        case _:
            return NOBODY


def chain_text(
    holdings: Iterable[DeviceHolding], origins: Mapping[str, Origin], claim: str = ""
) -> str:
    """`gpu -> g0, g1 by device plugin vendor.com/gpu; nic -> eth0, which nobody ...`."""
    devices: dict[tuple[str, str], dict[str, int]] = {}
    for each in holdings:
        way = way_of(origins.get(each.device), claim)
        listed = devices.setdefault((each.class_name, way), {})
        listed[each.device] = listed.get(each.device, 0) + each.units
    return "; ".join(
        f"{name} -> {_listed(units)}{',' if way == NOBODY else ''} {way}"
        for (name, way), units in devices.items()
    )


def _listed(units: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({count})" if count > 1 else name for name, count in units.items())
