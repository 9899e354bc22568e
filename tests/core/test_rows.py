"""Rows are stable while a name is there, and used again when it is gone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.rows import Rows


def test_a_name_keeps_its_row() -> None:
    rows = Rows()
    assert [rows.row("a"), rows.row("b"), rows.row("a")] == [0, 1, 0]
    assert rows.names == ["a", "b"]


def test_rows_given_back_are_taken_first() -> None:
    rows = Rows()
    for name in "abc":
        rows.row(name)
    rows.drop("b")
    assert (rows.find("b"), rows.names, len(rows)) == (None, ["a", "", "c"], 3)
    assert rows.row("d") == 1


def test_what_is_not_there_can_be_dropped() -> None:
    rows = Rows()
    rows.drop("a")
    assert len(rows) == 0


def test_the_empty_name_is_no_name() -> None:
    with pytest.raises(ValueError, match="needs a name"):
        Rows().row("")


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcdef"))))
def test_names_and_rows_agree_and_no_row_is_wasted(steps: list[tuple[bool, str]]) -> None:
    rows = Rows()
    there: set[str] = set()
    most = 0
    for comes, name in steps:
        if comes:
            rows.row(name)
            there.add(name)
        else:
            rows.drop(name)
            there.discard(name)
        most = max(most, len(there))
    assert {name for name in rows.names if name} == there
    assert all(rows.names[row] == name for name in there if (row := rows.find(name)) is not None)
    assert len(rows) == most
