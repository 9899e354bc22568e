"""Values of the device inventory: what is asked for, what is held, what was in the way."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class DeviceRequest(msgspec.Struct, frozen=True):
    """So many units of a class, for a container (or for the pod as a whole)."""

    class_name: str
    count: int
    container: str = ""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"{self.count} of class {self.class_name!r}: at least 1 is asked for")


def units_by_class(requests: Iterable[DeviceRequest]) -> dict[str, int]:
    """What all requests want together of each class."""
    found: dict[str, int] = {}
    for each in requests:
        found[each.class_name] = found.get(each.class_name, 0) + each.count
    return found


class DeviceHolding(msgspec.Struct, frozen=True):
    """Units of a device of a node, and the class by which they were asked for, if by any."""

    device: str
    units: int
    class_name: str = ""
    container: str = ""

    def __post_init__(self) -> None:
        if self.units < 1:
            raise ValueError(f"{self.units} units of device {self.device!r}: at least 1 is held")


class HoldingConflict(msgspec.Struct, frozen=True):
    """A holder that does not get all it is said to hold, since others have it already."""

    holder: str
    node: str
    device: str
    wanted: int
    granted: int
    others: tuple[str, ...]
    """Holders that came before it."""

    def __str__(self) -> str:
        who = ", ".join(self.others) or "nobody: the device has no more units"
        return (
            f"{self.holder} is said to hold {self.wanted} of device {self.device!r} of node"
            f" {self.node!r}, and {self.granted} are left; held by {who}"
        )


class ClassStatus(msgspec.Struct, frozen=True):
    """What there is of a class, and how much of that is held by whomever.

    A device counts for every class that selects it, so what is available of all classes together
    is more than there is.
    """

    allocatable: int = 0
    requested: int = 0

    @property
    def available(self) -> int:
        return self.allocatable - self.requested
