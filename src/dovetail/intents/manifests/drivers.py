"""Device classes in the words of DRA drivers, for the claims that pods of a cluster ask with.

A class reads what a driver publishes by its plain name (`memory`); the API server has it in the
domain of that driver (`gpu.example.com/memory`), and a claim that looks elsewhere is never served.
So a class that was chosen devices by becomes one that asks each of their drivers. Placements of the
HPA controller are translated with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from dovetail.core.device import RESERVED, Device
from dovetail.core.selectors.selector import Expression, Operator
from dovetail.devices.classes.documents import DeviceClass
from dovetail.devices.classes.dra.convention import DOMAIN, DRIVER

KIND, VENDOR = "Kind", "Vendor"
PUBLISHED_AS = {KIND: ("kind", "type"), VENDOR: ("vendor",)}
"""Own fields of a device, and the attributes of a driver that they come from."""


def asking_drivers(definition: DeviceClass, devices: Iterable[Device]) -> DeviceClass:
    """The class as it selects devices of the drivers of these. One of Dovetail's own driver is in
    the form that it publishes already."""
    chosen = {each.properties[DRIVER]: each for each in devices if DRIVER in each.properties}
    foreign = {driver: chosen[driver] for driver in sorted(chosen) if driver != DOMAIN}
    if not foreign:
        return definition
    branches = tuple(
        (Expression(DRIVER, Operator.IN, (driver,)), *(_asked(each, driver, device) for each in of))
        for driver, device in foreign.items()
        for of in definition.selector or ((),)
    )
    own = tuple(definition.selector) if DOMAIN in chosen else ()
    return msgspec.structs.replace(definition, selector=(*branches, *own))


def _asked(expression: Expression, driver: str, device: Device) -> Expression:
    key = next(_keys(expression.key, driver, device), expression.key)
    return msgspec.structs.replace(expression, key=key)


def _keys(key: str, driver: str, device: Device) -> Iterator[str]:
    """Where the driver has it; nothing: it has it nowhere else."""
    if key in PUBLISHED_AS:
        for name in PUBLISHED_AS[key]:
            if f"{driver}/{name}" in device.properties:
                yield f"{driver}/{name}"
        if key == KIND and device.kind == driver:
            yield DRIVER
    elif key not in RESERVED and key != DRIVER and "/" not in key:
        yield f"{driver}/{key}"
