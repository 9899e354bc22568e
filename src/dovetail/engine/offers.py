"""What a slot can be filled with, for many trees at once.

For each tree an offer is a small table: a line per option with its local number and whatever the
rules want to know of it. A row of the tree is numbered from the tree's first row, so that trees
built and used alike have equal tables and need to be worked out only once; a row that is shared
from elsewhere is the complement (~) of its number in the snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from dovetail.engine.columns import Mask, Rows
from dovetail.engine.feasible import Slot
from dovetail.engine.snapshot import Snapshot

Table = NDArray[np.int64]

FIRST_BATCH = 16
LARGEST_BATCH = 1024
"""Batches grow: a small limit is served from the first, a long answer works in large strides."""


class Questions(msgspec.Struct, frozen=True):
    """What the rules want to know of an option, beside its number."""

    contended: Mapping[str, int]
    """Classes wanted by several slots, and how much in all."""
    required: Sequence[Mask]
    """Traits that the unsuffixed group needs between its rows: which trait sets have them."""


def batches(trees: Rows) -> Iterator[Rows]:
    size, done = FIRST_BATCH, 0
    while done < len(trees):
        yield trees[done : done + size]
        done += size
        size = min(size * 4, LARGEST_BATCH)


def options(snapshot: Snapshot, slot: Slot, trees: Rows) -> tuple[Rows, NDArray[np.intp]]:
    """The rows that may fill the slot, tree by tree, and how many each tree has."""
    starts = snapshot.tree_start.values[trees]
    lows = np.searchsorted(slot.own, starts)
    highs = np.searchsorted(slot.own, starts + snapshot.tree_size.values[trees])
    rows, counts = slot.own[spans(lows, highs)], highs - lows
    if not len(slot.shared_tree):
        return rows, counts
    lows, highs = np.searchsorted(slot.shared_tree, (trees, trees + 1))
    shared = slot.shared_row[spans(lows, highs)]
    places = np.arange(len(trees))
    order = np.argsort(
        np.concatenate((np.repeat(places, counts), np.repeat(places, highs - lows))), kind="stable"
    )
    return np.concatenate((rows, shared))[order], counts + highs - lows


def offers(snapshot: Snapshot, slot: Slot, questions: Questions, trees: Rows) -> list[Table]:
    """The table of each tree."""
    rows, counts = options(snapshot, slot, trees)
    own = snapshot.tree.values[rows] == np.repeat(trees, counts)
    starts = np.repeat(snapshot.tree_start.values[trees], counts)
    table = answered(snapshot, slot, questions, rows, np.where(own, rows - starts, ~rows))
    ends = np.cumsum(counts).tolist()
    return [table[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def spans(lows: NDArray[np.intp], highs: NDArray[np.intp]) -> NDArray[np.intp]:
    """The numbers from each low up to its high, one after the other."""
    counts = highs - lows
    ends = np.cumsum(counts)
    return np.repeat(lows - (ends - counts), counts) + np.arange(counts.sum())


def answered(
    snapshot: Snapshot, slot: Slot, questions: Questions, rows: Rows, numbers: Rows
) -> Table:
    """A line per row: its local number, then its answers."""
    columns: list[NDArray[Any]] = [numbers]
    for name in contended_by(slot, questions):
        stock = snapshot.stock(name)
        assert stock
        # More than all slots want together makes no difference: cut off, tables are more alike.
        columns.append(np.minimum(stock.headroom(rows), questions.contended[name]))
    if questions.required and not slot.group.suffix:
        met = np.zeros(len(rows), np.int64)
        for at, mask in enumerate(questions.required):
            met |= mask[snapshot.traits.values[rows]].astype(np.int64) << at
        columns.append(met)
    return np.stack(columns, axis=1, dtype=np.int64, casting="safe")


def contended_by(slot: Slot, questions: Questions) -> list[str]:
    return [name for name in slot.resources if name in questions.contended]
