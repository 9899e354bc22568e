"""Combines providers within trees where slots depend on each other, by backtracking, lazily.

The search uses it if slots contend for a class, or groups are isolated, have affinities or required
traits in common. A tree becomes an offer (options per slot, and what rules ask of them); trees with
the same offer share one pattern, solved once by backtracking (`walks`), slots with the fewest
options first. So the work follows the number of answers and of distinct offers, not the product of
the options. Patterns are kept for requests that differ at most in what offers tell; which pattern a
tree follows is kept for the next request of the same shape, until the tree changes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property

import numpy as np

from dovetail.core.bounded_cache import SizedCache
from dovetail.core.request import Request
from dovetail.engine.combine.offers import Table, offers_in_steps
from dovetail.engine.combine.patterns import (
    UNKNOWN,
    PatternedTrees,
    PatternStore,
    TreePatterns,
    trees_with_more,
)
from dovetail.engine.combine.round_robin import (
    FIRST_BATCH,
    LARGEST_BATCH,
    Blocks,
    batches,
    round_robin,
)
from dovetail.engine.combine.walks import OfferWalk, relations_of
from dovetail.engine.feasible import Slot, SlotWish
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.tree_kinds import WORTH_KINDS, kinds_in_steps, samples_of
from dovetail.engine.work import Work

KEPT_PATTERNS = "patterns"
MOST_BYTES = 32 * 2**20
"""Of all patterns that are kept."""

MOST_STORE_BYTES = 16 * 2**20
"""Of the patterns of one kind of requests; beyond that they are found anew."""

BYTES_PER_SLOT = 1024
"""What a slot adds to a store's size: its part of the key."""

BATCHES_AHEAD = 4
"""Made out at once where a first batch has trees that nobody looked at: they cost little more."""

OFFERS_PER_YIELD = 64
"""Made out before a step ends."""


class Combiner:
    """Everything about a request that is the same for each tree."""

    def __init__(
        self,
        snapshot: Snapshot,
        request: Request,
        slots: Sequence[Slot],
        known: TreePatterns | None = None,
    ) -> None:
        """`known`: what earlier searches of the same shape found out, and this one adds to."""
        self._snapshot, self._slots = snapshot, slots
        self._relations = relations_of(snapshot, request, slots)
        self.is_needed = self._relations.are_any
        """Whether slots have anything to do with each other."""
        self._known = known or TreePatterns()
        self._pattern_of_kind: RowNumbers | None = None
        if self.is_needed:
            self._store = self._known.store = self._known.store or self._kept_store()
            self._size_before = self._store.size

    def _kept_store(self) -> PatternStore:
        """Patterns of earlier requests that differ from this one at most in what offers tell."""
        return self._stores.get(self._store_key) or PatternStore()

    @property
    def _stores(self) -> SizedCache[Hashable, PatternStore]:
        stores: SizedCache[Hashable, PatternStore] = self._snapshot.cached(
            KEPT_PATTERNS, lambda: SizedCache(MOST_BYTES)
        )
        return stores

    @property
    def _store_key(self) -> Hashable:
        relations = self._relations
        return (
            tuple((slot.group.suffix, tuple(slot.resources.items())) for slot in self._slots),
            len(relations.questions.required),
            relations.isolated,
            tuple((affinity.together, affinity.apart) for affinity in relations.affinities),
            relations.one_per_tree,
        )

    def combinations(self, trees: RowNumbers) -> Blocks:
        try:
            yield from round_robin(self._parts(self._known.possible(trees)), trees_with_more)
        finally:
            self._keep_store()

    def first_per_tree(self, trees: RowNumbers, count: int) -> Blocks:
        """The first `count` of each tree; those of a tree in their order."""
        try:
            for part in self._parts(self._known.possible(trees)):
                if part is None:
                    yield None
                else:
                    yield from part.blocks(0, count)
        finally:
            self._keep_store()

    def trees_with_combinations(self, trees: RowNumbers) -> Iterator[RowNumbers | None]:
        """Those of the trees that have a combination at all; None now and then."""
        if not self.is_needed:
            yield trees
            return
        for batch in batches(self._snapshot, self._known.possible(trees), len(self._slots)):
            part = yield from self._part(batch)
            for number in np.unique(part.which).tolist():
                while not part.patterns[number].reach(1):
                    yield None
            yield batch.compress(~self._store.barren.values.take(self._known.of(batch)))
        self._keep_store()

    def _keep_store(self) -> None:
        """Keep what is quickly told again; what grew too large is worked out again when needed."""
        store = self._store
        store.trim()
        if store.size == self._size_before:
            return
        if store.size > MOST_STORE_BYTES:
            self._stores.drop(self._store_key)
        else:
            overhead = len(self._slots) * BYTES_PER_SLOT
            self._stores.put(self._store_key, store, store.size + overhead)

    def _parts(self, trees: RowNumbers) -> Iterator[PatternedTrees | None]:
        left, size, passed = trees, FIRST_BATCH, 0
        again = LARGEST_BATCH
        while len(left):
            first = passed
            for batch in batches(self._snapshot, left, len(self._slots), size):
                part = yield from self._part(batch, left[passed - first :])
                yield part if len(part) else None
                passed += len(batch)
                if passed > again:
                    break
            # Kinds that turned out to be barren need not be looked at in batches. Each time after
            # twice as many trees, so that going through those that are left costs little.
            again, size = 2 * passed, LARGEST_BATCH
            left = yield from self._possible_by_kind(left[passed - first :])

    def _part(self, batch: RowNumbers, ahead: RowNumbers | None = None) -> Work[PatternedTrees]:
        """Those of some trees that may have combinations, with their patterns.

        `ahead`: these and what comes after them.
        """
        unknown = batch.compress(self._known.of(batch) < 0)
        if ahead is not None and len(unknown) and len(batch) <= FIRST_BATCH:
            # Whoever comes next begins behind these, or where they filled up.
            some = ahead[: len(batch) * BATCHES_AHEAD]
            unknown = some.compress(self._known.of(some) < 0)
        if len(unknown) > WORTH_KINDS and not any(len(slot.shared_tree) for slot in self._slots):
            yield from self._learn_by_kind(unknown)
            batch = self._known.possible(batch)
        elif len(unknown):
            yield from self._learn(unknown)
        starts = self._snapshot.tree_start.values.take(batch)
        return PatternedTrees(starts, self._known.of(batch), self._store.patterns)

    def _learn_by_kind(self, trees: RowNumbers) -> Work[None]:
        """Find out the patterns of trees from one of each kind: nothing is shared with them."""
        all_kinds = yield from kinds_in_steps(self._snapshot)
        known = self._pattern_of_kind
        if known is None:
            known = np.full(int(all_kinds.max(initial=-1)) + 1, UNKNOWN, np.int32)
            self._pattern_of_kind = known
        kinds = all_kinds.take(trees)
        strange = np.flatnonzero(known.take(kinds) == UNKNOWN)
        if len(strange):
            firsts, _ = samples_of(kinds.take(strange))
            samples = strange.take(np.sort(firsts))
            yield from self._learn(trees.take(samples))
            known[kinds.take(samples)] = self._known.of(trees.take(samples))
        self._known.learn(trees, known.take(kinds))

    def _possible_by_kind(self, trees: RowNumbers) -> Work[RowNumbers]:
        """The trees without those of a kind that is known to have no combination."""
        if self._pattern_of_kind is None or not len(trees):
            return trees
        kinds = yield from kinds_in_steps(self._snapshot)
        known = self._known.of(trees)
        by_kind = self._pattern_of_kind.take(kinds.take(trees))
        self._known.learn(trees, np.where(known == UNKNOWN, by_kind, known))
        return self._known.possible(trees)

    def _learn(self, trees: RowNumbers) -> Work[None]:
        snapshot, numbers = self._snapshot, list[int]()
        lines, ends = yield from offers_in_steps(
            snapshot, self._slots, self._relations.questions, trees
        )
        starts = snapshot.tree_start.values.take(trees).tolist()
        shapes = snapshot.tree_shape.values.take(trees).tolist()
        text, width = lines.tobytes(), lines.itemsize * lines.shape[1]
        low = 0
        for start, shape, high in zip(starts, shapes, ends.tolist(), strict=True):
            key = (shape, text[low * width : high * width])
            number = self._store.find(key)
            if number is None:
                number = self._store.add(key, self._walk(start, lines[low:high]), high - low)
            numbers.append(number)
            low = high
            if len(numbers) % OFFERS_PER_YIELD == 0:
                yield
        self._known.learn(trees, numbers)

    @cached_property
    def _wishes(self) -> list[SlotWish]:
        return [SlotWish(slot.group, slot.resources) for slot in self._slots]

    def _walk(self, start: int, offer: Table) -> OfferWalk:
        # A copy, so that a small offer does not keep that of a whole batch.
        return OfferWalk(self._snapshot, self._wishes, self._relations, start, offer.copy())
