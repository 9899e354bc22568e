"""What the book should answer, by trying everything. Slow, and as literal as can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from dovetail.core.device import Device
from dovetail.core.selectors.selector import compile_selector
from dovetail.devices.allocation.request import DeviceHolding, DeviceRequest
from dovetail.devices.classes.documents import DeviceClass

Classes = Mapping[str, DeviceClass]
Used = tuple[str, ...]
"""The device of each unit."""

Unit = tuple[str, tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]]
"""A class that selects devices; the requests that are for a single device it is part of; and the
nested units it is part of, with the keys in which their devices agree."""


def wanted(requests: Sequence[DeviceRequest], classes: Classes) -> list[Unit]:
    """Unit by unit, all that has to be found."""
    found: list[Unit] = []

    def add(
        name: str, count: int, within: tuple[tuple[str, tuple[str, ...]], ...], path: str
    ) -> None:
        cls = classes[name]
        if not cls.members:
            one = (path,) if cls.single_device else ()
            found.extend([(name, one, within)] * count)
            return
        for unit in range(count):
            here = f"{path}/{name}{unit}"
            for member in cls.members:
                add(member.name, member.count, (*within, (here, cls.same)), f"{here}/{member.name}")

    for number, ask in enumerate(requests):
        add(ask.class_name, ask.count, (), f"ask{number}")
    return found


def assignments(
    requests: Sequence[DeviceRequest],
    devices: Sequence[Device],
    free: Mapping[str, int],
    classes: Classes,
) -> Iterator[Used]:
    """Every way to find a device for each unit."""
    units = wanted(requests, classes)
    selects: dict[str, Callable[[Mapping[str, str]], bool]] = {
        name: compile_selector(cls.selector) for name, cls in classes.items()
    }

    def go(used: Used, left: dict[str, int], agreed: dict[str, object]) -> Iterator[Used]:
        if len(used) == len(units):
            yield used
            return
        name, singles, groups = units[len(used)]
        for device in devices:
            attributes = device.attributes
            if not left[device.name] or not selects[name](attributes):
                continue
            if any(key not in attributes for _, keys in groups for key in keys):
                continue
            demands: dict[str, object] = dict.fromkeys(singles, device.name) | {
                unit: tuple(attributes[key] for key in keys) for unit, keys in groups
            }
            if all(agreed.get(key, value) == value for key, value in demands.items()):
                rest = {**left, device.name: left[device.name] - 1}
                yield from go((*used, device.name), rest, {**agreed, **demands})

    if len(units) <= sum(free.values()):
        yield from go((), dict(free), {})


def can_be_met(
    requests: Sequence[DeviceRequest],
    devices: Sequence[Device],
    free: Mapping[str, int],
    classes: Classes,
) -> bool:
    return next(assignments(requests, devices, free, classes), None) is not None


def formable(
    name: str, devices: Sequence[Device], free: Mapping[str, int], classes: Classes
) -> int:
    count = 0
    while can_be_met([DeviceRequest(name, count + 1)], devices, free, classes):
        count += 1
    return count


def is_met(
    requests: Sequence[DeviceRequest],
    holdings: Sequence[DeviceHolding],
    devices: Sequence[Device],
    classes: Classes,
) -> bool:
    """Whether these are devices for each ask, no more and no less."""
    for number, ask in enumerate(requests):
        container = str(number)
        mine = [each for each in holdings if each.container == container]
        if any(each.class_name != ask.class_name for each in mine):
            return False
        held = {device.name: 0 for device in devices}
        for each in mine:
            held[each.device] += each.units
        if sum(held.values()) != len(wanted([ask], classes)):
            return False
        if not can_be_met([ask], devices, held, classes):
            return False
    return True
