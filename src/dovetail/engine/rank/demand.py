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

import msgspec
import numpy as np
from numpy.typing import NDArray

from dovetail.core.columns import Mask
from dovetail.core.request import Request
from dovetail.engine.feasible import trait_mask
from dovetail.engine.inventories import NEVER
from dovetail.engine.rank.cache import cache_entry, layout_version, names_version
from dovetail.engine.rank.policies.policy import Numbers
from dovetail.engine.rank.trees import Trees, device_units
from dovetail.engine.rank.typical import Typical
from dovetail.engine.snapshot import Snapshot

Grid = NDArray[np.int64]
Cube = NDArray[np.bool_]
Union = tuple[int, ...]
"""Numbers of kinds, of which a row has to serve one."""

ORDINARY = frozenset({"VCPU", "PCPU", "MEMORY_MB", "DISK_GB"})
"""What nearly every request takes: no devices, even if a group of their own asks for them."""


class NeedKind(msgspec.Struct, frozen=True):
    """What one row has to give."""

    resources: tuple[tuple[str, int], ...]
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    alone: bool = False
    """Each time by another row."""


def needs_of(request: Request) -> Counter[NeedKind]:
    """How many of each kind a request needs."""
    found: Counter[NeedKind] = Counter()
    for group in request.groups:
        resources = tuple(sorted(group.resources.items()))
        if group.suffix:
            alone = group.suffix in request.isolated
            found[NeedKind(resources, group.required, group.forbidden, alone)] += 1
        else:
            for amount in resources:
                found[NeedKind((amount,), (), group.forbidden)] += 1
            for alternatives in group.required:
                found[NeedKind((), (alternatives,))] += 1
    for kind in found:
        if not kind.resources and not kind.alone:
            # Whoever gives nothing can be there for any number of groups.
            found[kind] = 1
    return found


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
        counts = [count for _, count in typical.requests]
        self._weights = np.array(counts, np.int64)
        self.weight = sum(counts)
        self.measured = list(whole)
        self.whole = whole
        self._wanted = list(zip(wanted, counts, strict=True))
        asked = [name for each in wanted for kind in each for name in classes_of(kind)]
        self.classes = sorted({*asked, *self.measured})
        self._least = self._least_table(wanted)
        self._kinds = self._kinds_counted_by_row(wanted)
        self._number = {kind: at for at, kind in enumerate(self._kinds)}
        self._amounts = self._amounts_table()
        self._traits = self._trait_table(snapshot)
        self._needed, self._times = self._needs_table(wanted)
        self._in_pieces = self._kinds_in_pieces(wanted)
        taking = [[self._taking(name, each) for each in wanted] for name in self.measured]
        self._unions = sorted({union for each in taking for union in each if union})
        self._each_kind = self._unions == [(at,) for at in range(len(self._kinds))]
        self._uses = [self._use_table(unions) for unions in taking]

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
        masks = [trait_mask(snapshot, kind.required, kind.forbidden) for kind in self._kinds]
        return np.stack(masks)

    def _needs_table(self, wanted: list[Counter[NeedKind]]) -> tuple[Grid, Grid]:
        """By place and request: a kind and how many of it, filled up with none of the first."""
        counted = [
            [
                (self._number[kind], times)
                for kind, times in each.items()
                if not is_plain(kind, times)
            ]
            for each in wanted
        ]
        width = max(map(len, counted), default=0)
        numbers = np.zeros((width, len(wanted)), np.int64)
        times = np.zeros((width, len(wanted), 1), np.int64)
        for line, pairs in enumerate(counted):
            for at, (number, count) in enumerate(pairs):
                numbers[at, line], times[at, line] = number, count
        return numbers, times

    def _kinds_in_pieces(self, wanted: list[Counter[NeedKind]]) -> list[int]:
        """The kinds of which one row may serve several at once."""
        return [
            at
            for at, kind in enumerate(self._kinds)
            if kind.resources and not kind.alone and any(each[kind] > 1 for each in wanted)
        ]

    def _taking(self, name: str, wanted: Iterable[NeedKind]) -> Union:
        return tuple(sorted(self._number[kind] for kind in wanted if name in classes_of(kind)))

    def _use_table(self, unions: list[Union]) -> tuple[Numbers, Numbers]:
        """By request: which union takes from a class, and the request's weight; 0 if none does."""
        taking = np.array([bool(union) for union in unions])
        uses = [self._unions.index(union) if union else 0 for union in unions]
        return np.array(uses), self._weights * taking

    def requesting_kinds(self, name: str) -> list[tuple[NeedKind, int]]:
        """For each request the kinds that take some of a measured class; how much, weighed."""
        return [
            (kind, count * times * device_units(amount, self.whole[name]))
            for each, count in self._wanted
            for kind, times in each.items()
            for of, amount in kind.resources
            if of == name
        ]

    def units_requested(self, name: str) -> int:
        """What all requests take of a measured class, weighed."""
        return sum(amount for _, amount in self.requesting_kinds(name))

    def companions(self, name: str) -> dict[str, int]:
        """What the requests that take some of a measured class take of others, weighed."""
        found: Counter[str] = Counter()
        for each, count in self._wanted:
            taken = [pair for kind, times in each.items() for pair in kind.resources * times]
            if any(of == name for of, _ in taken):
                for of, amount in taken:
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
        found: Grid = np.zeros((len(self._wanted), len(trees)), np.int64)
        if not self._wanted:
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
        if not self._wanted:
            return found
        fits = self._fits(trees)
        offers = self._runs(trees, fits) * prices[:, None]
        joined = self._union_fits(fits)
        for name, (uses, weights) in zip(self.measured, self._uses, strict=True):
            taking = np.flatnonzero(weights)
            taking = taking[np.argsort(uses[taking], kind="stable")]
            unions, starts = np.unique(uses[taking], return_index=True)
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
        joined = fits[:, [union[0] for union in self._unions]]
        for at, union in enumerate(self._unions):
            if len(union) > 1:
                joined[:, at] = fits[:, union].any(axis=1)
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
        if len(self._needed):
            room = np.add.reduce(fits, dtype=np.int64)
            for at in self._in_pieces:
                pieces = [trees.free[name] // amount for name, amount in self._kinds[at].resources]
                room[at] = (np.minimum.reduce(pieces) * fits[:, at]).sum(axis=0)
            met += list(room[self._needed] >= self._times)
        return reduce(np.logical_and, met)


def is_plain(kind: NeedKind, times: int) -> bool:
    """Whether the most that a row has free tells if the need is met."""
    return times == 1 and len(kind.resources) == 1 and not kind.required and not kind.forbidden


def classes_of(kind: NeedKind) -> tuple[str, ...]:
    return tuple(name for name, _ in kind.resources)


def largest_device(snapshot: Snapshot, name: str) -> int:
    """The capacity of the largest device."""
    inventories = snapshot.inventories_of(name)
    assert inventories
    alive = inventories.free.values != NEVER
    return int(inventories.capacity.values.max(where=alive, initial=1))


def demand_of(snapshot: Snapshot, typical: Typical) -> TypicalDemand:
    """The demand; another one when names, kinds of traits or the largest devices are others."""
    whole: dict[str, int] = cache_entry(
        snapshot,
        ("whole", typical, layout_version(snapshot)),
        lambda: device_sizes(snapshot, typical),
    )
    sets = len(snapshot.trait_sets)
    key = ("demand", typical, names_version(snapshot), sets, tuple(whole.items()))
    return cache_entry(snapshot, key, lambda: TypicalDemand(snapshot, typical, whole))


def device_sizes(snapshot: Snapshot, typical: Typical) -> dict[str, int]:
    """The measured classes that there are, and how many units make up the largest device."""
    return {
        name: largest_device(snapshot, name)
        for name in measured_classes(typical)
        if snapshot.inventories_of(name)
    }
