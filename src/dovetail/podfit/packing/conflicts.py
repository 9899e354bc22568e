"""Conflicts of a set of pods: which pairs that keep apart are a matter of one node, which of more.

Two pods that cannot be in one domain cannot share a node, and where each domain has one node that
either may go to, that is all there is to it (`kubernetes.io/hostname`, mostly): the solver heeds it
in its patterns. Pairs with larger domains are for the search over regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np

from dovetail.core.columns import Mask
from dovetail.podfit.packing.node_classes import ApartMarks
from dovetail.podfit.packing.question import Question
from dovetail.podfit.packing.relations import NODE, ApartFrom


def by_reach(question: Question) -> tuple[list[ApartFrom], list[ApartFrom]]:
    """Pairs that are a matter of one node, and pairs that are a matter of larger domains."""
    on_node: list[ApartFrom] = []
    beyond: list[ApartFrom] = []
    for each in question.relations.apart:
        (on_node if _is_on_node(question, each) else beyond).append(each)
    return on_node, beyond


def _is_on_node(question: Question, pair: ApartFrom) -> bool:
    if pair.topology == NODE:
        return True
    kinds = question.kinds
    rows = np.flatnonzero(kinds[pair.one].kind.rows | kinds[pair.other].kind.rows)
    domains = question.nodes.labels.column(pair.topology).numbers[rows]
    domains = domains[domains > 0]
    return len(np.unique(domains)) == len(domains)


def apart_marks(question: Question, on_node: Sequence[ApartFrom]) -> ApartMarks:
    """By row of the question.

    Nodes without the label of a topology are in none of its domains: pairs do not matter there.
    """
    if not on_node:
        return ApartMarks(np.zeros(len(question.rows), np.int32), (None,))
    labelled: Mask = np.ones((len(question.rows), len(on_node)), np.bool_)
    for at, each in enumerate(on_node):
        if each.topology != NODE:
            column = question.nodes.labels.column(each.topology)
            labelled[:, at] = column.numbers[question.rows] > 0
    sets, numbers = np.unique(labelled, axis=0, return_inverse=True)
    holding = [list(compress(on_node, one)) for one in sets.tolist()]
    return ApartMarks(
        numbers.reshape(-1).astype(np.int32),
        tuple(_bits(len(question.kinds), pairs) for pairs in holding),
    )


def _bits(kinds: int, pairs: Sequence[ApartFrom]) -> tuple[int, ...] | None:
    if not pairs:
        return None
    found = [0] * kinds
    for each in pairs:
        found[each.one] |= 1 << each.other
        found[each.other] |= 1 << each.one
    return tuple(found)
