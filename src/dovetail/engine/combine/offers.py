"""Offers: the options of each slot, for many trees at once; the combiner combines them.

An offer is a small table per tree: a line per slot and option, with the option's local number and
whatever the rules want to know of it. A row of the tree is numbered from the tree's first row, so
that trees built and used alike have equal offers and need to be worked out only once; a row that
is shared from elsewhere is the complement (~) of its number in the snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from dovetail.core.columns import Mask, spans
from dovetail.engine.feasible import Slot, SlotWish
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.work import Work, is_step

Table = NDArray[np.int64]

SLOT, OPTION, ANSWERS = 0, 1, 2
"""Columns of an offer; the answers are some for traits, then one for each contended class that the
slot of the line wants."""

WORD = 62
"""Requirements that one column can tell of, a bit each."""


class Questions(msgspec.Struct, frozen=True):
    """What the rules want to know of an option, beside its number."""

    contended: Mapping[str, int]
    """Classes wanted by several slots, and how much in all."""
    required: Sequence[Mask]
    """Traits that the unsuffixed group needs between its rows: which trait sets have them."""

    @property
    def words(self) -> int:
        """Columns that tell which of the requirements are met."""
        return -(-len(self.required) // WORD)

    def contended_columns(self, slot: Slot | SlotWish) -> list[tuple[str, int]]:
        """The contended classes that a slot wants; each with the column of its lines that tells."""
        names = [name for name in slot.resources if name in self.contended]
        return [(name, at) for at, name in enumerate(names, ANSWERS + self.words)]

    def width(self, slots: Sequence[Slot]) -> int:
        most = max(len(self.contended_columns(slot)) for slot in slots)
        return ANSWERS + self.words + most


def extents(snapshot: Snapshot, trees: RowNumbers) -> NDArray[np.int32]:
    """Where the rows of each tree begin, and where they end."""
    starts = snapshot.tree_start.values.take(trees)
    return np.array((starts, starts + snapshot.tree_size.values.take(trees)))


class SlotOptions(NamedTuple):
    """The rows that may fill a slot in some trees."""

    rows: RowNumbers
    firsts: NDArray[np.intp]
    counts: NDArray[np.intp]
    """For each tree where in `rows` its options begin, and how many they are."""

    def of(self, which: Mask) -> SlotOptions:
        """Those of some of the trees."""
        return SlotOptions(self.rows, self.firsts[which], self.counts[which])

    def in_turn(self) -> RowNumbers:
        """The rows of these trees alone, tree by tree."""
        if len(self.firsts) == 1:
            first = int(self.firsts[0])
            return self.rows[first : first + int(self.counts[0])]
        return self.rows.take(spans(self.firsts, self.firsts + self.counts))


def options_of(slot: Slot, trees: RowNumbers, extents: NDArray[np.int32]) -> SlotOptions:
    lows, highs = slot.own.searchsorted(extents)
    own = SlotOptions(slot.own, lows, highs - lows)
    if not len(slot.shared_tree):
        return own
    lows, highs = np.searchsorted(slot.shared_tree, (trees, trees + 1))
    shared = slot.shared_row[spans(lows, highs)]
    places = np.arange(len(trees))
    order = np.argsort(
        np.concatenate((np.repeat(places, own.counts), np.repeat(places, highs - lows))),
        kind="stable",
    )
    counts = own.counts + highs - lows
    return SlotOptions(
        np.concatenate((own.in_turn(), shared))[order], counts.cumsum() - counts, counts
    )


def offers_in_steps(
    snapshot: Snapshot, slots: Sequence[Slot], questions: Questions, trees: RowNumbers
) -> Work[tuple[Table, NDArray[np.intp]]]:
    """The offers of all trees below each other, and where each of them ends."""
    edges = extents(snapshot, trees)
    found = []
    for at, slot in enumerate(slots):
        found.append(options_of(slot, trees, edges))
        if is_step(at):
            yield
    totals = np.array([each.counts for each in found])
    rows = np.concatenate([each.in_turn() for each in found])
    places = (np.arange(totals.size) % len(trees)).repeat(totals.ravel())
    lines: Table = np.zeros((len(rows), questions.width(slots)), np.int64)
    lines[:, SLOT] = np.arange(len(slots)).repeat(totals.sum(axis=1))
    lines[:, OPTION] = _local_numbers(snapshot, trees.take(places), rows)
    last = 0
    for at, (slot, each) in enumerate(zip(slots, totals.sum(axis=1).tolist(), strict=True)):
        first, last = last, last + each
        for column, answer in _answers_of(snapshot, slot, questions, rows[first:last]):
            lines[first:last, column] = answer
        if is_step(at):
            yield
    if len(trees) > 1:
        # So far slot by slot.
        lines = lines.take(places.argsort(kind="stable"), axis=0)
    return lines, totals.sum(axis=0).cumsum()


def _local_numbers(snapshot: Snapshot, trees: RowNumbers, rows: RowNumbers) -> RowNumbers:
    """How offers call each of the rows, which is an option in the tree beside it."""
    own = snapshot.tree.values.take(rows) == trees
    return np.where(own, rows - snapshot.tree_start.values.take(trees), ~rows)


def _answers_of(
    snapshot: Snapshot, slot: Slot, questions: Questions, rows: RowNumbers
) -> list[tuple[int, NDArray[np.int64]]]:
    """Columns, and what stands there for each of the rows."""
    found = []
    if not slot.group.suffix:
        for word in range(questions.words):
            met = np.zeros(len(rows), np.int64)
            for at, mask in enumerate(questions.required[word * WORD : (word + 1) * WORD]):
                met |= mask[snapshot.traits.values[rows]].astype(np.int64) << at
            found.append((ANSWERS + word, met))
    for name, at in questions.contended_columns(slot):
        inventories = snapshot.inventories_of(name)
        assert inventories
        # More than all slots want together makes no difference: cut off, offers are more alike.
        wanted = questions.contended[name]
        found.append((at, np.minimum(inventories.headroom(rows), wanted)))
    return found
