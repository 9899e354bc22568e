"""Combines providers within one tree: every way to fill all slots, found lazily.

Slots with the fewest options go first; a choice that breaks a rule is dropped at once with all
that would follow; a position found hopeless once is recognised when it comes again. So the work
follows the number of answers, not the product of the options.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from dovetail.core.request import Affinity, Request
from dovetail.engine.feasible import Slot, trait_mask
from dovetail.engine.rules import (
    Capacity,
    CollectiveTraits,
    Isolation,
    OneProviderPerTree,
    Rule,
    State,
    Subtree,
)
from dovetail.engine.snapshot import Snapshot

Combination = tuple[int, ...]
"""The row chosen for each slot."""

PULSE = 1024
"""After so many choices without an answer, the search shows a sign of life."""

MEMORY = 100_000
"""Hopeless positions remembered per tree."""


class Combiner:
    """Everything about a request that is the same for each tree."""

    def __init__(self, snapshot: Snapshot, request: Request, slots: Sequence[Slot]) -> None:
        self._snapshot, self._slots = snapshot, slots
        asked = Counter(name for slot in slots for name in slot.resources)
        self._contended = {name for name, times in asked.items() if times > 1}
        suffixed = [slot for slot in slots if slot.group.suffix]
        self._isolated = request.isolated if len(suffixed) > 1 else frozenset()
        self._affinities = [
            affinity
            for affinity in request.affinities
            if len(affinity.together) + len(affinity.apart) > 1
        ]
        spread = [slot.group for slot in slots if not slot.group.suffix]
        self._required = [
            trait_mask(snapshot, [alternatives], ())
            for alternatives in (spread[0].required if spread else ())
        ]
        self._one_per_tree = request.one_provider_per_tree
        self._free = not (
            self._contended
            or self._isolated
            or self._affinities
            or self._required
            or self._one_per_tree
        )

    def combinations(self, tree: int) -> Iterator[Combination | None]:
        """Every combination for one tree; None now and then while there is nothing to show."""
        rows = self._snapshot.rows_of(tree)
        options = [slot.options(tree, rows.start, rows.stop) for slot in self._slots]
        if self._free:
            return product(*options)
        # Fewest options first; the sort is stable, so the order of answers is fixed.
        order = sorted(range(len(options)), key=lambda at: len(options[at]))
        steps = [options[at] for at in order]
        rules = self._rules(order, steps)
        if rules is None:
            return iter(())
        return Search(order, steps, rules).run()

    def _rules(self, order: Sequence[int], steps: Sequence[list[int]]) -> list[Rule] | None:
        """The rules for one tree; None if they plainly cannot all be kept there."""
        slots = [self._slots[at] for at in order]
        rules: list[Rule] = []
        distinct = sorted({row for rows in steps for row in rows})
        bits = {row: 1 << at for at, row in enumerate(distinct)}
        if self._contended:
            wanted = [self._contended_part(slot) for slot in slots]
            headroom = self._headroom(wanted, steps)
            if not enough_in_all(wanted, headroom):
                return None
            rules.append(Capacity(wanted, headroom))
        if self._isolated:
            alone = [slot.group.suffix in self._isolated for slot in slots]
            if not distinct_rows(
                [rows for rows, is_alone in zip(steps, alone, strict=True) if is_alone]
            ):
                return None
            suffixed = [
                is_alone if slot.group.suffix else None
                for slot, is_alone in zip(slots, alone, strict=True)
            ]
            rules.append(Isolation(suffixed, bits))
        if self._affinities:
            ancestry = self._ancestry(distinct, bits)
            masks = [sum(bits[row] for row in rows) for rows in steps]
            rules += [self._subtree(a, slots, masks, ancestry, bits) for a in self._affinities]
        if self._required:
            meets = {row: self._met(row) for row in distinct}
            spread = [not slot.group.suffix for slot in slots]
            rules.append(CollectiveTraits(spread, steps, meets, len(self._required)))
        if self._one_per_tree:
            trees = {row: int(self._snapshot.tree.values[row]) for row in distinct}
            rules.append(OneProviderPerTree([bool(slot.resources) for slot in slots], trees))
        return rules

    def _contended_part(self, slot: Slot) -> dict[str, int]:
        return {name: amount for name, amount in slot.resources.items() if name in self._contended}

    def _headroom(
        self, wanted: Sequence[Mapping[str, int]], steps: Sequence[list[int]]
    ) -> dict[tuple[int, str], int]:
        room: dict[tuple[int, str], int] = {}
        for amounts, rows in zip(wanted, steps, strict=True):
            for name in amounts:
                stock = self._snapshot.stock(name)
                assert stock
                for row in rows:
                    if (row, name) not in room:
                        room[row, name] = stock.headroom(row)
        return room

    def _ancestry(self, rows: Sequence[int], bits: Mapping[int, int]) -> dict[int, int]:
        """For each row, the bits of itself and of those rows that are above it."""
        parent = self._snapshot.parent.values
        ancestry = {}
        for row in rows:
            mask, up = 0, row
            while up >= 0:
                mask |= bits.get(up, 0)
                up = int(parent[up])
            ancestry[row] = mask
        return ancestry

    @staticmethod
    def _subtree(
        affinity: Affinity,
        slots: Sequence[Slot],
        masks: Sequence[int],
        ancestry: Mapping[int, int],
        bits: Mapping[int, int],
    ) -> Subtree:
        return Subtree(
            [slot.group.suffix in affinity.together for slot in slots],
            [slot.group.suffix in affinity.apart for slot in slots],
            masks,
            ancestry,
            bits,
        )

    def _met(self, row: int) -> int:
        number = self._snapshot.traits.values[row]
        return sum(1 << at for at, mask in enumerate(self._required) if mask[number])


class Search:
    """A depth-first walk over the slots of one tree."""

    def __init__(
        self, order: Sequence[int], steps: Sequence[list[int]], rules: Sequence[Rule]
    ) -> None:
        self._steps, self._rules = steps, rules
        self._place = [order.index(at) for at in range(len(order))]
        self._hopeless: set[tuple[int, State]] = set()
        self._choices = 0

    def run(self) -> Iterator[Combination | None]:
        return self._walk(0, tuple(rule.start for rule in self._rules), ())

    def _walk(self, step: int, state: State, chosen: Combination) -> Iterator[Combination | None]:
        if step == len(self._steps):
            yield tuple([chosen[place] for place in self._place])
            return
        if (step, state) in self._hopeless:
            return
        found = False
        for row in self._steps[step]:
            self._choices += 1
            if self._choices % PULSE == 0:
                yield None
            after = self._extend(state, step, row)
            if after is not None:
                for combination in self._walk(step + 1, after, (*chosen, row)):
                    found = found or combination is not None
                    yield combination
        if not found and len(self._hopeless) < MEMORY:
            self._hopeless.add((step, state))

    def _extend(self, state: State, step: int, row: int) -> State:
        after = []
        for rule, before in zip(self._rules, state, strict=True):
            remembered = rule.extend(before, step, row)
            if remembered is None:
                return None
            after.append(remembered)
        return tuple(after)


def enough_in_all(
    wanted: Sequence[Mapping[str, int]], headroom: Mapping[tuple[int, str], int]
) -> bool:
    """Whether the rows together have as much as the slots want together."""
    total: Counter[str] = Counter()
    for amounts in wanted:
        total.update(amounts)
    room: Counter[str] = Counter()
    for (_, name), units in headroom.items():
        room[name] += units
    return all(room[name] >= amount for name, amount in total.items())


def distinct_rows(options: Sequence[list[int]]) -> bool:
    """Whether each slot can have a row of its own (a bipartite matching)."""
    holder: dict[int, int] = {}

    def place(slot: int, tried: set[int]) -> bool:
        for row in options[slot]:
            if row not in tried:
                tried.add(row)
                if row not in holder or place(holder[row], tried):
                    holder[row] = slot
                    return True
        return False

    return all(place(slot, set()) for slot in range(len(options)))
