"""The fleet in columns, true at one moment of the ledger.

Providers are rows, laid out tree by tree with the root first. A changed tree is written anew at the
end and its old rows are left dead until there are too many of them, so taking in a change costs
what changed, whatever the size of the fleet. Only one thread may change a snapshot; whoever needs
it to stand still takes a `copy`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dovetail.core.columns import Column, Mask
from dovetail.core.inventory import MAX_CAPACITY
from dovetail.core.tables import Names, Tables
from dovetail.engine.interned_sets import AttributeSets, InternedSets
from dovetail.engine.inventories import ClassInventories, RowNumbers
from dovetail.engine.journal import Journal

T = TypeVar("T")

SHARES = "MISC_SHARES_VIA_AGGREGATE"
"""The trait of a provider that also serves the trees it shares an aggregate with."""

WORTH_COMPACTING = 4096


class Snapshot:
    def __init__(self) -> None:
        self.trait_ids: dict[str, int] = {}
        self.trait_names: dict[int, str] = {}
        self.class_ids: dict[str, int] = {}
        self.class_names: dict[int, str] = {}
        self.names_version = 0
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

    def load(self, tables: Tables, names: Names) -> None:
        """Forget everything; the tables are the whole forest."""
        versions = int(self.tree_version.values.max(initial=0))
        self._clear()
        self.rename(names)
        self._append(tables, first_version=versions + 1)

    def replace(
        self, tables: Tables, names: Names | None = None, removed_roots: Iterable[int] = ()
    ) -> None:
        """Take in trees that changed, appeared or went."""
        if names is not None:
            self.rename(names)
        for root_id in removed_roots:
            self._bury(root_id)
        for root_id in {row[3] for row in tables.providers}:
            self._bury(root_id)
        self._append(tables)
        if self.parent.size > 2 * self.live_rows + WORTH_COMPACTING:
            self._compact()

    def update_usage(self, usages: Iterable[tuple[int, int, int]]) -> None:
        """Take in (provider id, class id, used)."""
        told = np.array(list(usages), np.int64)
        if not len(told):
            return
        provider_ids, class_ids, used = told.T
        rows = self.row_of.values.take(provider_ids)
        for class_id in {*class_ids.tolist()}:
            mine = class_ids == class_id
            self.inventories[class_id].use(rows.compress(mine), used.compress(mine))
        for tree in {*self.tree.values.take(rows.compress(rows >= 0)).tolist()}:
            self.tree_version.values[tree] += 1
            extent = self.rows_of(tree)
            self.journal.note(tree, extent.start, extent.stop)

    def rename(self, names: Names) -> None:
        """Take in all names. Another version only if they are others: they are told often."""
        if names.classes == self.class_names and names.traits == self.trait_names:
            return
        self.class_names, self.trait_names = names.classes, names.traits
        self.class_ids = {name: id_ for id_, name in names.classes.items()}
        self.trait_ids = {name: id_ for id_, name in names.traits.items()}
        self.names_version += 1
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
            self._shared = Sharing(self)
        return self._shared

    # -- the layout -----------------------------------------------------------------------------

    def _bury(self, root_id: int) -> None:
        tree = self.tree_of_root.get(root_id)
        if tree is None or not self.tree_size.values[tree]:
            return
        rows = self.rows_of(tree)
        first, last = rows.start, rows.stop
        self.row_of.values[self.provider_id.values[first:last]] = -1
        self.tree.values[first:last] = -1
        self.traits.values[first:last] = 0
        self.aggregates.values[first:last] = 0
        self.attributes.values[first:last] = 0
        for inventories in self.inventories.values():
            inventories.bury(first, last)
        self.tree_size.values[tree] = 0
        self.live_rows -= len(rows)
        self.journal.note(tree, first, last)
        if self._shared is not None and len(self._shared.rows):
            self._shared = None

    def _append(self, tables: Tables, first_version: int = 1) -> None:
        if not tables.providers:
            return
        # The root leads its tree: what holds for the root is looked up at the tree's first row.
        providers = sorted(tables.providers, key=lambda row: (row[3], row[0] != row[3], row[0]))
        base, count = self.parent.size, len(providers)
        ids, uuids, parents, roots = zip(*providers, strict=True)
        id_column = np.array(ids, np.int64)
        self.provider_id.extend(id_column)
        missing = int(id_column.max()) + 1 - self.row_of.size
        self.row_of.extend(np.full(max(missing, 0), -1, np.int32))
        self.row_of.values[id_column] = np.arange(base, base + count, dtype=np.int32)
        self.uuids.extend(np.array(uuids, "S36"))
        above = np.array([-1 if parent is None else parent for parent in parents], np.int64)
        self.parent.extend(np.where(above < 0, -1, self.row_of.values[above]))
        self.tree.extend(self._trees(np.array(roots, np.int64), base, first_version))
        self._shape_trees(base)
        self.live_rows += count
        self._append_sets(tables, ids)
        self._append_inventories(tables)
        self._note_appended(base)

    def _note_appended(self, base: int) -> None:
        """Tell of the trees that start at row `base` or later."""
        trees = np.flatnonzero((self.tree_start.values >= base) & (self.tree_size.values > 0))
        for tree in trees.tolist():
            extent = self.rows_of(tree)
            self.journal.note(tree, extent.start, extent.stop)
        self._tree_order = None
        if self._shared is not None:
            shares = self.trait_sets.meeting([{self.trait_ids.get(SHARES, -1)}])
            if len(self._shared.rows) or shares[self.traits.values[base:]].any():
                self._shared = None

    def _trees(self, roots: NDArray[np.int64], base: int, first_version: int) -> RowNumbers:
        """Number the trees of new rows, given the root of each row."""
        distinct, starts, which, sizes = np.unique(
            roots, return_index=True, return_inverse=True, return_counts=True
        )
        numbers = np.empty(len(distinct), np.int32)
        fresh: list[int] = []
        for position, root_id in enumerate(distinct.tolist()):
            tree = self.tree_of_root.get(root_id)
            if tree is None:
                tree = self.tree_of_root[root_id] = self.tree_start.size + len(fresh)
                fresh.append(position)
            else:
                self.tree_start.values[tree] = base + starts[position]
                self.tree_size.values[tree] = sizes[position]
                self.tree_version.values[tree] += 1
            numbers[position] = tree
        self.tree_start.extend((base + starts[fresh]).astype(np.int32))
        self.tree_size.extend(sizes[fresh].astype(np.int32))
        if fresh:
            last = self.tree_root_id.values.max(initial=-1)
            self.in_order = self.in_order and bool(distinct[fresh[0]] > last)
        self.tree_root_id.extend(distinct[fresh])
        self.tree_version.extend(np.full(len(fresh), first_version, np.int64))
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

    def _append_sets(self, tables: Tables, ids: Sequence[int]) -> None:
        for column, sets, pairs in (
            (self.traits, self.trait_sets, tables.traits),
            (self.aggregates, self.aggregate_sets, tables.aggregates),
            (
                self.attributes,
                self.attribute_sets,
                [(id_, (key, value)) for id_, key, value in tables.attributes],
            ),
        ):
            members: dict[int, list[Any]] = defaultdict(list)
            for provider_id, member in pairs:
                members[provider_id].append(member)
            numbers = {provider_id: sets.number_of(held) for provider_id, held in members.items()}
            column.extend(np.array([numbers.get(id_, 0) for id_ in ids], np.int32))

    def _append_inventories(self, tables: Tables) -> None:
        if not tables.inventories:
            return
        provider_ids, class_ids, *numbers, ratios, used = zip(*tables.inventories, strict=True)
        rows = self.row_of.values[np.array(provider_ids, np.int64)]
        classes = np.array(class_ids, np.int64)
        total, reserved, min_unit, max_unit, step = (np.array(n, np.int64) for n in numbers)
        product = (total - reserved) * np.array(ratios, np.float64)
        capacity = np.clip(product, -MAX_CAPACITY, MAX_CAPACITY).astype(np.int64)
        taken = np.array(used, np.int64)
        order = np.lexsort((rows, classes))
        for class_id in np.unique(classes).tolist():
            among = order[classes[order] == class_id]
            units = np.stack((min_unit[among], max_unit[among], step[among]))
            inventories = self.inventories.setdefault(class_id, ClassInventories())
            inventories.extend(rows[among], capacity[among], taken[among], units)

    def _compact(self) -> None:
        """Leave the dead rows behind."""
        tables = self._tables()
        versions = self.tree_version.values.copy()
        roots = self.tree_root_id.values.copy()
        self._clear()
        self._append(tables)
        for root_id, version in zip(roots.tolist(), versions.tolist(), strict=True):
            tree = self.tree_of_root.get(root_id)
            if tree is not None:
                self.tree_version.values[tree] = version + 1

    def _tables(self) -> Tables:
        """The live rows, as the ledger would give them."""
        tables = Tables(providers=[], inventories=[], traits=[], aggregates=[])
        for tree in np.flatnonzero(self.tree_size.values).tolist():
            root_id = int(self.tree_root_id.values[tree])
            for row in self.rows_of(tree):
                id_ = int(self.provider_id.values[row])
                up = int(self.parent.values[row])
                parent = None if up < 0 else int(self.provider_id.values[up])
                tables.providers.append((id_, self.uuid(row), parent, root_id))
                for trait in self.trait_sets.members(self.traits.values[row]):
                    tables.traits.append((id_, trait))
                for aggregate in self.aggregate_sets.members(self.aggregates.values[row]):
                    tables.aggregates.append((id_, aggregate))
                for key, value in self.attribute_sets.members(self.attributes.values[row]):
                    tables.attributes.append((id_, key, value))
        for class_id, inventories in self.inventories.items():
            columns = (column.values.tolist() for column in inventories.columns())
            for row, capacity, free, low, high, step in zip(*columns, strict=True):
                if self.alive(row):
                    id_ = int(self.provider_id.values[row])
                    used = capacity - free
                    tables.inventories.append(
                        (id_, class_id, capacity, 0, low, high, step, 1.0, used)
                    )
        return tables


class Sharing:
    """Providers that serve other trees through a common aggregate."""

    def __init__(self, snapshot: Snapshot) -> None:
        shares = snapshot.trait_ids.get(SHARES, -1)
        sharing: Mask = snapshot.trait_sets.meeting([{shares}])
        self._snapshot = snapshot
        self.rows: RowNumbers = np.flatnonzero(sharing[snapshot.traits.values]).astype(np.int32)
        """Rows that share, ascending."""
        self._trees = self._trees_by_aggregate() if len(self.rows) else {}
        self._reach: dict[int, RowNumbers] = {}

    def _trees_by_aggregate(self) -> dict[str, RowNumbers]:
        snapshot = self._snapshot
        numbers = snapshot.aggregates.values
        members = np.flatnonzero(numbers)
        found: dict[str, list[RowNumbers]] = defaultdict(list)
        for number in np.unique(numbers[members]).tolist():
            trees = snapshot.tree.values[members[numbers[members] == number]]
            for aggregate in snapshot.aggregate_sets.members(number):
                found[aggregate].append(np.unique(trees))
        return {aggregate: np.unique(np.concatenate(t)) for aggregate, t in found.items()}

    def reach(self, row: int) -> RowNumbers:
        """The trees, other than its own, that a sharing row serves."""
        found = self._reach.get(row)
        if found is None:
            number = self._snapshot.aggregates.values[row]
            joined = [
                self._trees[aggregate]
                for aggregate in sorted(self._snapshot.aggregate_sets.members(number))
            ]
            trees = np.unique(np.concatenate(joined)) if joined else np.empty(0, np.int32)
            found = trees[trees != self._snapshot.tree.values[row]]
            self._reach[row] = found
        return found
