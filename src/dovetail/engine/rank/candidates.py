"""Candidates in blocks, as ranking sees them: their trees, and which measures cannot tell apart."""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.engine.combine.round_robin import Block
from dovetail.engine.feasible import Slot
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.rank.trees import AFTER_NO_ROW, free_of
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.tree_kinds import with_values

Places = NDArray[np.intp]
Numbers = NDArray[np.int64]

MOST_CODES = 2**62


def trees_of(snapshot: Snapshot, lines: Block) -> RowNumbers:
    """For each candidate the tree of the first of its rows that does not serve other trees."""
    if not len(snapshot.sharing.rows):
        first: RowNumbers = snapshot.tree.values.take(lines[:, 0])
        return first
    trees = snapshot.tree.values[lines]
    shares = np.zeros(snapshot.tree.size, np.bool_)
    shares[snapshot.sharing.rows] = True
    found: RowNumbers = trees[np.arange(len(lines)), (~shares[lines]).argmax(axis=1)]
    return found


def distinct_candidates(
    snapshot: Snapshot,
    slots: Sequence[Slot],
    classes: Sequence[str],
    lines: Block,
    home: RowNumbers,
) -> tuple[Places, Places]:
    """One line of each kind, and for each line which kind it is; `home` is the tree of each.

    For `Losses`, whose measures see what the rows of a tree have free of the classes, and their
    traits, but not which row is which. Lines of one tree are alike if slot by slot their rows are,
    in all that is seen of them, and the same slots share a row: then what is left of the tree is.
    """
    taking = [at for at, slot in enumerate(slots) if takes_any(slot, classes)]
    lines = lines.take(taking, axis=1)
    codes = np.zeros(lines.shape, np.int64)
    # Most requests take from the root, which is the same row in all lines of a tree.
    chosen = (lines != snapshot.tree_start.values.take(home)[:, None]).any(axis=0)
    codes[:, chosen] = row_kinds(snapshot, classes, lines.compress(chosen, axis=1), home)
    if len(taking) > 1:
        shared_with = (lines[:, :, None] == lines[:, None]).argmax(axis=2)
        codes = codes * len(taking) + shared_with
    _, samples, which = np.unique(line_codes(home, codes), return_index=True, return_inverse=True)
    return samples, which


def line_codes(home: RowNumbers, table: Numbers) -> Numbers:
    """A number for each line of the table and its tree; equal ones for equal lines."""
    found, bound = home.astype(np.int64), int(home.max()) + 1
    for column in table.T:
        size = int(column.max()) + 1
        if bound > MOST_CODES // size:
            _, found = np.unique(found, return_inverse=True)
            bound = len(found)
        found = found * size + column
        bound *= size
    return found


def takes_any(slot: Slot, classes: Container[str]) -> bool:
    return any(name in classes for name in slot.resources)


def row_kinds(
    snapshot: Snapshot, classes: Sequence[str], lines: Block, home: RowNumbers
) -> Numbers:
    """For each line and slot a code of what measures see of its row.

    What other trees give leaves the tree as it is, whatever it is.
    """
    rows = lines.ravel()
    codes = with_values(np.zeros(len(rows), np.int64), snapshot.traits.values.take(rows))
    for name in classes:
        codes = with_values(codes, free_of(snapshot, name, rows + AFTER_NO_ROW))
    codes = codes.reshape(lines.shape)
    if len(snapshot.sharing.rows):
        codes[snapshot.tree.values.take(lines) != home[:, None]] = codes.size
    return codes
