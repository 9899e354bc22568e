"""Topology domains: the nodes that have the same value of a label, for affinity and spreading."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.core.columns import Amounts, Mask
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.terms import PodTerm, SelectablePod


class Domains:
    """Of one label. Domain 0 is no domain: nodes that have not the label."""

    def __init__(self, nodes: Nodes, topology: str) -> None:
        column = nodes.labels.column(topology)
        self.of = column.numbers
        """By row."""
        self.count = len(column.values)

    @property
    def rows_in_one(self) -> Mask:
        """Rows that are in a domain."""
        found: Mask = self.of > 0
        return found

    def containing(self, rows: NDArray[np.integer[Any]]) -> Mask:
        """By domain, whether it contains one of these rows."""
        table: Mask = np.zeros(self.count, np.bool_)
        table[self.of.take(rows)] = True
        table[0] = False
        return table

    def sums(self, counts: Amounts) -> Amounts:
        """By domain, of counts by row."""
        found = np.bincount(self.of, counts, minlength=self.count).astype(np.int64)
        found[0] = 0
        return found


def selected_by_all(nodes: Nodes, terms: tuple[PodTerm, ...]) -> Mask:
    """By number of the selectable pod: all of these terms select it."""
    return nodes.pods.decided(terms, lambda kind: all(selects(nodes, term, kind) for term in terms))


def selects(nodes: Nodes, term: PodTerm, kind: SelectablePod) -> bool:
    return term.selects(kind.namespace, dict(kind.labels), nodes.namespaces)
