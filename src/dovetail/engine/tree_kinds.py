"""Kinds of trees: trees that are alike in everything but their names, told apart once for all.

Two trees are of a kind only if they have the same shape, and their rows, one by one, the same sets
of traits, aggregates and attributes and the same inventories with as much free. What a request is
offered by a tree, and what ranking makes of it, is then the same in both, unless rows of other
trees are shared with them: so the combiner and ranking work it out for one of each kind. Fleets are
bought in batches, so there are few kinds.

Exact: codes of rows and trees are products of numbers, renumbered before they overflow; nothing is
hashed. Linear in the rows that are looked at. Kept with the snapshot and brought up to date by its
journal: trees that changed are compared with each other alone, so trees of different kinds may be
alike after changes, never the other way round. Those who take in a fleet have them made (`warm`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dovetail.core.columns import spans
from dovetail.engine.inventories import ClassInventories, RowNumbers
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.work import Work, finished

Numbers = NDArray[np.int64]

KINDS = "kinds"

WORTH_KINDS = 64
"""Trees fewer than which are looked at one by one: most searches look at the few that changed."""

WORTH_SPREADING = 8
"""Trees for each kind on average from which on what holds for one of a kind is spread over all."""

TABLED = 2**22
"""Codes below that are renumbered by a table, which is much faster than sorting them."""


class TreeKinds:
    """By number of the tree the number of its kind, as of one moment of the snapshot."""

    def __init__(self) -> None:
        self.of: RowNumbers = np.empty(0, np.int32)
        self._mark = -1
        self._next = 0
        self._samples: RowNumbers | None = None

    @property
    def are_few(self) -> bool:
        """Whether they were made, and looking at one of each kind is much less than at all."""
        return self._mark >= 0 and self._next * WORTH_SPREADING <= len(self.of)

    @property
    def samples(self) -> RowNumbers:
        """By number of the kind its first tree; of a kind that is no more, any tree."""
        if self._samples is None:
            firsts = np.zeros(self._next, np.int32)
            # Written backwards: what is written last stays, which is the first of its kind.
            firsts[self.of[::-1]] = np.arange(len(self.of) - 1, -1, -1, dtype=np.int32)
            self._samples = firsts
        return self._samples

    def refresh(self, snapshot: Snapshot) -> Work[None]:
        """Make them those of the snapshot as it is; it must not change until this has ended."""
        if self._mark == snapshot.journal.mark:
            return
        notes = snapshot.journal.since(self._mark) if self._mark >= 0 else None
        count, first = snapshot.tree_size.size, self._next
        if notes is None or first > 2 * count:
            trees, first = np.arange(count, dtype=np.int32), 0
        else:
            trees = np.array(sorted({note.tree for note in notes}), np.int32)
        kinds = yield from kinds_among(snapshot, trees)
        # Another array: copies of the snapshot may have this one.
        found = np.zeros(count, np.int32)
        found[: len(self.of)] = self.of
        found[trees] = first + kinds
        self.of, self._mark, self._samples = found, snapshot.journal.mark, None
        self._next = first + int(kinds.max(initial=-1)) + 1


def kinds_among(snapshot: Snapshot, trees: RowNumbers) -> Work[RowNumbers]:
    """The kinds of these trees, compared with each other, numbered from 0."""
    sizes = snapshot.tree_size.values.take(trees)
    starts = snapshot.tree_start.values.take(trees)
    rows = spans(starts, starts + sizes)
    codes = np.zeros(len(rows), np.int64)
    for column in (snapshot.traits, snapshot.aggregates, snapshot.attributes):
        codes = with_values(codes, column.values.take(rows).astype(np.int64))
        yield
    for inventories in snapshot.inventories.values():
        entries = yield from entry_kinds(inventories, rows)
        codes = with_values(codes, entries)
        yield
    firsts = sizes.cumsum(dtype=np.int64) - sizes
    kinds = np.zeros(len(trees), np.int32)
    found = 0
    for size in np.unique(sizes).tolist():
        mine = np.flatnonzero(sizes == size)
        table = codes.take(firsts.take(mine)[:, None] + np.arange(size))
        shapes = snapshot.tree_shape.values.take(trees.take(mine))
        alike = yield from line_kinds(shapes, table)
        kinds[mine] = found + alike
        found += int(alike.max()) + 1
    return kinds


def line_kinds(shapes: RowNumbers, table: Numbers) -> Work[Numbers]:
    """The kinds of trees of one size, given the shape of each and a line with codes of its rows."""
    kinds = renumbered(shapes.astype(np.int64))
    lines, width = table.shape
    if lines < width:
        # A few large trees: line by line, so that the whole is linear in the rows.
        numbers: dict[tuple[int, bytes], int] = {}
        keys = zip(kinds.tolist(), table, strict=True)
        found = [numbers.setdefault((shape, line.tobytes()), len(numbers)) for shape, line in keys]
        return np.array(found, np.int64)
    for column in table.T:
        kinds = with_values(kinds, column)
        yield
    return kinds


def entry_kinds(inventories: ClassInventories, rows: NDArray[np.intp]) -> Work[Numbers]:
    """For each row what it has of a class, as a number; 0 if it has none."""
    found = np.zeros(len(rows), np.int64)
    if not inventories.rows.size or not len(rows):
        return found
    at = inventories.rows.values.searchsorted(rows)
    np.minimum(at, inventories.rows.size - 1, out=at)
    there = np.flatnonzero(inventories.rows.values.take(at) == rows)
    entries = at.take(there)
    yield
    codes = np.zeros(len(entries), np.int64)
    for column in inventories.columns()[1:]:
        codes = with_values(codes, column.values.take(entries))
        yield
    found[there] = 1 + codes
    return found


def with_values(codes: Numbers, values: NDArray[np.signedinteger]) -> Numbers:
    """Codes, from 0 on, that are equal where both the codes and the values are.

    The product fits 64 bits: there are no more codes than rows, nor values than four times that.
    """
    if not len(codes):
        return codes
    low, high = int(values.min()), int(values.max())
    if low == high:
        return codes
    width = high - low + 1
    if width > len(codes) * 4:
        _, which = np.unique(values, return_inverse=True)
        values, low = which.astype(np.int64), 0
        width = int(values.max()) + 1
    return renumbered(codes * width + (values.astype(np.int64) - low))


def renumbered(codes: Numbers) -> Numbers:
    """The same codes without gaps between them; all are 0 or more."""
    bound = int(codes.max()) + 1
    if bound > max(TABLED, len(codes)):
        _, which = np.unique(codes, return_inverse=True)
        return which.astype(np.int64)
    seen = np.zeros(bound, np.bool_)
    seen[codes] = True
    places = seen.cumsum(dtype=np.int64) - 1
    return places.take(codes)


def kinds_in_steps(snapshot: Snapshot) -> Work[RowNumbers]:
    """By number of the tree the number of its kind, in the snapshot as it is."""
    kinds = snapshot.cached(KINDS, TreeKinds)
    yield from kinds.refresh(snapshot)
    return kinds.of


def few_kinds_in_steps(snapshot: Snapshot) -> Work[TreeKinds | None]:
    """The kinds in the snapshot as it is, if they were made before and are few.

    For those who look at everything where they are not: making them would cost more.
    """
    kinds = snapshot.cached(KINDS, TreeKinds)
    if not kinds.are_few:
        return None
    yield from kinds.refresh(snapshot)
    return kinds if kinds.are_few else None


def warm(snapshot: Snapshot) -> None:
    """Have the kinds made before somebody waits for them."""
    finished(kinds_in_steps(snapshot))


def samples_of(kinds: RowNumbers) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where the first of each kind stands, and for each which of those stands for it."""
    numbers = renumbered(kinds.astype(np.int64))
    firsts = np.full(int(numbers.max(initial=-1)) + 1, len(kinds), np.intp)
    # Written backwards: what is written last stays, which is the first of its kind.
    firsts[numbers[::-1]] = np.arange(len(kinds) - 1, -1, -1)
    return firsts, numbers
