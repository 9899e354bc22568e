"""Typical requests in arrays: which of them still run on a tree, and what they could use there.

The policies `fragmentation` and `scarcity`, and the simulator, measure trees by it.

A request is broken up into needs: so many pieces, or whole rows, of one kind (amounts and traits).
A tree serves a request if it meets each of its needs by itself. How needs lie to each other, and
conditions on roots and aggregates, are not looked at: this is a measure, not a search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import reduce
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from dovetail.core.columns import Mask
from dovetail.engine.inventories import NEVER
from dovetail.engine.rank.cache import (
    cache_entry,
    entry_in_steps,
    layout_version,
    names_version,
)
from dovetail.engine.rank.needs import (
    NeedKind,
    amounts_taken,
    classes_of,
    is_plain,
    needs_of,
    trait_masks,
)
from dovetail.engine.rank.policies.policy import Numbers
from dovetail.engine.rank.trees import Trees, device_units
from dovetail.engine.rank.typical import Typical
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.work import Work, finished

Grid = NDArray[np.int64]
Cube = NDArray[np.bool_]
Lines = slice | NDArray[np.int64]
Union = tuple[int, ...]
"""Numbers of kinds, of which a row has to serve one."""

ORDINARY = frozenset({"VCPU", "PCPU", "MEMORY_MB", "DISK_GB"})
"""What nearly every request takes: no devices, even if a group of their own asks for them."""


def measured_classes(typical: Typical) -> list[str]:
    """The classes that are measured: those asked for in groups of their own, else all."""
    asked = [
        (group.suffix, name)
        for request, _ in typical.requests
        for group in request.groups
        for name in group.resources
    ]
    own = {name for suffix, name in asked if suffix and name not in ORDINARY}
    return sorted(own or {name for _, name in asked})


class TypicalDemand:
    """The typical requests of a ranking, for the trees of one snapshot."""

    def __init__(self, snapshot: Snapshot, typical: Typical, whole: dict[str, int]) -> None:
        """`whole`: how many units of a measured class make up its largest device."""
        wanted = [needs_of(request) for request, _ in typical.requests]
        self._counts = [count for _, count in typical.requests]
        self._weights = np.array(self._counts, np.int64)
        self.weight = sum(self._counts)
        self.measured = list(whole)
        self.whole = whole
        self._taken = [amounts_taken(each) for each in wanted]
        self.units_requested = self._units_requested(wanted)
        asked = [name for each in wanted for kind in each for name in classes_of(kind)]
        self.classes = sorted({*asked, *self.measured})
        self._least = self._least_table(wanted)
        self._kinds = self._kinds_counted_by_row(wanted)
        self._number = {kind: at for at, kind in enumerate(self._kinds)}
        self._amounts = self._amounts_table()
        self._traits = self._trait_table(snapshot)
        self._needs = self._needs_table(wanted)
        self._in_pieces = self._kinds_in_pieces(wanted)
        taking = [self._takers(each) for each in wanted]
        self._unions = sorted({union for takers in taking for union in takers.values()})
        self._each_kind = self._unions == [(at,) for at in range(len(self._kinds))]
        self._firsts = np.array([union[0] for union in self._unions], np.int64)
        self._others = self._other_kinds()
        numbers = {union: at for at, union in enumerate(self._unions)}
        self._uses = [self._use_table(name, taking, numbers) for name in self.measured]
        self._by_union = [by_union(*each) for each in self._uses]

    def cells(self, rows: int) -> int:
        """How much is looked at to measure a tree of so many rows."""
        by_row = len(self.classes) + len(self._kinds) + len(self._unions) * len(self.measured)
        by_request = sum(len(kinds) for _, kinds, _ in self._needs)
        return rows * by_row + by_request + len(self._counts) * (1 + len(self.measured))

    def _least_table(self, wanted: list[Counter[NeedKind]]) -> dict[str, Grid]:
        """By class: what some row has to have free for each request, as far as that tells."""
        found: dict[str, Grid] = {}
        for line, each in enumerate(wanted):
            for kind, times in each.items():
                if is_plain(kind, times):
                    ((name, amount),) = kind.resources
                    least = found.setdefault(name, np.zeros((len(wanted), 1), np.int64))
                    least[line] = max(least[line, 0], amount)
        return found

    def _kinds_counted_by_row(self, wanted: list[Counter[NeedKind]]) -> list[NeedKind]:
        """The kinds for which rows are looked at one by one; those of the same classes together."""
        found = {
            kind: None
            for each in wanted
            for kind, times in each.items()
            if not is_plain(kind, times) or not self.whole.keys().isdisjoint(classes_of(kind))
        }
        return sorted(found, key=classes_of)

    def _amounts_table(self) -> list[tuple[slice, dict[str, Grid]]]:
        """Kinds that ask for the same classes, which are neighbours, and how much they ask for."""
        found = []
        low = 0
        for of, kinds in groupby(self._kinds, key=classes_of):
            asked = [dict(kind.resources) for kind in kinds]
            amounts = {name: np.array([[each[name]] for each in asked]) for name in of}
            found.append((slice(low, low + len(asked)), amounts))
            low += len(asked)
        return found

    def _trait_table(self, snapshot: Snapshot) -> Mask | None:
        """By kind and trait set, whether it is as wanted; nothing if no kind cares."""
        if not any(kind.required or kind.forbidden for kind in self._kinds):
            return None
        return np.stack(trait_masks(snapshot, self._kinds))

    def _needs_table(self, wanted: list[Counter[NeedKind]]) -> list[tuple[Lines, Numbers, Grid]]:
        """By place: of some requests a kind each and how many of it.

        They are all requests, filled up with none of the first kind, while few would be filled up.
        """
        counted = [
            [
                (self._number[kind], times)
                for kind, times in each.items()
                if not is_plain(kind, times)
            ]
            for each in wanted
        ]
        found: list[tuple[Lines, Numbers, Grid]] = []
        for at in range(max(map(len, counted), default=0)):
            mine = [line for line, pairs in enumerate(counted) if len(pairs) > at]
            lines: Lines = np.array(mine)
            pairs = [counted[line][at] for line in mine]
            if 2 * len(mine) > len(wanted):
                lines = slice(None)
                pairs = [each[at] if len(each) > at else (0, 0) for each in counted]
            numbers, times = zip(*pairs, strict=True)
            found.append((lines, np.array(numbers), np.array(times)[:, None]))
        return found

    def _kinds_in_pieces(self, wanted: list[Counter[NeedKind]]) -> list[int]:
        """The kinds of which one row may serve several at once."""
        several = {kind for each in wanted for kind, times in each.items() if times > 1}
        return [
            at
            for at, kind in enumerate(self._kinds)
            if kind.resources and not kind.alone and kind in several
        ]

    def _takers(self, wanted: Iterable[NeedKind]) -> dict[str, Union]:
        """By measured class the kinds of a request that take some of it."""
        found: dict[str, list[int]] = {}
        for kind in wanted:
            for name in classes_of(kind):
                if name in self.whole:
                    found.setdefault(name, []).append(self._number[kind])
        return {name: tuple(sorted(kinds)) for name, kinds in found.items()}

    def _other_kinds(self) -> list[tuple[Numbers, Numbers]]:
        """By place from the second on: the unions with so many kinds, and that kind of each."""
        found = []
        for at in range(1, max(map(len, self._unions), default=0)):
            longer = [
                (number, union[at]) for number, union in enumerate(self._unions) if union[at:]
            ]
            unions, kinds = zip(*longer, strict=True)
            found.append((np.array(unions), np.array(kinds)))
        return found

    def _use_table(
        self, name: str, taking: list[dict[str, Union]], numbers: dict[Union, int]
    ) -> tuple[Numbers, Numbers]:
        """By request: which union takes from a class, and the request's weight; 0 if none does."""
        uses = [numbers[takers[name]] if name in takers else 0 for takers in taking]
        return np.array(uses), self._weights * np.array([name in takers for takers in taking])

    def _units_requested(self, wanted: list[Counter[NeedKind]]) -> Counter[str]:
        """By measured class what all requests take of it, weighed."""
        found: Counter[str] = Counter()
        for each, count in zip(wanted, self._counts, strict=True):
            for kind, times in each.items():
                for name, amount in kind.resources:
                    if name in self.whole:
                        found[name] += count * times * device_units(amount, self.whole[name])
        return found

    def companions(self, name: str) -> dict[str, int]:
        """What the requests that take some of a measured class take of others, weighed."""
        found: Counter[str] = Counter()
        for taken, count in zip(self._taken, self._counts, strict=True):
            if name in taken:
                for of, amount in taken.items():
                    if of not in self.whole:
                        found[of] += count * amount
        return dict(found)

    def units_lost(self, trees: Trees) -> Numbers:
        """For each tree the device units that typical requests cannot use, times their weights.

        All there are if the request does not run there at all, else those on rows with too little.
        """
        found: Numbers = np.zeros(len(trees), np.int64)
        if not self.measured:
            return found
        fits = self._fits(trees)
        runs = self._runs(trees, fits)
        joined = self._union_fits(fits)
        for name, (uses, weights) in zip(self.measured, self._uses, strict=True):
            units = trees.units(name)
            usable = np.add.reduce(joined * units[:, None])
            used = weights @ (usable.take(uses, axis=0) * runs)
            found += np.add.reduce(units) * self.weight - used
        return found

    def units_usable(self, trees: Trees) -> Grid:
        """By request and tree: the device units that it could use there."""
        found: Grid = np.zeros((len(self._counts), len(trees)), np.int64)
        if not self._counts:
            return found
        fits = self._fits(trees)
        runs = self._runs(trees, fits)
        joined = self._union_fits(fits)
        for name, (uses, weights) in zip(self.measured, self._uses, strict=True):
            usable = np.add.reduce(joined * trees.units(name)[:, None])
            found += usable.take(uses, axis=0) * (runs & (weights > 0)[:, None])
        return found

    def worth(self, trees: Trees, prices: Numbers) -> Numbers:
        """Of each tree: its device units, each times the highest price of who could use it."""
        found: Numbers = np.zeros(len(trees), np.int64)
        if not self._counts:
            return found
        fits = self._fits(trees)
        offers = self._runs(trees, fits) * prices[:, None]
        joined = self._union_fits(fits)
        for name, (taking, unions, starts) in zip(self.measured, self._by_union, strict=True):
            highest = np.maximum.reduceat(offers.take(taking, axis=0), starts)
            paid = np.maximum.reduce(joined[:, unions] * highest, axis=1)
            found += np.add.reduce(paid * trees.units(name))
        return found

    def weight_not_running(self, trees: Trees) -> Numbers:
        """For each tree the weights of the requests that do not run there."""
        served: Numbers = self._weights @ self._runs(trees, self._fits(trees))
        return self.weight - served

    def _union_fits(self, fits: Cube) -> Cube:
        """By row, union and tree: whether the row gives what one of the kinds asks for."""
        if self._each_kind:
            return fits
        joined: Cube = fits.take(self._firsts, axis=1)
        for unions, kinds in self._others:
            joined[:, unions] |= fits.take(kinds, axis=1)
        return joined

    def _fits(self, trees: Trees) -> Cube:
        """By row, kind and tree, whether the row gives what the kind asks for."""
        rows, count = trees.present.shape
        fits: Cube = np.empty((rows, len(self._kinds), count), np.bool_)
        for kinds, amounts in self._amounts:
            mine = fits[:, kinds]
            if not amounts:
                mine[:] = trees.present[:, None]
            for at, (name, least) in enumerate(amounts.items()):
                given = trees.free[name][:, None]
                if at == 0:
                    np.greater_equal(given, least, out=mine)
                else:
                    mine &= given >= least
        if self._traits is not None:
            fits &= self._traits.take(trees.traits, axis=1).swapaxes(0, 1)
        return fits

    def _runs(self, trees: Trees, fits: Cube) -> Mask:
        """By request and tree: whether each need is met."""
        met = [np.maximum.reduce(trees.free[name]) >= least for name, least in self._least.items()]
        runs = (
            reduce(np.logical_and, met) if met else np.ones((len(self._counts), len(trees)), bool)
        )
        if self._needs:
            room = np.add.reduce(fits, dtype=np.int64)
            for at in self._in_pieces:
                pieces = [trees.free[name] // amount for name, amount in self._kinds[at].resources]
                room[at] = (np.minimum.reduce(pieces) * fits[:, at]).sum(axis=0)
            for lines, kinds, times in self._needs:
                runs[lines] &= room[kinds] >= times
        return runs


def by_union(uses: Numbers, weights: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The requests that take from a class, by union; the unions, and where each one's begin."""
    taking = np.flatnonzero(weights)
    taking = taking[np.argsort(uses[taking], kind="stable")]
    return taking, *np.unique(uses[taking], return_index=True)


def largest_device(snapshot: Snapshot, name: str) -> int:
    """The capacity of the largest device."""
    inventories = snapshot.inventories_of(name)
    assert inventories
    alive = inventories.free.values != NEVER
    return int(inventories.capacity.values.max(where=alive, initial=1))


def demand_of(snapshot: Snapshot, typical: Typical) -> TypicalDemand:
    """The same as `demand_in_steps`, for the simulator, which has time."""
    return finished(demand_in_steps(snapshot, typical))


def demand_in_steps(snapshot: Snapshot, typical: Typical) -> Work[TypicalDemand]:
    """The demand; another one when names, kinds of traits or the largest devices are others."""
    whole: dict[str, int] = cache_entry(
        snapshot,
        ("whole", typical, layout_version(snapshot)),
        lambda: device_sizes(snapshot, typical),
    )
    sets = len(snapshot.trait_sets)
    key = ("demand", typical, names_version(snapshot), sets, tuple(whole.items()))

    def make() -> Work[TypicalDemand]:
        yield
        return TypicalDemand(snapshot, typical, whole)

    return (yield from entry_in_steps(snapshot, key, make))


def device_sizes(snapshot: Snapshot, typical: Typical) -> dict[str, int]:
    """The measured classes that there are, and how many units make up the largest device."""
    return {
        name: largest_device(snapshot, name)
        for name in measured_classes(typical)
        if snapshot.inventories_of(name)
    }
