"""Combines providers within trees where slots depend on each other, by backtracking, lazily.

The search uses it if slots contend for a class, or groups are isolated, have affinities or required
traits in common. A tree becomes an offer (options per slot, and what rules ask of them); trees with
the same offer share one pattern, solved once by backtracking (`backtrack`), slots with the fewest
options first. What plainly cannot fit (too little in all, fewer options than isolated groups) is
refused before. So the work follows the number of answers and of distinct offers, not the product of
the options; what is worked out is kept for the next request of the same kind, within bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from dovetail.core.request import Affinity, Request
from dovetail.engine.combine.backtrack import Backtracking, Combinations
from dovetail.engine.combine.offers import ANSWERS, OPTION, SLOT, WORD, Questions, Table, offers_of
from dovetail.engine.combine.patterns import Pattern, PatternedTrees, trees_with_more
from dovetail.engine.combine.round_robin import Blocks, batches, round_robin
from dovetail.engine.combine.rules import (
    CapacityRule,
    CollectiveTraitsRule,
    IsolationRule,
    OneProviderPerTreeRule,
    Rule,
    SubtreeRule,
)
from dovetail.engine.feasible import Slot, trait_mask
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.snapshot import Snapshot

OfferLines = list[list[int]]
"""The lines of an offer that belong to one slot."""

PatternKey = tuple[int, bytes]
"""Shape of a tree and what it offers: trees with the same key have the same combinations."""

MOST_CACHED_REQUESTS = 64
MOST_CACHED_PATTERNS = 10_000
LONGEST_CACHED_PATTERN = 256
"""Bounds on what is kept from one request for the next of its kind."""


class Combiner:
    """Everything about a request that is the same for each tree."""

    def __init__(self, snapshot: Snapshot, request: Request, slots: Sequence[Slot]) -> None:
        self._snapshot, self._slots = snapshot, slots
        asked = Counter(name for slot in slots for name in slot.resources)
        spread = [slot.group for slot in slots if not slot.group.suffix]
        self._questions = Questions(
            contended={
                name: sum(slot.resources.get(name, 0) for slot in slots)
                for name, times in asked.items()
                if times > 1
            },
            required=[
                trait_mask(snapshot, [alternatives], ())
                for alternatives in (spread[0].required if spread else ())
            ],
        )
        suffixed = sum(1 for slot in slots if slot.group.suffix)
        self._isolated = request.isolated if suffixed > 1 else frozenset()
        self._affinities = [
            affinity
            for affinity in request.affinities
            if len(affinity.together) + len(affinity.apart) > 1
        ]
        self._one_per_tree = request.one_provider_per_tree
        self.is_needed = bool(
            self._questions.contended
            or self._questions.required
            or self._isolated
            or self._affinities
            or self._one_per_tree
        )
        """Whether slots have anything to do with each other."""
        self._cached = self._cached_patterns() if self.is_needed else {}
        self._patterns: list[Pattern] = []
        self._numbers: dict[PatternKey, int] = {}

    def _cached_patterns(self) -> dict[PatternKey, Pattern]:
        """Patterns of earlier requests that differ from this one at most in what offers tell."""
        asked: Hashable = (
            tuple((slot.group.suffix, tuple(slot.resources.items())) for slot in self._slots),
            len(self._questions.required),
            self._isolated,
            tuple((affinity.together, affinity.apart) for affinity in self._affinities),
            self._one_per_tree,
        )
        cache = self._snapshot.cache
        patterns: dict[PatternKey, Pattern] = cache.setdefault(asked, {})
        cache.move_to_end(asked)
        while len(cache) > MOST_CACHED_REQUESTS:
            cache.popitem(last=False)
        return patterns

    def combinations(self, trees: RowNumbers) -> Blocks:
        try:
            yield from round_robin(self._parts(trees), trees_with_more)
        finally:
            self._trim_cache()

    def first_per_tree(self, trees: RowNumbers, count: int) -> Blocks:
        """The first `count` of each tree; those of a tree in their order."""
        try:
            for part in self._parts(trees):
                yield from part.blocks(0, count)
        finally:
            self._trim_cache()

    def trees_with_combinations(self, trees: RowNumbers) -> Iterator[RowNumbers | None]:
        """Those of the trees that have a combination at all; None now and then."""
        if not self.is_needed:
            yield trees
            return
        for batch, part in zip(batches(trees), self._parts(trees), strict=True):
            found = []
            for pattern in part.patterns:
                while not pattern.reach(1):
                    yield None
                found.append(bool(pattern.found))
            yield batch[np.array(found)[part.which]]

    def _trim_cache(self) -> None:
        """Keep what is quickly told again; a long list is worked out again when it is needed."""
        for key, number in self._numbers.items():
            if len(self._patterns[number].found) > LONGEST_CACHED_PATTERN:
                self._cached.pop(key, None)
        if len(self._cached) > MOST_CACHED_PATTERNS:
            self._cached.clear()

    def _parts(self, trees: RowNumbers) -> Iterator[PatternedTrees]:
        snapshot = self._snapshot
        for batch in batches(trees):
            starts = snapshot.tree_start.values[batch]
            lines, ends = offers_of(snapshot, self._slots, self._questions, batch)
            shapes = snapshot.tree_shape.values[batch].tolist()
            text, width = lines.tobytes(), lines.itemsize * lines.shape[1]
            which = []
            low = 0
            for at, (shape, high) in enumerate(zip(shapes, ends.tolist(), strict=True)):
                key = (shape, text[low * width : high * width])
                number = self._numbers.get(key)
                if number is None:
                    number = self._numbers[key] = len(self._patterns)
                    self._patterns.append(self._pattern(key, int(starts[at]), lines[low:high]))
                which.append(number)
                low = high
            yield PatternedTrees(starts, np.array(which), self._patterns)

    def _pattern(self, key: PatternKey, start: int, offer: Table) -> Pattern:
        pattern = self._cached.get(key)
        if pattern is None:
            pattern = self._cached[key] = Pattern(self._walk(start, offer))
        return pattern

    def _walk(self, start: int, offer: Table) -> Combinations:
        """The combinations of one tree in local numbers."""
        tables: list[OfferLines] = [[] for _ in self._slots]
        for line in offer.tolist():
            tables[line[SLOT]].append(line)
        # Fewest options first; the sort is stable, so the order of answers is fixed.
        order = sorted(range(len(tables)), key=lambda at: len(tables[at]))
        steps = [[line[OPTION] for line in tables[at]] for at in order]
        rules = self._rules(start, [self._slots[at] for at in order], [tables[at] for at in order])
        return Backtracking(order, steps, rules).combinations() if rules is not None else iter(())

    def _rules(
        self, start: int, slots: Sequence[Slot], tables: Sequence[OfferLines]
    ) -> list[Rule] | None:
        """The rules for one tree; None if they plainly cannot all be kept there."""
        rules: list[Rule] = []
        steps = [[line[OPTION] for line in table] for table in tables]
        distinct = sorted({option for options in steps for option in options})
        bits = {option: 1 << at for at, option in enumerate(distinct)}
        if self._questions.contended:
            wanted, headroom = self._contention(slots, tables)
            if not _has_enough_in_all(wanted, headroom):
                return None
            rules.append(CapacityRule(wanted, headroom))
        if self._isolated:
            alone = [slot.group.suffix in self._isolated for slot in slots]
            if not _has_distinct_options(
                [o for o, is_alone in zip(steps, alone, strict=True) if is_alone]
            ):
                return None
            rules.append(
                IsolationRule(
                    [
                        is_alone if slot.group.suffix else None
                        for slot, is_alone in zip(slots, alone, strict=True)
                    ],
                    bits,
                )
            )
        if self._affinities:
            ancestry = self._ancestry(start, distinct, bits)
            masks = [sum(bits[option] for option in options) for options in steps]
            rules += [_subtree_rule(a, slots, masks, ancestry, bits) for a in self._affinities]
        if self._questions.required:
            spread = [not slot.group.suffix for slot in slots]
            meets = {
                line[OPTION]: self._requirements_met(line)
                for table, is_spread in zip(tables, spread, strict=True)
                if is_spread
                for line in table
            }
            rules.append(CollectiveTraitsRule(spread, steps, meets, len(self._questions.required)))
        if self._one_per_tree:
            giving = [bool(slot.resources) for slot in slots]
            rules.append(OneProviderPerTreeRule(giving, {o: self._tree(o) for o in distinct}))
        return rules

    def _contention(
        self, slots: Sequence[Slot], tables: Sequence[OfferLines]
    ) -> tuple[list[dict[str, int]], dict[tuple[int, str], int]]:
        """By step what is wanted of contended classes; by option and class what can be had."""
        wanted: list[dict[str, int]] = []
        headroom: dict[tuple[int, str], int] = {}
        for slot, table in zip(slots, tables, strict=True):
            names = {name: at for at, name in self._contended_columns() if name in slot.resources}
            wanted.append({name: slot.resources[name] for name in names})
            for line in table:
                for name, at in names.items():
                    headroom[line[OPTION], name] = line[at]
        return wanted, headroom

    def _contended_columns(self) -> Iterable[tuple[int, str]]:
        """The columns of an offer that tell of contended classes."""
        return enumerate(self._questions.contended, ANSWERS + self._questions.words)

    def _requirements_met(self, line: list[int]) -> int:
        """Which of the requirements an option meets, a bit each."""
        words = line[ANSWERS : ANSWERS + self._questions.words]
        return sum(word << WORD * at for at, word in enumerate(words))

    def _ancestry(
        self, start: int, options: Sequence[int], bits: Mapping[int, int]
    ) -> dict[int, int]:
        """For each option, the bits of itself and of those options that are above it."""
        parent = self._snapshot.parent.values
        size = self._snapshot.tree_size.values[self._snapshot.tree.values[start]]
        own = parent[start : start + size].tolist()
        ancestry = {}
        for option in options:
            mask, up = 0, option
            if option >= 0:
                while up >= 0:
                    mask |= bits.get(up, 0)
                    up = own[up] - start
            else:
                while up < 0:
                    mask |= bits.get(up, 0)
                    up = ~int(parent[~up])
            ancestry[option] = mask
        return ancestry

    def _tree(self, option: int) -> int:
        """The tree of an option, where it matters only whether two options have the same."""
        return -1 if option >= 0 else int(self._snapshot.tree.values[~option])


def _subtree_rule(
    affinity: Affinity,
    slots: Sequence[Slot],
    masks: Sequence[int],
    ancestry: Mapping[int, int],
    bits: Mapping[int, int],
) -> SubtreeRule:
    return SubtreeRule(
        [slot.group.suffix in affinity.together for slot in slots],
        [slot.group.suffix in affinity.apart for slot in slots],
        masks,
        ancestry,
        bits,
    )


def _has_enough_in_all(
    wanted: Sequence[Mapping[str, int]], headroom: Mapping[tuple[int, str], int]
) -> bool:
    """Whether the options together could hold what the slots want: in units, and in pieces."""
    portions: dict[str, list[int]] = {}
    for amounts in wanted:
        for name, amount in amounts.items():
            portions.setdefault(name, []).append(amount)
    for name, pieces in portions.items():
        rooms = [room for (_, of), room in headroom.items() if of == name]
        smallest = min(pieces)
        if sum(rooms) < sum(pieces) or sum(room // smallest for room in rooms) < len(pieces):
            return False
    return True


def _has_distinct_options(options: Sequence[list[int]]) -> bool:
    """Whether each slot can have an option of its own (a bipartite matching)."""
    holder: dict[int, int] = {}

    def place(slot: int, tried: set[int]) -> bool:
        for option in options[slot]:
            if option not in tried:
                tried.add(option)
                if option not in holder or place(holder[option], tried):
                    holder[option] = slot
                    return True
        return False

    return all(place(slot, set()) for slot in range(len(options)))
