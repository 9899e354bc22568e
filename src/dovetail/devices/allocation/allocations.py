"""Holders: who is said to hold which devices, first come, first served.

What is said is kept whether or not the device is there: nodes and pods become known in any order,
and a device that disappears and returns is still held. How much of it is granted follows from the
units the device has at the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dovetail.devices.allocation.request import DeviceHolding, HoldingConflict

Held = tuple[str, tuple[DeviceHolding, ...]]
"""The node, and what is held there."""


class DeviceAllocations:
    def __init__(self) -> None:
        self._held: dict[str, Held] = {}
        # Holders of a device in the order in which they came.
        self._lines: dict[str, dict[str, dict[str, int]]] = {}

    def get(self, holder: str) -> Held | None:
        return self._held.get(holder)

    def put(self, holder: str, node: str, holdings: Sequence[DeviceHolding]) -> None:
        """The holder comes last in line; it must not hold anything yet."""
        self._held[holder] = (node, tuple(holdings))
        for each in holdings:
            line = self._lines.setdefault(node, {}).setdefault(each.device, {})
            line[holder] = line.get(holder, 0) + each.units

    def remove(self, holder: str) -> Held | None:
        held = self._held.pop(holder, None)
        if held is not None:
            node, holdings = held
            for device in {each.device for each in holdings}:
                del self._lines[node][device][holder]
                if not self._lines[node][device]:
                    del self._lines[node][device]
            if not self._lines.get(node, True):
                del self._lines[node]
        return held

    def wanted(self, node: str, device: str) -> int:
        """Units that all holders together are said to hold."""
        return sum(self.line(node, device).values())

    def line(self, node: str, device: str) -> Mapping[str, int]:
        """Units wanted by holder, oldest first."""
        return self._lines.get(node, {}).get(device, {})

    def granted(self, node: str, device: str, units: int | None) -> dict[str, int]:
        """Units by holder, never more than there are; units None: the device is not there."""
        line = self.line(node, device)
        if units is None:
            return dict(line)
        found: dict[str, int] = {}
        for holder, wanted in line.items():
            found[holder] = min(wanted, units)
            units -= found[holder]
        return found

    def conflicts(self, node: str, device: str, units: int | None) -> Iterator[HoldingConflict]:
        """Of each holder that gets less than it wants."""
        line = self.line(node, device)
        before: list[str] = []
        for holder, granted in self.granted(node, device, units).items():
            if granted < line[holder]:
                others = tuple(before)
                yield HoldingConflict(holder, node, device, line[holder], granted, others)
            before.append(holder)

    def nodes(self) -> Iterable[str]:
        return self._lines

    def devices(self, node: str) -> Iterable[str]:
        """Those of the node that somebody is said to hold."""
        return self._lines.get(node, ())
