"""Trees drawn with lines; `tree` draws hosts so, and `agent topology` the machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from dovetail.cli.support.output import printable

Node = dict[str, Any]
"""Something drawn: its name, what there is to say of it, and its children."""

BRANCH, LAST, PASSING, NOTHING = "├─ ", "└─ ", "│  ", "   "


class TreeLine(NamedTuple):
    """One node: the lines that lead to it, and those that lead on."""

    lead: str
    onward: str
    node: Node

    @property
    def label(self) -> str:
        return self.lead + printable(self.node["name"])


def tree_lines(node: Node, lead: str = "", onward: str = "") -> Iterator[TreeLine]:
    """The node and all below it, from top to bottom."""
    children = node["children"]
    yield TreeLine(lead, onward + (PASSING if children else NOTHING), node)
    for at, child in enumerate(children, 1):
        last = at == len(children)
        yield from tree_lines(
            child, onward + (LAST if last else BRANCH), onward + (NOTHING if last else PASSING)
        )
