"""Growing columns: what was appended or reached is there, whatever the room behind it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.columns import Column, enlarged


@given(st.lists(st.lists(st.integers(-5, 5), max_size=7)))
def test_a_column_holds_what_was_appended(pieces: list[list[int]]) -> None:
    column = Column(np.int64)
    for piece in pieces:
        column.extend(np.array(piece, np.int64))
    expected = [item for piece in pieces for item in piece]
    assert column.values.tolist() == expected
    assert column.size == len(expected)


@given(st.lists(st.integers(0, 40)), st.integers(-1, 1))
def test_a_column_reaches_with_its_fill_and_keeps_what_was_written(
    sizes: list[int], fill: int
) -> None:
    column = Column(np.int32, fill)
    expected: list[int] = []
    for number, size in enumerate(sizes):
        column.reach(size)
        expected.extend([fill] * (size - len(expected)))
        if expected:
            column.values[number % len(expected)] = expected[number % len(expected)] = number
        assert column.values.tolist() == expected


def test_a_copy_goes_on_by_itself() -> None:
    column = Column(np.int64)
    column.extend(np.array([1, 2], np.int64))
    twin = column.copy()
    twin.values[0] = 9
    twin.extend(np.array([3], np.int64))
    assert (column.values.tolist(), twin.values.tolist()) == ([1, 2], [9, 2, 3])


def test_a_table_grows_either_way_and_keeps_what_it_holds() -> None:
    table = np.ones((2, 2), np.int64)
    assert enlarged(table, 2, 1) is table
    larger = enlarged(table, 3, 9)
    assert larger.shape == (4, 16)
    assert larger[:2, :2].tolist() == [[1, 1], [1, 1]]
    assert larger.sum() == 4
