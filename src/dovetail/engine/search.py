"""The search: all candidates of a request, in a fixed order, found as they are asked for.

Use cases of `service` make one per request. The constructor narrows the fleet to feasible trees;
candidates are then combined tree by tree, in turns, only as far as somebody reads on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from dovetail.core.columns import Mask
from dovetail.core.request import Request
from dovetail.engine.combine import product
from dovetail.engine.combine.combiner import Combiner
from dovetail.engine.combine.round_robin import Block, Blocks
from dovetail.engine.feasible import feasible_trees, slots_of
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.snapshot import Snapshot


class Candidate:
    """One way to serve the request: a row for each slot."""

    __slots__ = ("_search", "rows")

    def __init__(self, search: Search, rows: tuple[int, ...]) -> None:
        self._search, self.rows = search, rows

    @property
    def allocations(self) -> dict[str, dict[str, int]]:
        """Amounts by resource class by provider uuid."""
        found: dict[str, dict[str, int]] = {}
        for slot, row in zip(self._search.slots, self.rows, strict=True):
            if slot.resources:
                held = found.setdefault(self._search.snapshot.uuid(row), {})
                for name, amount in slot.resources.items():
                    held[name] = held.get(name, 0) + amount
        return found

    @property
    def mappings(self) -> dict[str, frozenset[str]]:
        """Provider uuids by suffix of the group they serve."""
        found: dict[str, set[str]] = defaultdict(set)
        for slot, row in zip(self._search.slots, self.rows, strict=True):
            found[slot.group.suffix].add(self._search.snapshot.uuid(row))
        return {suffix: frozenset(uuids) for suffix, uuids in found.items()}


class Search:
    """What `search` returns: iterate it for Candidates."""

    def __init__(self, snapshot: Snapshot, request: Request) -> None:
        self.snapshot, self.request = snapshot, request
        self.slots = slots_of(snapshot, request)
        self.trees = feasible_trees(snapshot, request, self.slots)

    def __iter__(self) -> Iterator[Candidate]:
        for block in self.candidates(self.request.limit):
            if block is not None:
                for rows in block.tolist():
                    yield Candidate(self, tuple(rows))

    def candidates(self, limit: int | None) -> Blocks:
        """The rows of the first `limit` candidates in the order that the request asks for.

        None now and then, so that a caller can look at the clock.
        """
        return self.in_search_order(limit)

    def in_search_order(self, limit: int | None) -> Blocks:
        """The same, whatever the ranking; limit None: all of them."""
        found = 0
        for block in self._distinct_combinations():
            if block is None:
                yield None
                continue
            found += len(block)
            if limit is not None and found >= limit:
                yield block[: len(block) - (found - limit)]
                return
            if len(block):
                yield block

    def first_per_tree(self, trees: RowNumbers, count: int) -> Blocks:
        """The first candidates of each of these trees, repeats included."""
        combiner = Combiner(self.snapshot, self.request, self.slots)
        if not combiner.is_needed:
            return product.products(self.snapshot, self.slots, trees).blocks(0, count)
        return combiner.first_per_tree(trees, count)

    def _distinct_combinations(self) -> Blocks:
        """No repeats: only what consists of sharing rows alone is reached from several trees."""
        sharing = self.snapshot.sharing.rows
        if not len(sharing):
            yield from self._combinations()
            return
        shares = np.zeros(self.snapshot.tree.size, np.bool_)
        shares[sharing] = True
        seen: set[tuple[int, ...]] = set()
        for block in self._combinations():
            yield block if block is None else _unseen(block, shares, seen)

    def _combinations(self) -> Blocks:
        combiner = Combiner(self.snapshot, self.request, self.slots)
        if not combiner.is_needed:
            return product.combinations(self.snapshot, self.slots, self.trees)
        return combiner.combinations(self.trees)


def _unseen(block: Block, shares: Mask, seen: set[tuple[int, ...]]) -> Block:
    """The block without those combinations of nothing but sharing rows that were seen before."""
    keep: Mask = ~np.all(shares[block], axis=1)
    for at in np.flatnonzero(~keep).tolist():
        rows = tuple(block[at].tolist())
        keep[at] = rows not in seen
        seen.add(rows)
    return block if keep.all() else block[keep]


def search(snapshot: Snapshot, request: Request) -> Search:
    return Search(snapshot, request)
