"""The engine's answer to a request: candidates, in a fixed order, found as they are asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from dovetail.core.request import Request
from dovetail.engine import product
from dovetail.engine.columns import Rows
from dovetail.engine.combine import Combination, Combiner, Pattern
from dovetail.engine.feasible import slots_of, surviving_trees
from dovetail.engine.snapshot import Snapshot


class Candidate:
    """One way to serve the request: a row for each slot."""

    __slots__ = ("_search", "rows")

    def __init__(self, search: Search, rows: Combination) -> None:
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
        self.trees = surviving_trees(snapshot, request, self.slots)

    def __iter__(self) -> Iterator[Candidate]:
        return (Candidate(self, rows) for rows in self.combinations() if rows is not None)

    def combinations(self) -> Iterator[Combination | None]:
        """The rows of each candidate; None now and then, so that a caller can look at the clock."""
        found = 0
        for rows in self._distinct():
            yield rows
            if rows is not None:
                found += 1
                if found == self.request.limit:
                    return

    def _distinct(self) -> Iterator[Combination | None]:
        """Without repeats: only what shares alone can be reached from several trees."""
        sharing = frozenset(self.snapshot.sharing.rows.tolist())
        if not sharing:
            yield from self._all()
            return
        seen: set[Combination] = set()
        for rows in self._all():
            if rows is not None and sharing.issuperset(rows):
                if rows in seen:
                    continue
                seen.add(rows)
            yield rows

    def _all(self) -> Iterator[Combination | None]:
        """Tree by tree in turns, so that a limit gets as many hosts as it can."""
        combiner = Combiner(self.snapshot, self.request, self.slots)
        if not combiner.needed:
            return product.in_turns(self.snapshot, self.slots, self.trees)
        return in_turns(combiner, self.trees)


def in_turns(combiner: Combiner, trees: Rows) -> Iterator[Combination | None]:
    """The first combination of every tree, then the second of every tree, and so on."""
    number = 0
    waiting: Iterable[tuple[int, Pattern]] = combiner.patterns(trees)
    try:
        while True:
            still = []
            for start, pattern in waiting:
                while (there := pattern.reach(number)) is None:
                    yield None
                if there:
                    still.append((start, pattern))
                    yield pattern.placed(number, start)
                else:
                    yield None
            if not still:
                return
            waiting, number = still, number + 1
    finally:
        combiner.forget_much()


def search(snapshot: Snapshot, request: Request) -> Search:
    return Search(snapshot, request)
