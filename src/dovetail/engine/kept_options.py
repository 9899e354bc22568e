"""Options of a request's shape, kept from search to search and brought up to date by change.

A search asks for the rows that can fill each slot and the trees where every slot has some. Both are
kept with the snapshot by shape (`request_key`). The next search of the same shape looks only at the
rows and trees that the snapshot's journal names, and splices what it finds into what is known: the
same as a search from scratch (`feasible`), at a cost that follows the changes. If names changed, or
more than the journal or `MOST_SPLICED` trees, everything is looked at anew. Bounded by bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence

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
from dovetail.engine.inventories import RowNumbers, are_unbroken, bounds_in
from dovetail.engine.journal import ChangeNote
from dovetail.engine.request_key import request_key
from dovetail.engine.sharing import Sharing
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.tree_kinds import few_kinds_in_steps
from dovetail.engine.tree_states import TreeState, TreeStates
from dovetail.engine.work import Work, is_step

MOST_SPLICED = 256
"""Changed trees beyond which looking at everything costs no more."""

MOST_RECALLED = 8
"""Changed trees up to which each is looked up by its state; more are looked at all at once."""

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
        numbers: dict[Hashable, int] = {}
        self._numbers = [numbers.setdefault(wish.key, len(numbers)) for wish in self._wishes]
        """The same for wishes with the same key, which takes long to hash."""
        self._rows: dict[int, WishRows] = {}
        self._sharing: Sharing | None = None
        self._names = -1
        self._mark = -1
        self._alive: Mask = np.zeros(0, np.bool_)
        self._rows_size = 0
        self.slots: list[Slot] = []
        self.trees: RowNumbers = np.empty(0, np.int32)
        """Where every slot has an option and the root is as asked, in their fixed order."""
        self.patterns = TreePatterns()
        """Which combinations each tree has, as far as somebody wanted to know."""
        self._states = TreeStates(request)

    @property
    def size(self) -> int:
        """In bytes, about."""
        of_trees = self._alive.nbytes + self.trees.nbytes + self._states.size
        return self._rows_size + of_trees + self.patterns.size

    def _take(self, rows: dict[int, WishRows], slots: list[Slot]) -> None:
        self._rows, self.slots = rows, slots
        own = sum(mine.nbytes + sharing.nbytes for mine, sharing in rows.values())
        pairs = {id(slot.shared_tree): 2 * slot.shared_tree.nbytes for slot in slots}
        groups = (len(self._request.groups) + len(slots)) * BYTES_PER_GROUP
        self._rows_size = own + sum(pairs.values()) + groups

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
        rows: dict[int, WishRows] = {}
        for number, wish in zip(self._numbers, self._wishes, strict=True):
            if number not in rows:
                rows[number] = rows_as_wished(snapshot, wish)
                yield
        slots = yield from self._slots_with(snapshot, rows)
        alive = yield from feasible_by_kind(snapshot, self._request, slots)
        self._take(rows, slots)
        self._alive = alive
        self.trees = in_tree_order(snapshot, alive)
        self.patterns, self._states = TreePatterns(), TreeStates(self._request)

    def _splice(
        self, snapshot: Snapshot, notes: Collection[ChangeNote], trees: RowNumbers
    ) -> Work[None]:
        self._states.learn(self.patterns)
        is_told = len(trees) <= MOST_RECALLED and all(note.is_usage for note in notes)
        keys = list(self._states.keys_of(snapshot, trees)) if is_told else []
        if keys and not self._has_sharing:
            states = [self._states.find(key) for key in keys]
            if None not in states:
                yield from self._recall(snapshot, trees, [each for each in states if each])
                return
        yield from self._look_at(snapshot, notes, trees)
        if not self._has_sharing:
            for tree, key in zip(trees.tolist(), keys, strict=bool(keys)):
                state = self._state_of(snapshot, tree)
                self._states.add(key, state)
                self._states.enter(self.patterns, tree, state)

    @property
    def _has_sharing(self) -> bool:
        """Whether rows are as wished that share: states of trees do not tell what they do."""
        return any(len(each.sharing) for each in self._rows.values())

    def _recall(
        self, snapshot: Snapshot, trees: RowNumbers, states: Sequence[TreeState]
    ) -> Work[None]:
        """Trees have come into states that others were in: no row of theirs is looked at."""
        rows = dict(self._rows)
        for tree, state in zip(trees.tolist(), states, strict=True):
            start = int(snapshot.tree_start.values[tree])
            stop = start + int(snapshot.tree_size.values[tree])
            for number, local in enumerate(state.rows):
                own, sharing = rows[number]
                low, high = own.searchsorted(np.array((start, stop), np.int32))
                fresh = np.frombuffer(local, np.int32) + np.int32(start)
                if own[low:high].tobytes() != fresh.tobytes():
                    rows[number] = WishRows(np.concatenate((own[:low], fresh, own[high:])), sharing)
        if any(rows[number] is not known for number, known in self._rows.items()):
            slots = yield from self._slots_with(snapshot, rows)
            self._take(rows, slots)
        fits = np.array([state.fits for state in states])
        if not np.array_equal(self._alive.take(trees), fits):
            self._alive = self._alive.copy()
            self._alive[trees] = fits
            self.trees = in_tree_order(snapshot, self._alive)
        for tree, state in zip(trees.tolist(), states, strict=True):
            self._states.enter(self.patterns, tree, state)

    def _state_of(self, snapshot: Snapshot, tree: int) -> TreeState:
        """What is known of a tree that was looked at."""
        start = int(snapshot.tree_start.values[tree])
        edges = np.array((start, start + int(snapshot.tree_size.values[tree])), np.int32)
        found = []
        for number in range(len(self._rows)):
            own = self._rows[number].own
            low, high = own.searchsorted(edges)
            found.append((own[low:high] - np.int32(start)).tobytes())
        return TreeState(tuple(found), fits=bool(self._alive[tree]))

    def _look_at(
        self, snapshot: Snapshot, notes: Collection[ChangeNote], trees: RowNumbers
    ) -> Work[None]:
        """Look at the rows of trees that changed."""
        changed = rows_noted(notes)
        known, rows = self._rows, dict[int, WishRows]()
        shared = self._is_shared
        same = usage_only = all(note.is_usage for note in notes)
        for at, (number, wish) in enumerate(zip(self._numbers, self._wishes, strict=True)):
            if number not in rows:
                fresh = rows_as_wished(snapshot, wish, changed)
                old = known[number]
                new = WishRows(
                    spliced(old.own, changed, fresh.own),
                    spliced(old.sharing, changed, fresh.sharing),
                )
                same = same and new.own is old.own and new.sharing is old.sharing
                rows[number] = new
            if is_step(at):
                yield
        if not same:
            yield from self._take_rows(snapshot, rows, trees, usage_only=usage_only)
        if shared or self._is_shared:
            # What a tree is offered from elsewhere changes when others do, or go.
            self.patterns = TreePatterns()
        else:
            self.patterns.forget(trees)

    @property
    def _is_shared(self) -> bool:
        """Whether a slot has options in trees other than their own."""
        return any(len(slot.shared_tree) for slot in self.slots)

    def _take_rows(
        self,
        snapshot: Snapshot,
        rows: dict[int, WishRows],
        trees: RowNumbers,
        *,
        usage_only: bool,
    ) -> Work[None]:
        """Make slots and trees those of these rows, where only some trees may have changed."""
        slots = yield from self._slots_with(snapshot, rows)
        if any(
            mine.shared_tree is not theirs.shared_tree
            for mine, theirs in zip(slots, self.slots, strict=True)
        ):
            alive = yield from feasible_in_steps(snapshot, self._request, slots)
        else:
            to_judge = self._in_doubt(slots, trees) if usage_only else slots
            alive = yield from self._judged(snapshot, to_judge, trees)
        # All at once: whoever gives up in the middle leaves behind what was true before.
        self._take(rows, slots)
        if alive is not self._alive:
            self._alive, self.trees = alive, in_tree_order(snapshot, alive)

    def _slots_with(self, snapshot: Snapshot, rows: dict[int, WishRows]) -> Work[list[Slot]]:
        """The slots; what is shared with other trees is kept where nothing about it changed."""
        same = snapshot.sharing is self._sharing
        known = dict(zip(self._numbers, self.slots, strict=True)) if same and self.slots else {}
        found: dict[int, Slot] = {}
        slots = []
        for number, wish in zip(self._numbers, self._wishes, strict=True):
            slot = found.get(number)
            if slot is None:
                own, sharing = rows[number]
                pairs = self._known_pairs(known.get(number), number, sharing)
                if pairs is None:
                    pairs = pairs_as_wished(snapshot, wish, sharing)
                    yield
                slot = found[number] = Slot(wish.group, wish.resources, own, *pairs)
            slots.append(
                Slot(wish.group, wish.resources, slot.own, slot.shared_tree, slot.shared_row)
            )
        return slots

    def _known_pairs(
        self, slot: Slot | None, number: int, sharing: RowNumbers
    ) -> tuple[RowNumbers, RowNumbers] | None:
        if slot is None:
            return None
        old = self._rows[number].sharing
        if old is not sharing and not np.array_equal(old, sharing):
            return None
        return slot.shared_tree, slot.shared_row

    def _in_doubt(self, slots: list[Slot], trees: RowNumbers) -> list[Slot]:
        """The slots that may have lost their last option, where some trees' use alone changed.

        Of trees that were feasible these are the slots that have other rows than before; if traits
        are required of several slots together, or if a tree may have become feasible, all are.
        """
        together = any(slot.group.required for slot in slots if not slot.group.suffix)
        if together or not self._alive.take(trees).all():
            return slots
        return [
            mine for mine, old in zip(slots, self.slots, strict=True) if mine.own is not old.own
        ]

    def _judged(self, snapshot: Snapshot, slots: Sequence[Slot], trees: RowNumbers) -> Work[Mask]:
        """Which trees are feasible, where only some of them may have changed."""
        missing = snapshot.tree_size.size - len(self._alive)
        fits = yield from feasible_among(snapshot, self._request, slots, trees)
        if not missing and np.array_equal(self._alive.take(trees), fits):
            return self._alive
        alive: Mask = np.concatenate((self._alive, np.zeros(missing, np.bool_)))
        alive[trees] = fits
        return alive


def feasible_by_kind(snapshot: Snapshot, request: Request, slots: Sequence[Slot]) -> Work[Mask]:
    """What `feasible_in_steps` says, from one tree of each kind where that tells."""
    differ = any(len(slot.shared_tree) or slot.group.in_tree is not None for slot in slots)
    kinds = None if differ else (yield from few_kinds_in_steps(snapshot))
    if kinds is None:
        return (yield from feasible_in_steps(snapshot, request, slots))
    fits = yield from feasible_among(snapshot, request, slots, kinds.samples)
    return fits.take(kinds.of)


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
    for at, slot in enumerate(slots):
        if is_step(at):
            yield
        alike = id(slot.own), id(slot.shared_tree)
        if alike in seen and not (masks and not slot.group.suffix):
            continue
        seen.add(alike)
        if not len(slot.shared_tree) and not (masks and not slot.group.suffix):
            lows, highs = slot.own.searchsorted(edges)
            alive &= lows < highs
            continue
        options = options_of(slot, trees, edges)
        alive &= options.counts > 0
        if masks and not slot.group.suffix:
            sets = snapshot.traits.values.take(options.in_turn())
            places = np.arange(len(trees)).repeat(options.counts)
            for number, mask in enumerate(masks):
                met[number, places.compress(mask.take(sets))] = True
    alive &= met.all(axis=0)
    return alive


def rows_noted(notes: Iterable[ChangeNote]) -> RowNumbers:
    """All rows that the notes name, each once, ascending."""
    extents = sorted({(note.first, note.last) for note in notes})
    if len(extents) == 1:
        return np.arange(*extents[0], dtype=np.int32)
    edges = np.array(extents, np.intp)
    # Extents of trees do not overlap: rows are never used again.
    found: RowNumbers = spans(edges[:, 0], edges[:, 1]).astype(np.int32)
    return found


def spliced(known: RowNumbers, changed: RowNumbers, fresh: RowNumbers) -> RowNumbers:
    """What is known, with those among the rows that changed which are there now; all ascending."""
    if not len(known):
        return fresh if len(fresh) else known
    if are_unbroken(changed):
        low, high = bounds_in(known, changed)
        if known[low:high].tobytes() == fresh.tobytes():
            return known
        return np.concatenate((known[:low], fresh, known[high:]))
    at = known.searchsorted(changed)
    there = np.minimum(at, len(known) - 1)
    old: NDArray[np.intp] = at[known[there] == changed]
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
