"""Pod annotations: how the devices that a pod got are written on it, by its binding.

The scheduler writes them. One annotation is the truth, a document that `devices` reads and writes
(`devices/allocation_document.py`). Beside it stands an annotation per class and device, as the
specification has it, for whoever reads those; nothing here does.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

from dovetail.core.device import Origin
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.devices.allocation_document import ALLOCATION, write_allocation

RENDERED = "scheduler.alpha.kubernetes.io/"

LONGEST = 63
"""Characters of an annotation's name, after the slash."""

TAIL = 10
"""Digits of the hash that ends a name which would be too long, or no name at all."""

ANNOTATION_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?", re.ASCII)


def annotations_of(
    node: str, holdings: Iterable[DeviceHolding], origins: Mapping[str, Origin] | None = None
) -> dict[str, str]:
    """Everything to write on a pod that got these devices; `origins` by device."""
    held = tuple(holdings)
    units: dict[str, int] = {}
    for each in held:
        key = RENDERED + rendered_name(each.class_name, each.device)
        units[key] = units.get(key, 0) + each.units
    written = {key: str(count) for key, count in units.items()}
    return {ALLOCATION: write_allocation(node, held, origins), **written}


def rendered_name(class_name: str, device: str) -> str:
    """`resClass_<class>_<device>`; where that is no annotation's name, a hash ends it."""
    name = f"resClass_{class_name}_{device}"
    if len(name) <= LONGEST and ANNOTATION_NAME.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:TAIL]
    safe = re.sub(r"[^A-Za-z0-9_.-]", "-", name, flags=re.ASCII)
    return f"{safe[: LONGEST - TAIL - 1]}-{digest}"
