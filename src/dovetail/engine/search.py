"""The search: all candidates of a request, in a fixed order, found as they are asked for.

Use cases of `service` make one per request. The fleet is narrowed to feasible trees, with what is
kept of earlier searches as far as it goes; candidates are then combined tree by tree, in turns,
only as far as somebody reads on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np

from dovetail.core.columns import Mask
from dovetail.core.request import Request
from dovetail.engine.combine import product
from dovetail.engine.combine.combiner import Combiner
from dovetail.engine.combine.round_robin import Block, Blocks
from dovetail.engine.feasible import NO_ROWS, Slot
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.kept_options import RequestOptions, keep, options_in_steps
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.work import Work, finished

TreeOrder = Callable[[RowNumbers], RowNumbers]
"""The same trees, in another order."""


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
        """Nothing is looked for yet: the first step of `candidates` is to narrow the fleet."""
        self.snapshot, self.request = snapshot, request
        self._options: RequestOptions | None = None
        self._slots: list[Slot] = []
        self._trees: RowNumbers = NO_ROWS
        self._order: TreeOrder | None = None

    def turn_to(self, order: TreeOrder) -> None:
        """Have trees looked at in that order, for callers who are not all to begin with the same.

        Before anything else is asked of the search.
        """
        self._order = order

    @property
    def slots(self) -> list[Slot]:
        """The providers to be found, and the rows that qualify for each."""
        finished(self.narrow())
        return self._slots

    @property
    def trees(self) -> RowNumbers:
        """Those where every slot has an option, in their fixed order or the one asked for."""
        finished(self.narrow())
        return self._trees

    @trees.setter
    def trees(self, trees: RowNumbers) -> None:
        """Some of them, or all in another order: candidates come in that order."""
        self._trees = trees

    def narrow(self) -> Work[None]:
        """Find the options of each slot, and the trees where all have some."""
        if self._options is None:
            options = yield from options_in_steps(self.snapshot, self.request)
            # Later searches replace these, they do not change them.
            self._options, self._slots, self._trees = options, options.slots, options.trees
            if self._order is not None:
                self._trees = self._order(self._trees)

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
        yield from self.narrow()
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
        yield from self.narrow()
        combiner = self._combiner()
        if combiner.is_needed:
            yield from self._keeping(combiner.first_per_tree(trees, count))
        else:
            yield from product.first_per_tree(self.snapshot, self._slots, trees, count)

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
        combiner = self._combiner()
        if combiner.is_needed:
            return self._keeping(combiner.combinations(self._trees))
        return product.combinations(self.snapshot, self._slots, self._trees)

    def _keeping(self, blocks: Blocks) -> Blocks:
        """The blocks; at their end what was found out on the way is kept, within bounds."""
        assert self._options is not None
        try:
            yield from blocks
        finally:
            keep(self.snapshot, self._options)

    def _combiner(self) -> Combiner:
        assert self._options is not None
        return Combiner(self.snapshot, self.request, self._slots, self._options.patterns)


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
