"""Label columns: the labels of nodes, a column per key that was ever asked for, a number per value.

A requirement is decided once per distinct value of its key and then looked up for all rows. The
same columns tell topology domains: rows with one number are in one domain.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dovetail.core.columns import Column, Mask, Numbers
from dovetail.core.interned import Interned
from dovetail.podfit.objects import SelectorRequirement
from dovetail.podfit.selectors import is_met

MOST_COLUMNS = 256
"""Kept at a time; a column that is asked for again is made again."""


class LabelColumn:
    """One key. Number 0 stands for rows that have no such label."""

    __slots__ = ("_rows", "_values")

    def __init__(self) -> None:
        self._rows = Column(np.int32)
        self._values = Interned[str]()

    @property
    def numbers(self) -> Numbers:
        """By row."""
        found: Numbers = self._rows.values
        return found

    @property
    def values(self) -> list[str | None]:
        """By number."""
        return self._values.keys

    @property
    def stale(self) -> bool:
        """Most values are of nodes that are no more."""
        return len(self.values) > 2 * len(self.numbers) + 64

    def reach(self, size: int) -> None:
        self._rows.reach(size)

    def put(self, row: int, value: str | None) -> None:
        self._rows.values[row] = 0 if value is None else self._values.number(value)

    def meeting(self, term: SelectorRequirement) -> Mask:
        """By number, whether the value meets a requirement."""
        count = len(self.values)
        if term.operator in ("Gt", "Lt"):
            return np.fromiter((is_met(term, value) for value in self.values), np.bool_, count)
        # The rest names its values: with very many there is no need to look at each.
        table: Mask = np.full(count, term.operator in ("NotIn", "Exists"))
        table[0] = term.operator in ("NotIn", "DoesNotExist")
        for value in term.values:
            number = self._values.find(value)
            if number is not None:
                table[number] = term.operator == "In"
        return table


class NodeLabels:
    def __init__(self) -> None:
        self._of: list[Mapping[str, str]] = []
        self._columns: dict[str, LabelColumn] = {}

    def reach(self, size: int) -> None:
        for column in self._columns.values():
            column.reach(size)
        self._of.extend({} for _ in range(size - len(self._of)))

    def put(self, row: int, labels: Mapping[str, str]) -> None:
        self._of[row] = labels
        for key, column in list(self._columns.items()):
            column.put(row, labels.get(key))
            if column.stale:
                del self._columns[key]

    def of(self, row: int) -> Mapping[str, str]:
        return self._of[row]

    def column(self, key: str) -> LabelColumn:
        column = self._columns.get(key)
        if column is None:
            if len(self._columns) >= MOST_COLUMNS:
                self._columns.clear()
            column = self._columns[key] = LabelColumn()
            column.reach(len(self._of))
            for row, labels in enumerate(self._of):
                if key in labels:
                    column.put(row, labels[key])
        return column

    def meeting(self, term: SelectorRequirement) -> Mask:
        """By row."""
        column = self.column(term.key)
        found: Mask = column.meeting(term).take(column.numbers)
        return found
