"""Lazy counts: units of each device class on each node, counted again only where something changed.

The device inventory marks the nodes that an event touches; whoever asks next has those rows counted
again. So a pod costs one row, a cold start all rows at once, and the order of events is of no
account.
"""

from __future__ import annotations

import numpy as np

from dovetail.core.columns import Amounts
from dovetail.core.rows import Rows
from dovetail.devices.allocation.class_columns import ClassColumns
from dovetail.devices.allocation.counts import CountTable, counts_of
from dovetail.devices.allocation.equivalence import EquivalenceClasses
from dovetail.devices.allocation.nested import most_units
from dovetail.devices.allocation.node_devices import NodeDevices, NodeState, places_of, state_of

MOST_ROWS_AT_ONCE = 1024
"""Rows counted in one go: bounds the memory that takes."""

SPARE_EQUIVALENCE_CLASSES = 1024
"""Equivalence classes that no device is in any more are forgotten when there are more classes than
twice the devices, and this."""

SPARE_NESTED_COUNTS = 4096
"""Counts of nested units are forgotten when they are more than four times the devices, and this."""


class ClassCounts:
    def __init__(self, rows: Rows, classes: ClassColumns) -> None:
        self.equivalence = EquivalenceClasses()
        self.nodes: dict[str, NodeDevices] = {}
        self.table = CountTable()
        self.recounted_at: Amounts = np.zeros(0, np.int64)
        """By row, which of all recounts was its last."""
        self.hardware_version = 0
        """Raised with each change of classes or devices."""
        self.equivalence_version = 0
        """Raised when equivalence classes, or which are selected, are not what they were."""
        self._rows, self._classes = rows, classes
        self._nested: dict[tuple[str, NodeState], int] = {}
        self._stale: dict[int, NodeDevices | None] = {}
        self._device_count = 0
        self._recounts = 0

    # -- events

    def classes_changed(self) -> None:
        self._stale.update({each.row: each for each in self.nodes.values()})
        self._nested.clear()
        self.hardware_version += 1
        self.equivalence_version += 1

    def put_node(self, devices: NodeDevices) -> None:
        """A node that is there already has to be dropped before."""
        self.nodes[devices.node] = devices
        self._stale[devices.row] = devices
        self._device_count += len(devices.devices)
        self.hardware_version += 1

    def drop_node(self, node: str) -> None:
        devices = self.nodes.pop(node, None)
        if devices is not None:
            # The row may be another node's by now.
            self._stale[devices.row] = self.nodes.get(self._rows.names[devices.row])
            self._device_count -= len(devices.devices)
            self.hardware_version += 1

    def mark_stale(self, devices: NodeDevices) -> None:
        self._stale[devices.row] = devices

    # -- counting again what was touched

    def settle(self) -> None:
        """Count the stale rows; before this the table and `recounted_at` are not to be read."""
        columns = len(self._classes.columns)
        self.table.make_room(columns, len(self._rows))
        lacking = len(self._rows) - len(self.recounted_at)
        if lacking > 0:
            self.recounted_at = np.append(self.recounted_at, np.zeros(lacking, np.int64))
        if not self._stale:
            return
        self._classify()
        gone = [row for row, devices in self._stale.items() if devices is None]
        if gone:
            self.table.clear(gone)
        nodes = [devices for devices in self._stale.values() if devices is not None]
        for start in range(0, len(nodes), MOST_ROWS_AT_ONCE):
            self._count(nodes[start : start + MOST_ROWS_AT_ONCE], columns)
        self._recounts += 1
        self.recounted_at[list(self._stale)] = self._recounts
        self._stale.clear()

    def _classify(self) -> None:
        """Devices of stale rows get their equivalence classes; those of all rows get them anew if
        device classes look at other keys now.

        Only here: which keys are looked at may change many times before anybody asks.
        """
        most = 2 * self._device_count + SPARE_EQUIVALENCE_CLASSES
        crowded = len(self.equivalence.all) > most
        if crowded or not self.equivalence.looks_at(self._classes.keys):
            self.equivalence.look_at(self._classes.keys)
            self.classes_changed()
        for devices in self._stale.values():
            if devices is not None:
                devices.classify(self.equivalence)

    def _count(self, nodes: list[NodeDevices], columns: int) -> None:
        units, free = counts_of(nodes, self.equivalence.selected[:columns])
        for name in self._classes.nested_names():
            column = self._classes.column(name)
            mask = self._classes.mask(name)
            for at, each in enumerate(nodes):
                free[column, at] = self._nested_units(name, mask, each.equivalence, each.free)
                # What is free was found; to find all there is may have been given up.
                found = self._nested_units(name, mask, each.equivalence, each.units)
                units[column, at] = max(found, free[column, at])
        self.table.put([each.row for each in nodes], units, free)

    def _nested_units(self, name: str, mask: int, numbers: list[int], units: list[int]) -> int:
        listed = self.equivalence.all
        selected = [at for at, number in enumerate(numbers) if listed[number].mask & mask]
        state = state_of([numbers[at] for at in selected], [units[at] for at in selected])
        found = self._nested.get((name, state))
        if found is None:
            if len(self._nested) > 4 * self._device_count + SPARE_NESTED_COUNTS:
                self._nested.clear()
            places = places_of(state, self.equivalence, mask)
            found = self._nested[name, state] = most_units(name, places, self._classes)
        return found
