"""Options of a request's shape, kept from search to search and brought up to date by change.

A search asks for the rows that can fill each slot and the trees where every slot has some. Both are
kept with the snapshot by shape (`request_key`). The next search of the same shape looks only at the
rows and trees that the snapshot's journal names, and splices what it finds into what is known: the
same as a search from scratch (`feasible`), at a cost that follows the changes. If names changed, or
more than the journal or `MOST_SPLICED` trees, everything is looked at anew. Bounded by bytes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.core.bounded_cache import SizedCache
from dovetail.core.columns import Mask, spans
from dovetail.core.request import Request
from dovetail.engine.combine.combiner import MOST_STORE_BYTES
from dovetail.engine.combine.offers import extents, options_of
from dovetail.engine.combine.patterns import TreePatterns
from dovetail.engine.feasible import (
    Slot,
    WishRows,
    collective_masks,
    feasible_in_steps,
    in_tree_order,
    pairs_as_wished,
    rows_as_wished,
    suitable_roots,
    wishes_of,
)
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.journal import ChangeNote
from dovetail.engine.request_key import request_key
from dovetail.engine.sharing import Sharing
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.work import Work

MOST_SPLICED = 256
"""Changed trees beyond which looking at everything costs no more."""

KEPT_OPTIONS = "options"
MOST_BYTES = 64 * 2**20
"""Of all shapes together."""

BYTES_PER_GROUP = 2048
"""What a group is reckoned with, beside its rows: its part of the key and of the request."""


class RequestOptions:
    """The options of one shape as of one moment of the snapshot."""

    def __init__(self, request: Request, key: Hashable) -> None:
        self.key = key
        self._request = request
        self._wishes = list(wishes_of(request))
        self._keys = [wish.key for wish in self._wishes]
        self._rows: dict[Hashable, WishRows] = {}
        self._sharing: Sharing | None = None
        self._names = -1
        self._mark = -1
        self._alive: Mask = np.zeros(0, np.bool_)
        self.slots: list[Slot] = []
        self.trees: RowNumbers = np.empty(0, np.int32)
        """Where every slot has an option and the root is as asked, in their fixed order."""
        self.patterns = TreePatterns()
        """Which combinations each tree has, as far as somebody wanted to know."""

    @property
    def size(self) -> int:
        """In bytes, about."""
        rows = sum(own.nbytes + sharing.nbytes for own, sharing in self._rows.values())
        pairs = {id(slot.shared_tree): 2 * slot.shared_tree.nbytes for slot in self.slots}
        groups = (len(self._request.groups) + len(self.slots)) * BYTES_PER_GROUP
        known = self._alive.nbytes + self.trees.nbytes + self.patterns.size
        return rows + sum(pairs.values()) + groups + known

    def refresh(self, snapshot: Snapshot) -> Work[None]:
        """Make them those of the snapshot as it is; it must not change until this has ended."""
        if self._mark == snapshot.journal.mark and self._names == snapshot.names_version:
            return
        notes = None
        if self._mark >= 0 and self._names == snapshot.names_version:
            notes = snapshot.journal.since(self._mark)
        trees = None if notes is None else sorted({note.tree for note in notes})
        if notes is None or trees is None or len(trees) > MOST_SPLICED:
            yield from self._look_at_all(snapshot)
        else:
            yield from self._splice(snapshot, notes, np.array(trees, np.int32))
        self._mark, self._names = snapshot.journal.mark, snapshot.names_version
        self._sharing = snapshot.sharing

    def _look_at_all(self, snapshot: Snapshot) -> Work[None]:
        rows: dict[Hashable, WishRows] = {}
        for key, wish in zip(self._keys, self._wishes, strict=True):
            if key not in rows:
                rows[key] = rows_as_wished(snapshot, wish)
                yield
        slots = yield from self._slots_with(snapshot, rows)
        alive = yield from feasible_in_steps(snapshot, self._request, slots)
        self._rows, self.slots, self._alive = rows, slots, alive
        self.trees = in_tree_order(snapshot, alive)
        self.patterns = TreePatterns()

    def _splice(
        self, snapshot: Snapshot, notes: Iterable[ChangeNote], trees: RowNumbers
    ) -> Work[None]:
        changed = rows_noted(notes)
        known, rows = self._rows, dict[Hashable, WishRows]()
        for key, wish in zip(self._keys, self._wishes, strict=True):
            if key not in rows:
                fresh = rows_as_wished(snapshot, wish, changed)
                old = known[key]
                rows[key] = WishRows(
                    spliced(old.own, changed, fresh.own),
                    spliced(old.sharing, changed, fresh.sharing),
                )
                yield
        slots = yield from self._slots_with(snapshot, rows)
        if any(
            mine.shared_tree is not theirs.shared_tree
            for mine, theirs in zip(slots, self.slots, strict=True)
        ):
            alive = yield from feasible_in_steps(snapshot, self._request, slots)
        else:
            alive = yield from self._judged(snapshot, slots, trees)
        # All at once: whoever gives up in the middle leaves behind what was true before.
        self._rows, self.slots = rows, slots
        if alive is not self._alive:
            self._alive, self.trees = alive, in_tree_order(snapshot, alive)
        if any(len(slot.shared_tree) for slot in slots):
            # What a tree is offered from elsewhere changes when others do.
            self.patterns = TreePatterns()
        else:
            self.patterns.forget(trees)

    def _slots_with(self, snapshot: Snapshot, rows: dict[Hashable, WishRows]) -> Work[list[Slot]]:
        """The slots; what is shared with other trees is kept where nothing about it changed."""
        same = snapshot.sharing is self._sharing
        known = dict(zip(self._keys, self.slots, strict=True)) if same and self.slots else {}
        found: dict[Hashable, Slot] = {}
        slots = []
        for key, wish in zip(self._keys, self._wishes, strict=True):
            slot = found.get(key)
            if slot is None:
                own, sharing = rows[key]
                pairs = self._known_pairs(known.get(key), key, sharing)
                if pairs is None:
                    pairs = pairs_as_wished(snapshot, wish, sharing)
                    yield
                slot = found[key] = Slot(wish.group, wish.resources, own, *pairs)
            slots.append(
                Slot(wish.group, wish.resources, slot.own, slot.shared_tree, slot.shared_row)
            )
        return slots

    def _known_pairs(
        self, slot: Slot | None, key: Hashable, sharing: RowNumbers
    ) -> tuple[RowNumbers, RowNumbers] | None:
        if slot is None or not np.array_equal(self._rows[key].sharing, sharing):
            return None
        return slot.shared_tree, slot.shared_row

    def _judged(self, snapshot: Snapshot, slots: Sequence[Slot], trees: RowNumbers) -> Work[Mask]:
        """Which trees are feasible, where only some of them may have changed."""
        missing = snapshot.tree_size.size - len(self._alive)
        fits = yield from feasible_among(snapshot, self._request, slots, trees)
        if not missing and np.array_equal(self._alive.take(trees), fits):
            return self._alive
        alive: Mask = np.concatenate((self._alive, np.zeros(missing, np.bool_)))
        alive[trees] = fits
        return alive


def feasible_among(
    snapshot: Snapshot, request: Request, slots: Sequence[Slot], trees: RowNumbers
) -> Work[Mask]:
    """What `feasible_in_steps` says, of a few trees."""
    alive: Mask = snapshot.tree_size.values.take(trees) > 0
    alive &= suitable_roots(snapshot, request, trees)
    edges = extents(snapshot, trees)
    masks = collective_masks(snapshot, slots)
    met = np.zeros((len(masks), len(trees)), np.bool_)
    seen: set[tuple[int, int]] = set()
    for slot in slots:
        alike = id(slot.own), id(slot.shared_tree)
        if alike in seen and not (masks and not slot.group.suffix):
            continue
        seen.add(alike)
        options = options_of(slot, trees, edges)
        alive &= options.counts > 0
        if masks and not slot.group.suffix:
            sets = snapshot.traits.values.take(options.in_turn())
            places = np.arange(len(trees)).repeat(options.counts)
            for at, mask in enumerate(masks):
                met[at, places.compress(mask.take(sets))] = True
        yield
    alive &= met.all(axis=0)
    return alive


def rows_noted(notes: Iterable[ChangeNote]) -> RowNumbers:
    """All rows that the notes name, each once, ascending."""
    edges = np.array(sorted({(note.first, note.last) for note in notes}), np.intp)
    # Extents of trees do not overlap: rows are never used again.
    found: RowNumbers = spans(edges[:, 0], edges[:, 1]).astype(np.int32)
    return found


def spliced(known: RowNumbers, changed: RowNumbers, fresh: RowNumbers) -> RowNumbers:
    """What is known, with those among the rows that changed which are there now; all ascending."""
    at = known.searchsorted(changed)
    there = np.minimum(at, len(known) - 1)
    old: NDArray[np.intp] = at[known[there] == changed] if len(known) else at[:0]
    if len(old) == len(fresh) and bool((known[old] == fresh).all()):
        return known
    rest = np.delete(known, old)
    return np.insert(rest, rest.searchsorted(fresh), fresh)


def options_in_steps(snapshot: Snapshot, request: Request) -> Work[RequestOptions]:
    """The options of a request in the snapshot as it is, kept for the next of its kind."""
    key = request_key(request)
    found = kept_options(snapshot).get(key) or RequestOptions(request, key)
    yield from found.refresh(snapshot)
    keep(snapshot, found)
    return found


def keep(snapshot: Snapshot, options: RequestOptions) -> None:
    """Keep options, which a search may have made larger, as far as there is room."""
    if options.patterns.size > MOST_STORE_BYTES:
        options.patterns = TreePatterns()
    kept_options(snapshot).put(options.key, options, options.size)


def kept_options(snapshot: Snapshot) -> SizedCache[Hashable, RequestOptions]:
    return snapshot.cached(KEPT_OPTIONS, lambda: SizedCache(MOST_BYTES))
