"""Grants: what an app gets on one cluster, and so what its objects have to say there.

The placement of the HPA controller is translated to these, one `AppGrants` for each app and
cluster, and `editing.edited` is given them. By parts of a placement:

* an optional requirement that was granted: its name in `ConsumerGrant.optional`. Mandatory ones
  are granted always; what is not granted is not written.
* the value of the fabric that a gang was put on (`within_one`): `ConsumerGrant.within_one`.
* devices: for each DeviceRequirement that was granted, `ConsumerGrant.devices` says by its name
  how pods of this cluster ask for them.
* a workload that is tied to nodes, whether it has consumers or not: a `WorkloadPin`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from dovetail.devices.classes.documents import DeviceClass


class DeviceAccess(StrEnum):
    """How a pod asks for devices."""

    CLASS = "class"
    """`resourceclass.dovetail.dev/NAME` among the resources of a container, for Dovetail's
    scheduler or its extender on that cluster."""
    CLAIM = "claim"
    """A ResourceClaim, for devices that ResourceSlices tell of."""
    RESOURCE = "resource"
    """The extended resource of a device plugin. Which of its nodes have devices of the right kind
    is not in it: the workload needs a pin or a label beside it."""


class DeviceSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where the devices of one requirement come from on a cluster."""

    access: DeviceAccess
    name: str = ""
    """Of the ResourceClass, the DeviceClass or the extended resource there. Empty, of a class: the
    cluster has none for it, and one is written beside the app's objects, from `definition`."""
    definition: DeviceClass | None = None
    """What the devices are like: the class of the requirement, as that cluster or the intent
    defines it. A claim needs it even if `name` is there; then it narrows that DeviceClass."""
    scheduler: str = ""
    """That pods have to name to get devices of a class; empty: whichever the chart names."""


class ConsumerGrant(msgspec.Struct, frozen=True, kw_only=True):
    """What one consumer gets. A consumer without one gets its mandatory requirements."""

    intent: str
    consumer: str
    """Names are unique within the intent."""
    optional: frozenset[str] = frozenset()
    """Names of its optional requirements that were granted."""
    within_one: str = ""
    """The value of its `within_one` label; empty if it has no such label."""
    devices: Mapping[str, DeviceSource] = {}
    """By name of the requirement."""


class WorkloadPin(msgspec.Struct, frozen=True, kw_only=True):
    """A workload whose pods stay on nodes by name."""

    object_index: int
    """Of the workload among the app's objects (`AppWorkload.object_index`)."""
    nodes: tuple[str, ...]
    why: str


class AppGrants(msgspec.Struct, frozen=True, kw_only=True):
    """All that one app gets on one cluster."""

    deployment: str
    """The id, which becomes a label of every object and pod."""
    consumers: tuple[ConsumerGrant, ...] = ()
    pins: tuple[WorkloadPin, ...] = ()
