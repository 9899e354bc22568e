"""Row allocator: where each name stands in the arrays of all tables that share the rows.

Podfit's node table and the device inventory share one, so that their masks can be combined.
"""

from __future__ import annotations


class Rows:
    """A row for each name; rows given back are taken first.

    Several tables share one of these, so that their arrays can be combined. None of them drops a
    name: whoever owns the tables does, once each of them has forgotten it.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        """By row; empty where the row is free."""
        self._rows: dict[str, int] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        """Free rows are counted: it is how long arrays have to be."""
        return len(self.names)

    def row(self, name: str) -> int:
        """Where the name stands; a new name gets a row."""
        found = self._rows.get(name)
        if found is not None:
            return found
        if not name:
            raise ValueError("a row needs a name: the empty one marks rows that are free")
        if self._free:
            row = self._free.pop()
            self.names[row] = name
        else:
            row = len(self.names)
            self.names.append(name)
        self._rows[name] = row
        return row

    def find(self, name: str) -> int | None:
        return self._rows.get(name)

    def drop(self, name: str) -> None:
        """Gives the row back, if the name has one."""
        row = self._rows.pop(name, None)
        if row is not None:
            self.names[row] = ""
            self._free.append(row)
