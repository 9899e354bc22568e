"""Device inventory: what devices nodes have, who holds them, and where requests can be met.

The scheduler, the extender and the status of device classes each keep one. It is composed of

    classes       the device classes, each on a column of the counts
    counts        units of each class on each node, all and free (with the nodes' devices)
    allocations   who holds which devices, in the order in which they came
    fit cache     what requests cost on a node, solved once per state of a node

Counts decide where requests can be met, for all nodes at once, wherever they can. Where classes
overlap, ask for a single device or are nested, the solver decides, once for all nodes in the same
state. Nothing depends on the order of events, but who comes first where too little is there for
all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.core.columns import Amounts
from dovetail.core.device import Device
from dovetail.core.rows import Rows
from dovetail.core.selectors.selector import compile_selector
from dovetail.devices.allocation import shortage_text
from dovetail.devices.allocation.allocations import DeviceAllocations, NodeHoldings
from dovetail.devices.allocation.choose import DeviceChooser
from dovetail.devices.allocation.class_columns import ClassColumns
from dovetail.devices.allocation.class_counts import ClassCounts
from dovetail.devices.allocation.fit_cache import FitCache
from dovetail.devices.allocation.nested import is_searched_for
from dovetail.devices.allocation.node_devices import NodeDevices
from dovetail.devices.allocation.request import (
    ClassStatus,
    DeviceHolding,
    DeviceRequest,
    HoldingConflict,
    units_by_class,
)
from dovetail.devices.allocation.solver.search import MOST_STEPS, SearchGivenUp
from dovetail.devices.allocation.strategies import (
    Strategy,
    Worth,
    scores_by_cost,
    scores_by_units_left,
    worth_by,
)
from dovetail.devices.classes.documents import DeviceClass


class DeviceInventory:
    def __init__(self, rows: Rows, *, most_steps: int = MOST_STEPS) -> None:
        """Rows are shared with other tables; the inventory never gives one back.

        `most_steps`: what the solver may take for one node.
        """
        self._rows, self._most_steps = rows, most_steps
        self._classes = ClassColumns()
        self._counts = ClassCounts(rows, self._classes)
        self._allocations = DeviceAllocations()
        self._fit_cache = FitCache(rows, self._classes, self._counts, most_steps)
        self._reported: dict[str, tuple[int, int]] = {}
        """Units and free units."""
        self._worth: Worth = worth_by(())
        self._worth_version = -1

    # -- events

    def set_class(self, cls: DeviceClass) -> None:
        """A class that is there already is replaced."""
        if self._classes.get(cls.name) == cls:
            return
        selects = compile_selector(cls.selector)
        if cls.name in self._classes:
            self.drop_class(cls.name)
        column = self._classes.put(cls)
        self._counts.equivalence.set_class(column, selects)
        self._counts.classes_changed()

    def drop_class(self, name: str) -> None:
        """What was asked for by its name stays held."""
        if name in self._classes:
            self._counts.equivalence.drop_class(self._classes.column(name))
            self._classes.remove(name)
            self._reported.pop(name, None)
            self._counts.classes_changed()

    def set_node(self, node: str, devices: Sequence[Device]) -> None:
        """All devices the node has now. Raises BadDevices."""
        new = NodeDevices(node, devices)
        new.row = self._rows.row(node)
        known = self._counts.nodes.get(node)
        if known is not None and known.row == new.row and known.devices == new.devices:
            return
        self._counts.drop_node(node)
        for device in self._allocations.devices(node):
            new.set_held(device, self._allocations.units_claimed(node, device))
        self._counts.put_node(new)

    def drop_node(self, node: str) -> None:
        """Its devices are gone; their holders stay, in case they come back."""
        self._counts.drop_node(node)

    def hold(
        self, holder: str, node: str, holdings: Sequence[DeviceHolding]
    ) -> tuple[HoldingConflict, ...]:
        """All that the holder has, from now on; last in line unless it is as before."""
        if self._allocations.get(holder) != (node, tuple(holdings)):
            self.release(holder)
            self._allocations.put(holder, node, holdings)
            self._recount(node, holdings)
        devices = dict.fromkeys(each.device for each in holdings)
        return tuple(
            each
            for device in devices
            for each in self._allocations.conflicts(node, device, self._units(node, device))
            if each.holder == holder
        )

    def release(self, holder: str) -> None:
        held = self._allocations.remove(holder)
        if held is not None:
            self._recount(*held)

    def _recount(self, node: str, holdings: Iterable[DeviceHolding]) -> None:
        devices = self._counts.nodes.get(node)
        if devices is not None:
            for each in holdings:
                claimed = self._allocations.units_claimed(node, each.device)
                devices.set_held(each.device, claimed)
            self._counts.mark_stale(devices)

    # -- who holds what

    def holdings_of(self, holder: str) -> NodeHoldings | None:
        """What the holder is said to hold, and on which node."""
        return self._allocations.get(holder)

    def units_by_holder(self, node: str, device: str) -> dict[str, int]:
        """Together never more than the device has."""
        return self._allocations.units_granted(node, device, self._units(node, device))

    def conflicts(self) -> tuple[HoldingConflict, ...]:
        """Of all holders that do not get what they are said to hold, as things are now."""
        return tuple(
            each
            for node in self._allocations.nodes()
            for device in self._allocations.devices(node)
            for each in self._allocations.conflicts(node, device, self._units(node, device))
        )

    def _units(self, node: str, device: str) -> int | None:
        devices = self._counts.nodes.get(node)
        found = devices.find(device) if devices else None
        return found.units if found else None

    # -- what there is

    def status(self, name: str) -> ClassStatus:
        """Raises KeyError if there is no such class."""
        self._counts.settle()
        column, table = self._classes.column(name), self._counts.table
        units, free = table.total_units[column], table.total_free[column]
        return ClassStatus(int(units), int(units - free))

    def changed_classes(self) -> frozenset[str]:
        """Classes whose status is another than when this was asked last."""
        self._counts.settle()
        table = self._counts.table
        totals = list(zip(table.total_units.tolist(), table.total_free.tolist(), strict=True))
        now = {name: totals[self._classes.column(name)] for name in self._classes}
        found = frozenset(name for name, each in now.items() if self._reported.get(name) != each)
        self._reported = now
        return found

    def free(self, class_name: str) -> Amounts:
        """Units by row; of a class that is not there: none. Not to be kept: events change it."""
        self._counts.settle()
        if class_name not in self._classes:
            return np.zeros(len(self._rows), np.int64)
        column = self._classes.column(class_name)
        found = self._counts.table.free[column, : len(self._rows)]
        found.flags.writeable = False
        return found

    # -- where requests can be met, and by which devices

    def fits(
        self, requests: Sequence[DeviceRequest], strategy: Strategy = Strategy.FIRST_FIT
    ) -> NDArray[np.bool_]:
        """By row, whether `choose` finds devices there."""
        needs = units_by_class(requests)
        fit = self._has_units(needs)
        if not fit.any() or self._counts_decide(needs):
            return fit
        rows = np.flatnonzero(fit)
        # All strategies but one find an assignment wherever there is one.
        strict = strategy is Strategy.STRICT_FIRST_FIT
        decisive = strategy if strict else Strategy.FIRST_FIT
        costs = self._fit_cache.costs(rows, requests, decisive, self._current_worth())
        fit[rows] = np.isfinite(costs)
        return fit

    def _has_units(self, needs: dict[str, int]) -> NDArray[np.bool_]:
        """By row, whether there are units enough of each class by itself."""
        found = np.ones(len(self._rows), np.bool_)
        for name, count in needs.items():
            found &= self.free(name) >= count
        return found

    def _counts_decide(self, needs: dict[str, int]) -> bool:
        """Whether requests are met wherever there are units enough for each class by itself."""
        if any(is_searched_for(name, self._classes) for name in needs):
            return False
        if len(needs) <= 1:
            return True
        if any(self._classes[name].members for name in needs):
            return False
        equivalence = self._counts.equivalence
        return not equivalence.has_overlap(self._classes.column(name) for name in needs)

    def scores(self, requests: Sequence[DeviceRequest], strategy: Strategy) -> NDArray[np.float64]:
        """By row, how much the strategy likes it: 0 to 1, and of use only where requests fit."""
        needs = units_by_class(requests)
        if strategy is not Strategy.SCARCE_AWARE:
            left = np.zeros(len(self._rows), np.int64)
            for name, count in needs.items():
                left += self.free(name) - count
            return scores_by_units_left(left, strategy)
        scores = np.zeros(len(self._rows))
        rows = np.flatnonzero(self._has_units(needs))
        if needs and len(rows):
            costs = self._fit_cache.costs(rows, requests, strategy, self._current_worth())
            scores[rows] = scores_by_cost(costs)
        return scores

    def choose(
        self,
        node: str,
        requests: Sequence[DeviceRequest],
        strategy: Strategy = Strategy.FIRST_FIT,
    ) -> tuple[DeviceHolding, ...] | None:
        """Devices of the node for all requests together; None if none were found."""
        try:
            return self._solve(node, requests, strategy)
        except SearchGivenUp:
            return None

    def _solve(
        self, node: str, requests: Sequence[DeviceRequest], strategy: Strategy
    ) -> tuple[DeviceHolding, ...] | None:
        """None if there are no such devices. Raises SearchGivenUp."""
        self._counts.settle()
        known = self._counts.nodes.get(node)
        if known is None or self._short(known, units_by_class(requests)):
            return () if not requests else None
        mask = self._classes.mask_of_all(each.class_name for each in requests)
        devices, places = known.free_places(mask, self._counts.equivalence)
        chooser = DeviceChooser(requests, strategy, self._current_worth(), self._classes)
        chosen = chooser.choose(places, self._most_steps)
        if chosen is None:
            return None
        return tuple(
            DeviceHolding(
                devices[at].name, units, requests[number].class_name, requests[number].container
            )
            for at, number, units in chosen
        )

    def _short(self, devices: NodeDevices, needs: dict[str, int]) -> list[str]:
        """Classes that are not there, or of which the node has too few units free."""
        free = self._counts.table.free[:, devices.row]
        return [
            name
            for name, count in needs.items()
            if name not in self._classes or free[self._classes.column(name)] < count
        ]

    def _current_worth(self) -> Worth:
        if self._worth_version != self._counts.hardware_version:
            self._counts.settle()
            self._worth = worth_by(self._counts.table.total_units.tolist())
            self._worth_version = self._counts.hardware_version
        return self._worth

    # -- why they cannot

    def why_not(
        self,
        node: str,
        requests: Sequence[DeviceRequest],
        name_of: Callable[[str], str] = str,
        strategy: Strategy = Strategy.FIRST_FIT,
    ) -> str:
        """Why requests cannot be met there, in words; empty if they can. `name_of` a holder."""
        try:
            if self._solve(node, requests, strategy) is not None:
                return ""
        except SearchGivenUp:
            return shortage_text.search_given_up(requests)
        devices = self._counts.nodes.get(node)
        if devices is None:
            return f"node {node} has no devices"
        needs = units_by_class(requests)
        short = [
            self._shortage(devices, name, needs[name], name_of)
            for name in self._short(devices, needs)
        ]
        if short:
            return "; ".join(short)
        if strategy is Strategy.STRICT_FIRST_FIT and self.choose(node, requests) is not None:
            return shortage_text.strict_order(requests)
        return shortage_text.not_together(requests, self._classes)

    def _shortage(
        self, devices: NodeDevices, name: str, count: int, name_of: Callable[[str], str]
    ) -> str:
        if name not in self._classes:
            return f"there is no class {name}"
        if self._classes.leaves(name) is None:
            return f"class {name} has a member that does not exist, goes in a circle or too deep"
        column, row = self._classes.column(name), devices.row
        mask, listed = self._classes.mask(name), self._counts.equivalence.all
        holders = dict.fromkeys(
            holder
            for device, number in zip(devices.devices, devices.equivalence, strict=True)
            if listed[number].mask & mask
            for holder in self._allocations.queue(devices.node, device.name)
        )
        table = self._counts.table
        units, free = int(table.units[column, row]), int(table.free[column, row])
        return shortage_text.shortage(name, count, units, free, [name_of(each) for each in holders])
