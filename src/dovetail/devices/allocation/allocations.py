"""Allocations: who is said to hold which devices of a node, first come, first served.

The device inventory writes down what it is told, whether or not the device is there: nodes and pods
become known in any order, and a device that disappears and returns is still held. How much of it is
granted follows from the units the device has at the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dovetail.devices.allocation.request import DeviceHolding, HoldingConflict

NodeHoldings = tuple[str, tuple[DeviceHolding, ...]]
"""The node, and what is held there."""


class DeviceAllocations:
    def __init__(self) -> None:
        self._holdings: dict[str, NodeHoldings] = {}
        # Holders of a device in the order in which they came.
        self._queues: dict[str, dict[str, dict[str, int]]] = {}

    def get(self, holder: str) -> NodeHoldings | None:
        return self._holdings.get(holder)

    def put(self, holder: str, node: str, holdings: Sequence[DeviceHolding]) -> None:
        """The holder comes last in line; it must not hold anything yet."""
        self._holdings[holder] = (node, tuple(holdings))
        for each in holdings:
            queue = self._queues.setdefault(node, {}).setdefault(each.device, {})
            queue[holder] = queue.get(holder, 0) + each.units

    def remove(self, holder: str) -> NodeHoldings | None:
        held = self._holdings.pop(holder, None)
        if held is not None:
            node, holdings = held
            for device in {each.device for each in holdings}:
                del self._queues[node][device][holder]
                if not self._queues[node][device]:
                    del self._queues[node][device]
            if not self._queues.get(node, True):
                del self._queues[node]
        return held

    def units_claimed(self, node: str, device: str) -> int:
        """Units that all holders together are said to hold."""
        return sum(self.queue(node, device).values())

    def queue(self, node: str, device: str) -> Mapping[str, int]:
        """Units claimed by each holder, oldest first."""
        return self._queues.get(node, {}).get(device, {})

    def units_granted(self, node: str, device: str, units: int | None) -> dict[str, int]:
        """Units by holder, never more than there are; units None: the device is not there."""
        queue = self.queue(node, device)
        if units is None:
            return dict(queue)
        found: dict[str, int] = {}
        for holder, claimed in queue.items():
            found[holder] = min(claimed, units)
            units -= found[holder]
        return found

    def conflicts(self, node: str, device: str, units: int | None) -> Iterator[HoldingConflict]:
        """Of each holder that gets less than it claims."""
        queue = self.queue(node, device)
        before: list[str] = []
        for holder, granted in self.units_granted(node, device, units).items():
            if granted < queue[holder]:
                others = tuple(before)
                yield HoldingConflict(holder, node, device, queue[holder], granted, others)
            before.append(holder)

    def nodes(self) -> Iterable[str]:
        return self._queues

    def devices(self, node: str) -> Iterable[str]:
        """Those of the node that somebody is said to hold."""
        return self._queues.get(node, ())
