"""Accounts: what there is of each class, and who holds it.

Every event (a class, a node, a holder comes, changes or goes) only notes which nodes it touches.
Whoever asks next has those rows counted again, so a pod costs one row, and a cold start all rows at
once. Nothing depends on the order of events, but who comes first where too little is there for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dovetail.core.device import Device
from dovetail.core.rows import Rows
from dovetail.core.selectors.selector import compiled
from dovetail.devices.allocation.allocations import DeviceAllocations, Held
from dovetail.devices.allocation.arrays import Ints
from dovetail.devices.allocation.catalogue import Catalogue
from dovetail.devices.allocation.counts import Counts, counted
from dovetail.devices.allocation.equivalence import EquivalenceClasses
from dovetail.devices.allocation.nested import formable
from dovetail.devices.allocation.node_devices import NodeDevices, Pairs, pairs, places_of
from dovetail.devices.allocation.request import ClassStatus, DeviceHolding, HoldingConflict
from dovetail.devices.classes.documents import DeviceClass

AT_ONCE = 1024
"""Rows counted in one go: bounds the memory that takes."""

SHAPES_KEPT = 1024
"""Shapes that are gone are forgotten when they are more than twice the devices, and this."""

FORMED_KEPT = 4096
"""Counts of nested units are forgotten when they are more than four times the devices, and this."""


class Accounts:
    def __init__(self, rows: Rows) -> None:
        """Rows are shared with other tables; the book never gives one back."""
        self._rows = rows
        self._catalogue = Catalogue()
        self._shapes = EquivalenceClasses()
        self._holders = DeviceAllocations()
        self._stocks: dict[str, NodeDevices] = {}
        self._counts = Counts()
        self._formed: dict[tuple[str, Pairs], int] = {}
        self._stale: dict[int, NodeDevices | None] = {}
        self._devices = 0
        self._reported: dict[str, tuple[int, int]] = {}
        """Units and free units."""
        self._recounts = 0
        self._recounted_at: Ints = np.zeros(0, np.int64)
        """By row, which of all recounts was its last."""
        self._hardware = 0
        """Raised with each change of classes or devices."""
        self._shaping = 0
        """Raised when shapes or their masks are no longer what they were."""

    # -- events

    def set_class(self, cls: DeviceClass) -> None:
        """A class that is there already is replaced."""
        if self._catalogue.get(cls.name) == cls:
            return
        selects = compiled(cls.selector)
        if cls.name in self._catalogue:
            self.drop_class(cls.name)
        column = self._catalogue.put(cls)
        self._shapes.set_class(column, selects)
        self._classes_changed()

    def drop_class(self, name: str) -> None:
        """What was asked for by its name stays held."""
        if name in self._catalogue:
            self._shapes.drop_class(self._catalogue.column(name))
            self._catalogue.remove(name)
            self._reported.pop(name, None)
            self._classes_changed()

    def _classes_changed(self) -> None:
        self._stale.update({each.row: each for each in self._stocks.values()})
        self._formed.clear()
        self._hardware += 1
        self._shaping += 1

    def set_node(self, node: str, devices: Sequence[Device]) -> None:
        """All devices the node has now. Raises BadDevices."""
        stock = NodeDevices(node, devices)
        stock.row = self._rows.row(node)
        known = self._stocks.get(node)
        if known is not None and known.row == stock.row and known.devices == stock.devices:
            return
        self.drop_node(node)
        stock.recount_all(self._holders)
        if self._shapes.looks_at(self._catalogue.keys):
            stock.reshape(self._shapes)
        self._stocks[node] = stock
        self._stale[stock.row] = stock
        self._devices += len(devices)
        self._hardware += 1

    def drop_node(self, node: str) -> None:
        """Its devices are gone; their holders stay, in case they come back."""
        stock = self._stocks.pop(node, None)
        if stock is not None:
            # The row may be another node's by now.
            self._stale[stock.row] = self._stocks.get(self._rows.names[stock.row])
            self._devices -= len(stock.devices)
            self._hardware += 1

    def hold(
        self, holder: str, node: str, holdings: Sequence[DeviceHolding]
    ) -> tuple[HoldingConflict, ...]:
        """All that the holder has, from now on; last in line unless it is as before."""
        if self._holders.get(holder) != (node, tuple(holdings)):
            self.release(holder)
            self._holders.put(holder, node, holdings)
            self._recount(node, holdings)
        devices = dict.fromkeys(each.device for each in holdings)
        return tuple(
            each
            for device in devices
            for each in self._holders.conflicts(node, device, self._units(node, device))
            if each.holder == holder
        )

    def release(self, holder: str) -> None:
        held = self._holders.remove(holder)
        if held is not None:
            self._recount(*held)

    def _recount(self, node: str, holdings: Iterable[DeviceHolding]) -> None:
        stock = self._stocks.get(node)
        if stock is not None:
            for each in holdings:
                stock.recount(each.device, self._holders.wanted(node, each.device))
            self._stale[stock.row] = stock

    # -- who holds what

    def holder(self, holder: str) -> Held | None:
        """What the holder is said to hold, and on which node."""
        return self._holders.get(holder)

    def held(self, node: str, device: str) -> dict[str, int]:
        """Units by holder; together never more than the device has."""
        return self._holders.granted(node, device, self._units(node, device))

    def conflicts(self) -> tuple[HoldingConflict, ...]:
        """Of all holders that do not get what they are said to hold, as things are now."""
        return tuple(
            each
            for node in self._holders.nodes()
            for device in self._holders.devices(node)
            for each in self._holders.conflicts(node, device, self._units(node, device))
        )

    def _units(self, node: str, device: str) -> int | None:
        stock = self._stocks.get(node)
        found = stock.find(device) if stock else None
        return found.units if found else None

    # -- what there is

    def status(self, name: str) -> ClassStatus:
        """Raises KeyError if there is no such class."""
        self._settle()
        column = self._catalogue.column(name)
        units, free = self._counts.total_units[column], self._counts.total_free[column]
        return ClassStatus(int(units), int(units - free))

    def changed(self) -> frozenset[str]:
        """Classes whose status is another than when this was asked last."""
        self._settle()
        totals = list(
            zip(self._counts.total_units.tolist(), self._counts.total_free.tolist(), strict=True)
        )
        now = {name: totals[self._catalogue.column(name)] for name in self._catalogue}
        found = frozenset(name for name, each in now.items() if self._reported.get(name) != each)
        self._reported = now
        return found

    def free(self, class_name: str) -> Ints:
        """Units by row; of a class that is not there: none. Not to be kept: it follows the book."""
        self._settle()
        if class_name not in self._catalogue:
            return np.zeros(len(self._rows), np.int64)
        found = self._counts.free[self._catalogue.column(class_name), : len(self._rows)]
        found.flags.writeable = False
        return found

    # -- counting again what was touched

    def _settle(self) -> None:
        columns = len(self._catalogue.columns)
        self._counts.make_room(columns, len(self._rows))
        lacking = len(self._rows) - len(self._recounted_at)
        if lacking > 0:
            self._recounted_at = np.append(self._recounted_at, np.zeros(lacking, np.int64))
        if not self._stale:
            return
        self._reshape()
        gone = [row for row, stock in self._stale.items() if stock is None]
        if gone:
            self._counts.clear(gone)
        stocks = [stock for stock in self._stale.values() if stock is not None]
        for start in range(0, len(stocks), AT_ONCE):
            self._count(stocks[start : start + AT_ONCE], columns)
        self._recounts += 1
        self._recounted_at[list(self._stale)] = self._recounts
        self._stale.clear()

    def _reshape(self) -> None:
        """Devices get their shapes anew if classes look at other keys than they did."""
        crowded = len(self._shapes.all) > 2 * self._devices + SHAPES_KEPT
        if crowded or not self._shapes.looks_at(self._catalogue.keys):
            self._shapes.look_at(self._catalogue.keys)
            for each in self._stocks.values():
                each.reshape(self._shapes)
            self._classes_changed()

    def _count(self, stocks: list[NodeDevices], columns: int) -> None:
        units, free = counted(stocks, self._shapes.selected[:columns])
        for name in self._catalogue.nested():
            column = self._catalogue.column(name)
            mask = self._catalogue.mask(name)
            for at, each in enumerate(stocks):
                free[column, at] = self._formable(name, mask, each.shapes, each.free)
                # What is free was found; to find all there is may have been given up.
                formed = self._formable(name, mask, each.shapes, each.units)
                units[column, at] = max(formed, free[column, at])
        self._counts.put([each.row for each in stocks], units, free)

    def _formable(self, name: str, mask: int, shapes: list[int], units: list[int]) -> int:
        listed = self._shapes.all
        chosen = [at for at, shape in enumerate(shapes) if listed[shape].mask & mask]
        state = pairs([shapes[at] for at in chosen], [units[at] for at in chosen])
        found = self._formed.get((name, state))
        if found is None:
            if len(self._formed) > 4 * self._devices + FORMED_KEPT:
                self._formed.clear()
            places = places_of(state, self._shapes, mask)
            found = self._formed[name, state] = formable(name, places, self._catalogue)
        return found
