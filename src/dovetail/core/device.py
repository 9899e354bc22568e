"""A device of a node: something with properties that is handed out in whole units."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

HEALTHY = "Healthy"
UNHEALTHY = "Unhealthy"

RESERVED = ("Kind", "Vendor", "Name", "Health")
"""Keys that stand for a device's own fields; no property may be called so."""

MOST_UNITS = 2**31 - 1
"""Of one device: sums over a fleet then stay far below where whole numbers of arrays end."""


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One instance (a GPU: one unit) or a named pool (hugepages: many)."""

    node: str
    name: str
    kind: str
    vendor: str = ""
    units: int = 1
    healthy: bool = True
    properties: Mapping[str, str] = {}

    @property
    def attributes(self) -> dict[str, str]:
        """What selectors look at: properties, and the own fields by their reserved keys."""
        return {
            **self.properties,
            "Kind": self.kind,
            "Vendor": self.vendor,
            "Name": self.name,
            "Health": HEALTHY if self.healthy else UNHEALTHY,
        }
