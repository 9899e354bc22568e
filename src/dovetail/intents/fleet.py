"""What registered clusters have, as the mirror or a posted snapshot told it last; with its age.

`service/intents/fleet.py` keeps one up to date from the ledger. The HPA controller packs on it, so
runs over the same fleet are repeatable.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from dovetail.core.device import Device
from dovetail.devices.classes.documents import DeviceClass
from dovetail.intents.names import ClusterName
from dovetail.podfit.objects import Node, Pod


class ClusterHealth(StrEnum):
    READY = "ready"
    STALE = "stale"
    """It does not answer; what is known of it is used all the same, by its policy."""
    AWAY = "away"
    """It does not answer, and is left out."""
    UNKNOWN = "unknown"
    """Nothing was ever heard of it."""


class ClusterNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node, who is on it, and what the ledger holds of it."""

    node: Node
    pods: tuple[Pod, ...] = ()
    """That have not ended; those of our own deployments included."""
    devices: tuple[Device, ...] = ()
    devices_by_claim: bool = False
    """They come from ResourceSlices, and are handed out by ResourceClaims."""
    held_devices: frozenset[str] = frozenset()
    """Names of those that somebody holds."""
    held: Mapping[str, int] = {}
    """By resource, in whole units as podfit counts (thousandths of a CPU, bytes, pieces): all that
    the ledger holds on the node. What pods use is in it."""
    pins_cpus: bool | None = None
    """Whether CPUs can be exclusive there: kubelet's static policy, or our agent. None: untold."""


class ClusterInventory(msgspec.Struct, frozen=True, kw_only=True):
    name: ClusterName
    nodes: tuple[ClusterNode, ...] = ()
    labels: frozenset[str] = frozenset()
    """Of the cluster, as its provider set them."""
    classes: Mapping[str, DeviceClass] = {}
    state: ClusterHealth = ClusterHealth.READY
    why: str = ""
    """Of a state that is not READY."""
    observed_at: int = 0
    """When what is told here was true, in Unix seconds."""
    version: int = 0
    """Another one whenever anything but `observed_at` changed."""


class FleetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    clusters: Mapping[ClusterName, ClusterInventory]
    """In the order of their names."""
    taken_at: int
