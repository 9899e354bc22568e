"""The problem that the device solver is given: places that have units, bundles that want them.

The inventory makes a place of each device that could be of use, and a bundle of each request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

Keys = tuple[str, ...]


class DevicePlace(msgspec.Struct, frozen=True, gc=False):
    """A device as far as the solver can tell: two of one equivalence class are the same to it."""

    equivalence: int
    mask: int
    """A bit for each class that selects it."""
    attributes: Mapping[str, str]
    free: int


class DeviceDemand(msgspec.Struct, frozen=True):
    """Units of devices that some class selects."""

    bit: int
    count: int


class Bundle(msgspec.Struct, frozen=True):
    """So many sets, each of which wants all of the demands."""

    count: int
    demands: tuple[DeviceDemand, ...]
    """Of one set."""
    parts: tuple[Bundle, ...] = ()
    """Of one set: bundles within it."""
    same: Keys | None = ()
    """The devices of one set have one value for each of these keys; None: they are one device."""


def units_of(bundle: Bundle) -> dict[int, int]:
    """Units that one set takes, by the bit of their class."""
    found: dict[int, int] = {}
    for each in bundle.demands:
        found[each.bit] = found.get(each.bit, 0) + each.count
    for part in bundle.parts:
        for bit, units in units_of(part).items():
            found[bit] = found.get(bit, 0) + units * part.count
    return found


def keys_of(bundle: Bundle) -> Iterator[Keys]:
    """All keys in which devices have to agree somewhere in it."""
    if bundle.same:
        yield bundle.same
    for part in bundle.parts:
        yield from keys_of(part)
