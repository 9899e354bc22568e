"""The fleet in columns, true at one moment of the ledger.

Providers are rows, laid out tree by tree with the root first. A changed tree is written anew at the
end and its old rows are left dead until there are too many of them, so taking in a change costs
what changed, whatever the size of the fleet. Only one thread may change a snapshot; whoever needs
it to stand still takes a `copy`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dovetail.core.columns import Column, Mask, spans
from dovetail.core.inventory import MAX_CAPACITY
from dovetail.core.tables import Names, TableColumns, Tables, columns_of
from dovetail.engine.interned_sets import AttributeSets, InternedSets, sets_in_use
from dovetail.engine.inventories import ClassInventories, RowNumbers
from dovetail.engine.journal import Journal
from dovetail.engine.row_sets import set_numbers
from dovetail.engine.sharing import SHARES, Sharing

T = TypeVar("T")

WORTH_COMPACTING = 4096
FEW_USAGES = 16
"""Taken in one by one: vector operations on so few cost more."""


VERSIONS = count(1)
"""Of trees and names. None is given twice: what a version was like holds in every copy and load."""


class Snapshot:
    def __init__(self) -> None:
        self.trait_ids: dict[str, int] = {}
        self.trait_names: dict[int, str] = {}
        self.class_ids: dict[str, int] = {}
        self.class_names: dict[int, str] = {}
        self.names_version = 0
        self.layout = object()
        """The same as long as nothing but usage changes, in copies, too."""
        self._clear()

    def _clear(self) -> None:
        self.provider_id = Column(np.int64)
        self.uuids = Column("S36")
        """As text: that is what answers are made of."""
        self.parent = Column(np.int32)
        self.tree = Column(np.int32)
        self.traits = Column(np.int32)
        self.aggregates = Column(np.int32)
        self.attributes = Column(np.int32)
        self.tree_start = Column(np.int32)
        self.tree_size = Column(np.int32)
        self.tree_root_id = Column(np.int64)
        self.in_order = True
        """Whether the trees are numbered in the order of their roots."""
        self.tree_version = Column(np.int64)
        self.tree_shape = Column(np.int32)
        """Trees whose rows have the same parents, counted from the first, share a number."""
        self._shapes: dict[bytes, int] = {}
        self._caches: dict[str, Any] = {}
        self.journal = Journal()
        """What changed, for those who keep what they worked out."""
        self._tree_order: RowNumbers | None = None
        self.trait_sets = InternedSets[int]()
        self.aggregate_sets = InternedSets[str]()
        self.attribute_sets = AttributeSets()
        self.inventories: dict[int, ClassInventories] = {}
        self.row_of = Column(np.int32)
        """By provider id; -1 where there is none."""
        self.tree_of_root: dict[int, int] = {}
        self.live_rows = 0
        self._shared: Sharing | None = None

    # -- taking in what the ledger says ---------------------------------------------------------

    def load(self, tables: Tables | TableColumns, names: Names) -> None:
        """Forget everything; the tables are the whole forest."""
        self.layout = object()
        self._clear()
        self.rename(names)
        columns = columns_of(tables) if isinstance(tables, Tables) else tables
        self._append(columns)

    def replace(
        self, tables: Tables, names: Names | None = None, removed_roots: Iterable[int] = ()
    ) -> None:
        """Take in trees that changed, appeared or went."""
        self.layout = object()
        if names is not None:
            self.rename(names)
        self._bury({*removed_roots, *(row[3] for row in tables.providers)})
        self._append(columns_of(tables))
        if self.parent.size > 2 * self.live_rows + WORTH_COMPACTING:
            self._compact()

    def update_usage(self, usages: Iterable[tuple[int, int, int]]) -> None:
        """Take in (provider id, class id, used)."""
        told = list(usages)
        if not told:
            return
        if len(told) <= FEW_USAGES:
            rows = self.row_of.values.take([provider_id for provider_id, _, _ in told])
            for row, (_, class_id, used) in zip(rows.tolist(), told, strict=True):
                self.inventories[class_id].use_one(row, used)
        else:
            rows = self._use_many(np.array(told, np.int64))
        for tree in {*self.tree.values.take(rows.compress(rows >= 0)).tolist()}:
            self.tree_version.values[tree] = next(VERSIONS)
            extent = self.rows_of(tree)
            self.journal.note(tree, extent.start, extent.stop, is_usage=True)

    def _use_many(self, told: NDArray[np.int64]) -> RowNumbers:
        """Take in (provider id, class id, used), class by class; the rows."""
        provider_ids, class_ids, used = told.T
        rows: RowNumbers = self.row_of.values.take(provider_ids)
        for class_id in {*class_ids.tolist()}:
            mine = class_ids == class_id
            self.inventories[class_id].use(rows.compress(mine), used.compress(mine))
        return rows

    def rename(self, names: Names) -> None:
        """Take in all names. Another version only if they are others: they are told often."""
        if names.classes == self.class_names and names.traits == self.trait_names:
            return
        self.class_names, self.trait_names = names.classes, names.traits
        self.class_ids = {name: id_ for id_, name in names.classes.items()}
        self.trait_ids = {name: id_ for id_, name in names.traits.items()}
        self.names_version = next(VERSIONS)
        self.layout = object()
        self._shared = None

    def copy(self) -> Snapshot:
        """A snapshot that stays as it is while this one goes on."""
        twin = Snapshot()
        for name, value in vars(self).items():
            if isinstance(value, Column | InternedSets | AttributeSets | dict):
                setattr(twin, name, value.copy())
            else:
                setattr(twin, name, value)
        twin._shared = None
        twin._caches, twin.journal = {}, Journal()
        twin.inventories = {
            class_id: inventories.copy() for class_id, inventories in self.inventories.items()
        }
        return twin

    def without_usage(self) -> Snapshot:
        """The same fleet with nothing in use; it shares its columns with this one, to be read."""
        twin = Snapshot()
        vars(twin).update(vars(self))
        twin._caches, twin.journal = {}, Journal()
        twin.inventories = {
            class_id: inventories.without_usage()
            for class_id, inventories in self.inventories.items()
        }
        return twin

    # -- looking things up ----------------------------------------------------------------------

    def inventories_of(self, class_name: str) -> ClassInventories | None:
        return self.inventories.get(self.class_ids.get(class_name, -1))

    def uuid(self, row: int) -> str:
        text: bytes = self.uuids.values[row]
        return text.decode()

    def tree_with(self, uuid: str) -> int | None:
        """The tree that a provider is in."""
        # The last four digits first: comparing numbers is much faster than comparing text.
        ends = self.uuids.values.view(np.uint32).reshape(-1, 9)[:, 8]
        for row in np.flatnonzero(ends == np.frombuffer(uuid[-4:].encode(), np.uint32)).tolist():
            if self.alive(row) and self.uuid(row) == uuid:
                return int(self.tree.values[row])
        return None

    def alive(self, row: int) -> bool:
        return bool(self.tree.values[row] >= 0)

    def rows_of(self, tree: int) -> range:
        start = int(self.tree_start.values[tree])
        return range(start, start + int(self.tree_size.values[tree]))

    def cached(self, name: str, make: Callable[[], T]) -> T:
        """What searches keep under a name as long as rows keep their numbers; made if missing."""
        found: T | None = self._caches.get(name)
        if found is None:
            found = self._caches[name] = make()
        return found

    @property
    def tree_order(self) -> RowNumbers:
        """All trees in the order of their roots."""
        if self._tree_order is None:
            self._tree_order = np.argsort(self.tree_root_id.values).astype(np.int32)
        return self._tree_order

    @property
    def sharing(self) -> Sharing:
        """Who shares with whom; found out once per change of the trees."""
        if self._shared is None:
            shares = self._sharing_sets()
            rows = np.flatnonzero(shares[self.traits.values]).astype(np.int32)
            columns = self.tree.values, self.aggregates.values
            self._shared = Sharing(rows, *columns, self.aggregate_sets)
        return self._shared

    def _sharing_sets(self) -> Mask:
        """By number of a trait set, whether those who have it share."""
        return self.trait_sets.meeting([{self.trait_ids.get(SHARES, -1)}])

    # -- the layout -----------------------------------------------------------------------------

    def _bury(self, root_ids: Iterable[int]) -> None:
        numbers = [self.tree_of_root.get(root_id, -1) for root_id in root_ids]
        trees = np.array([n for n in numbers if n >= 0 and self.tree_size.values[n]], np.int32)
        if not len(trees):
            return
        firsts = self.tree_start.values.take(trees)
        lasts = firsts + self.tree_size.values.take(trees)
        rows = spans(firsts, lasts)
        self.row_of.values[self.provider_id.values.take(rows)] = -1
        self.tree.values[rows] = -1
        for column in (self.traits, self.aggregates, self.attributes):
            column.values[rows] = 0
        for inventories in self.inventories.values():
            inventories.bury(firsts, lasts)
        self.tree_size.values[trees] = 0
        self.live_rows -= len(rows)
        self.journal.note_all(trees, firsts, lasts)
        if self._shared is not None and len(self._shared.rows):
            self._shared = None

    def _append(self, tables: TableColumns) -> None:
        ids, uuids, parents, roots = tables.providers
        if not len(ids):
            return
        # The root leads its tree: what holds for the root is looked up at the tree's first row.
        order = np.lexsort((ids, ids != roots, roots))
        ids, uuids, parents, roots = (column.take(order) for column in (ids, uuids, parents, roots))
        base, count = self.parent.size, len(ids)
        self.provider_id.extend(ids)
        missing = int(ids.max()) + 1 - self.row_of.size
        self.row_of.extend(np.full(max(missing, 0), -1, np.int32))
        self.row_of.values[ids] = np.arange(base, base + count, dtype=np.int32)
        self.uuids.extend(uuids)
        self.parent.extend(np.where(parents < 0, -1, self.row_of.values[parents]))
        self.tree.extend(self._trees(roots, base))
        self._shape_trees(base)
        self.live_rows += count
        self._append_sets(tables, base)
        self._append_inventories(tables)
        self._note_appended(base)

    def _note_appended(self, base: int) -> None:
        """Tell of the trees that start at row `base` or later."""
        trees = np.flatnonzero((self.tree_start.values >= base) & (self.tree_size.values > 0))
        firsts = self.tree_start.values.take(trees)
        self.journal.note_all(trees, firsts, firsts + self.tree_size.values.take(trees))
        self._tree_order = None
        if self._shared is not None and (
            len(self._shared.rows) or self._sharing_sets()[self.traits.values[base:]].any()
        ):
            self._shared = None

    def _trees(self, roots: NDArray[np.int64], base: int) -> RowNumbers:
        """Number the trees of new rows, given the root of each row."""
        distinct, starts, which, sizes = np.unique(
            roots, return_index=True, return_inverse=True, return_counts=True
        )
        numbers = np.empty(len(distinct), np.int32)
        version = next(VERSIONS)
        fresh: list[int] = []
        for position, root_id in enumerate(distinct.tolist()):
            tree = self.tree_of_root.get(root_id)
            if tree is None:
                tree = self.tree_of_root[root_id] = self.tree_start.size + len(fresh)
                fresh.append(position)
            else:
                self.tree_start.values[tree] = base + starts[position]
                self.tree_size.values[tree] = sizes[position]
                self.tree_version.values[tree] = version
            numbers[position] = tree
        self.tree_start.extend((base + starts[fresh]).astype(np.int32))
        self.tree_size.extend(sizes[fresh].astype(np.int32))
        if fresh:
            last = self.tree_root_id.values.max(initial=-1)
            self.in_order = self.in_order and bool(distinct[fresh[0]] > last)
        self.tree_root_id.extend(distinct[fresh])
        self.tree_version.extend(np.full(len(fresh), version, np.int64))
        rows: RowNumbers = numbers[which]
        return rows

    def _shape_trees(self, base: int) -> None:
        """Tell apart the forms of the trees that start at row `base` or later."""
        self.tree_shape.extend(np.zeros(self.tree_start.size - self.tree_shape.size, np.int32))
        fresh = np.flatnonzero((self.tree_start.values >= base) & (self.tree_size.values > 0))
        starts = self.tree_start.values[fresh]
        offsets = self.parent.values[base:] - self.tree_start.values[self.tree.values[base:]]
        relative = np.where(self.parent.values[base:] < 0, -1, offsets).astype(np.int32)
        for tree, start, size in zip(
            fresh.tolist(),
            (starts - base).tolist(),
            self.tree_size.values[fresh].tolist(),
            strict=True,
        ):
            form = relative[start : start + size].tobytes()
            self.tree_shape.values[tree] = self._shapes.setdefault(form, len(self._shapes))

    def _append_sets(self, tables: TableColumns, base: int) -> None:
        holders, traits = tables.traits
        self._append_set_numbers(self.traits, base, holders, traits, self.trait_sets.number_of)
        names = list(dict.fromkeys(name for _, name in tables.aggregates))
        places = {name: at for at, name in enumerate(names)}
        self._append_set_numbers(
            self.aggregates,
            base,
            np.array([id_ for id_, _ in tables.aggregates], np.int64),
            np.array([places[name] for _, name in tables.aggregates], np.int64),
            lambda members: self.aggregate_sets.number_of(names[at] for at in members),
        )
        sets = self.attribute_sets
        pairs = [sets.number_pair((key, value)) for _, key, value in tables.attributes]
        self._append_set_numbers(
            self.attributes,
            base,
            np.array([id_ for id_, _, _ in tables.attributes], np.int64),
            np.array(pairs, np.int64),
            sets.number_of_pairs,
        )

    def _append_set_numbers(
        self,
        column: Column,
        base: int,
        holders: NDArray[np.int64],
        members: NDArray[np.int64],
        number_of: Callable[[list[int]], int],
    ) -> None:
        """`holders`: ids of providers, each with the member at its place."""
        rows = self.row_of.values.take(holders).astype(np.int64) - base
        column.extend(set_numbers(rows, members, self.parent.size - base, number_of))

    def _append_inventories(self, tables: TableColumns) -> None:
        provider_ids, classes, total, reserved, *units, ratios, used = tables.inventories
        if not len(provider_ids):
            return
        rows = self.row_of.values.take(provider_ids)
        product = (total - reserved) * ratios
        capacity = np.clip(product, -MAX_CAPACITY, MAX_CAPACITY).astype(np.int64)
        order = np.lexsort((rows, classes))
        class_ids, firsts = np.unique(classes.take(order), return_index=True)
        for class_id, among in zip(class_ids.tolist(), np.split(order, firsts[1:]), strict=True):
            inventories = self.inventories.setdefault(class_id, ClassInventories())
            inventories.extend(
                rows.take(among),
                capacity.take(among),
                used.take(among),
                np.stack([unit.take(among) for unit in units]),
            )

    def _compact(self) -> None:
        """Leave dead rows and trees behind, with what was kept about them."""
        alive, there = self.tree.values >= 0, self.tree_size.values > 0
        places = np.where(alive, alive.cumsum() - 1, -1).astype(np.int32)
        numbers = np.where(there, there.cumsum() - 1, -1).astype(np.int32)
        parent = self.parent.values
        self.parent.assign(np.where(parent < 0, -1, places.take(parent)))
        self.tree.assign(numbers.take(self.tree.values))
        for column in (
            *(self.parent, self.tree, self.provider_id, self.uuids),
            *(self.traits, self.aggregates, self.attributes),
        ):
            column.assign(column.values.compress(alive))
        self.tree_start.assign(places.take(self.tree_start.values))
        for column in (
            *(self.tree_start, self.tree_size, self.tree_root_id),
            *(self.tree_version, self.tree_shape),
        ):
            column.assign(column.values.compress(there))
        self.row_of.values[self.provider_id.values] = np.arange(self.parent.size)
        self.tree_of_root = {id_: at for at, id_ in enumerate(self.tree_root_id.values.tolist())}
        self.in_order = bool((np.diff(self.tree_root_id.values) > 0).all())
        for inventories in self.inventories.values():
            inventories.compact(places)
        self._intern_again()
        self._shared = self._tree_order = None
        self._caches, self.journal = {}, Journal()

    def _intern_again(self) -> None:
        """Forget the sets that nobody has any more; attributes may come in as many as devices."""
        self.trait_sets = sets_in_use(self.traits, self.trait_sets)
        self.aggregate_sets = sets_in_use(self.aggregates, self.aggregate_sets)
        self.attribute_sets = sets_in_use(self.attributes, self.attribute_sets)
