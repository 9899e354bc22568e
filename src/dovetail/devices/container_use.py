"""Container use: which of a pod's devices each of its containers uses, by Kubernetes' pod sum.

A pod holds devices container by container. Containers and sidecars use what they hold. Init
containers are over before those after them start, so they hold nothing that later containers have
use for: they use that, and only what goes beyond it is held for one of them. The writer of resource
claims and the node agent both ask here, so that a container finds the same devices by either way.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from dovetail.devices.allocation.request import DeviceHolding


class ContainerUse(msgspec.Struct, frozen=True):
    """A container of a pod, in the order in which they start."""

    name: str
    stays: bool
    """It runs until the pod ends: an ordinary container, or a sidecar."""
    units: Mapping[str, int]
    """By class: what it asks for."""


def uses(
    containers: Sequence[ContainerUse], holdings: Sequence[DeviceHolding]
) -> dict[str, tuple[DeviceHolding, ...]]:
    """By container: the units that it finds inside, each with the class it was asked by.

    An init container takes of each class what is held for itself first, then what the pod holds
    for other init containers, then for containers that start later, in their order. Sidecars that
    started before it keep theirs. The pod sum says that this is enough; where holdings are fewer
    than that, as in an annotation that somebody edited, it gets what there is.
    """
    found: dict[str, tuple[DeviceHolding, ...]] = {}
    for at, container in enumerate(containers):
        own = [each for each in holdings if each.container == container.name]
        if container.stays:
            found[container.name] = tuple(own)
            continue
        started = {each.name for each in containers[:at] if each.stays}
        passing = {each.name for each in containers if not each.stays}
        later = [each.name for each in containers[at + 1 :] if each.stays]
        order = {container.name: -2, **{name: at for at, name in enumerate(later)}}
        order |= dict.fromkeys(passing - {container.name}, -1)
        usable = sorted(
            (each for each in holdings if each.container not in started),
            key=lambda each: order.get(each.container, len(order)),
        )
        found[container.name] = tuple(
            taken
            for class_name, units in container.units.items()
            for taken in _take(usable, class_name, units, container.name)
        )
    return found


def _take(
    holdings: Sequence[DeviceHolding], class_name: str, units: int, container: str
) -> list[DeviceHolding]:
    """So many units of the class, from the first on."""
    taken: list[DeviceHolding] = []
    for each in holdings:
        if units and each.class_name == class_name:
            amount = min(units, each.units)
            taken.append(DeviceHolding(each.device, amount, class_name, container))
            units -= amount
    return taken
