"""Choice: which devices each container of a pod uses, by the allocation on the pod. Pure.

The source of class devices asks. Containers then request the devices of plugins as they request
CPUs, and say which of them are meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

import msgspec

from dovetail.core import quantity
from dovetail.core.device import PluginOrigin
from dovetail.core.errors import Malformed
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.devices.allocation_document import Allocation
from dovetail.devices.container_use import ContainerUse, uses
from dovetail.node.class_devices.names import PAGES, is_shared, requested_name
from dovetail.node.common.pods import Amounts, ContainerSpec, DeviceChoice, Pod
from dovetail.node.wire.resource_plugin import ContainerType
from dovetail.podfit.pod_sum import CLASS_PREFIX

MEMORY = "memory"

MOST_OPEN = 20_000
"""Units of a pool without IDs: device plugins list no more devices than that."""


class BadChoice(Malformed):
    """An allocation that no pod can have."""


def with_devices(pod: Pod, allocation: Allocation, names: Mapping[str, str]) -> Pod:
    """The pod, whose containers ask for their devices. Raises BadChoice.

    `names`: resources that are served by the plugin of another name.
    """
    lasting = [each for each in pod.containers if each.type is not ContainerType.EPHEMERAL]
    _check_origins(allocation.origins)
    holdings, origins = _one_by_one(allocation)
    used = uses([_use(each) for each in lasting], holdings)
    chosen = {
        name: tuple(_choice(each, origins[each.device]) for each in own if each.device in origins)
        for name, own in used.items()
    }
    _check({each.name: chosen[each.name] for each in lasting if _use(each).stays})
    return msgspec.structs.replace(
        pod,
        containers=tuple(
            _asking(each, chosen.get(each.name, ()), names) for each in pod.containers
        ),
    )


def _one_by_one(
    allocation: Allocation,
) -> tuple[list[DeviceHolding], dict[str, PluginOrigin]]:
    """The holdings, in which each unit of a pool without IDs is a device of its own."""
    origins = dict(allocation.origins)
    holdings = []
    for each in allocation.holdings:
        origin = origins.get(each.device)
        if origin is None or origin.id:
            holdings.append(each)
            continue
        if each.units > MOST_OPEN:
            raise BadChoice(f"{each.units} units of {each.device} are more than a plugin can have")
        for unit in range(each.units):
            name = f"{each.container}/{each.device}/{unit}"
            origins[name] = origin
            holdings.append(DeviceHolding(name, 1, each.class_name, each.container))
    return holdings, origins


def _use(container: ContainerSpec) -> ContainerUse:
    units = {
        name.removeprefix(CLASS_PREFIX): int(amount)
        for name, amount in sorted(container.requests.items())
        if name.startswith(CLASS_PREFIX)
    }
    stays = container.restartable or container.type is not ContainerType.INIT
    return ContainerUse(container.name, stays, units)


def _choice(held: DeviceHolding, origin: PluginOrigin) -> DeviceChoice:
    if origin.id:
        return DeviceChoice(resource=origin.resource, id=origin.id, units=held.units)
    return DeviceChoice(resource=origin.resource, place=held.device)


def _check_origins(origins: Mapping[str, PluginOrigin]) -> None:
    """Each device is another one of its plugin."""
    names: dict[PluginOrigin, str] = {}
    for device, origin in origins.items():
        other = names.setdefault(origin, device)
        if origin.id and other != device:
            raise BadChoice(f"{other} and {device} are both {origin.resource} {origin.id}")


def _check(chosen: Mapping[str, tuple[DeviceChoice, ...]]) -> None:
    """Of containers that run side by side each has devices of its own."""
    owners: dict[tuple[str, str], str] = {}
    for container, own in chosen.items():
        for each in own:
            owner = owners.setdefault((each.resource, each.key), container)
            if owner != container and not is_shared(each.resource):
                raise BadChoice(
                    f"containers {owner} and {container} both hold {each.resource} {each.key}"
                )


def _asking(
    container: ContainerSpec, chosen: Iterable[DeviceChoice], names: Mapping[str, str]
) -> ContainerSpec:
    """With requests for the devices, under the names that it uses already, if any."""
    asked = {names.get(name, name): name for name in container.requests}
    found: dict[str, tuple[DeviceChoice, ...]] = {}
    for each in chosen:
        name = requested_name(each.resource)
        name = asked.get(names.get(name, name), name)
        found[name] = (*found.get(name, ()), each)
    requests: dict[str, Fraction] = dict(container.requests)
    for name, own in found.items():
        requests |= _amounts(name, own, requests)
    return msgspec.structs.replace(container, requests=requests, chosen=found)


def _amounts(name: str, chosen: tuple[DeviceChoice, ...], requests: Amounts) -> Amounts:
    if not is_shared(chosen[0].resource):
        # Of NICs, who asks for some himself asks for bandwidth.
        return {name: requests.get(name) or Fraction(len(chosen))}
    pages = sum(each.units for each in chosen)
    size = page_size(chosen[0].resource)
    # Its plugin counts pages together with memory. What the container asks for itself is the same
    # pages: the kubelet needs to know of them, too.
    return {
        name: max(requests.get(name, Fraction(0)), pages * size),
        MEMORY: requests.get(MEMORY) or Fraction(1),
    }


def page_size(resource: str) -> Fraction:
    """Of `hugepages-2Mi`, in bytes. Raises BadChoice."""
    try:
        return quantity.parse(resource.removeprefix(PAGES))
    except quantity.BadQuantity as bad:
        raise BadChoice(f"{resource} is no size of huge pages: {bad}") from None
