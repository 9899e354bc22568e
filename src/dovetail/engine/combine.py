"""Combines providers within a tree: every way to fill all slots, found lazily.

Slots with the fewest options go first; a choice that breaks a rule is dropped at once with all
that would follow; a position found hopeless once is recognised when it comes again. Trees that
offer the same are worked out once. So the work follows the number of answers, not the product of
the options.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence

from dovetail.core.request import Affinity, Request
from dovetail.engine.columns import Rows
from dovetail.engine.feasible import Slot, trait_mask
from dovetail.engine.offers import Questions, Table, batches, contended_by, offers
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

Combinations = Iterator[Combination | None]
"""None now and then, when much was tried and nothing found: a sign of life."""

PULSE = 1024

REMEMBERED_REQUESTS = 64
REMEMBERED_PATTERNS = 10_000
LONG_PATTERN = 256
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
        self.needed = bool(
            self._questions.contended
            or self._questions.required
            or self._isolated
            or self._affinities
            or self._one_per_tree
        )
        """Whether slots have anything to do with each other."""
        self._patterns = self._remembered()

    def _remembered(self) -> dict[tuple[int | bytes, ...], Pattern]:
        """Patterns of earlier requests that differ from this one at most in what tables tell."""
        asked: Hashable = (
            tuple((slot.group.suffix, tuple(slot.resources.items())) for slot in self._slots),
            len(self._questions.required),
            self._isolated,
            tuple((affinity.together, affinity.apart) for affinity in self._affinities),
            self._one_per_tree,
        )
        notes = self._snapshot.notes
        patterns: dict[tuple[int | bytes, ...], Pattern] = notes.setdefault(asked, {})
        notes.move_to_end(asked)
        while len(notes) > REMEMBERED_REQUESTS:
            notes.popitem(last=False)
        return patterns

    def forget_much(self) -> None:
        """Keep what is quickly told again; a long list is worked out again when it is needed."""
        long = [key for key, pattern in self._patterns.items() if pattern.size > LONG_PATTERN]
        for key in long:
            del self._patterns[key]
        if len(self._patterns) > REMEMBERED_PATTERNS:
            self._patterns.clear()

    def patterns(self, trees: Rows) -> Iterator[tuple[int, Pattern]]:
        """For each tree in turn its first row, and its combinations counted from there."""
        snapshot = self._snapshot
        for batch in batches(trees):
            tables = [offers(snapshot, slot, self._questions, batch) for slot in self._slots]
            starts = snapshot.tree_start.values[batch].tolist()
            shapes = snapshot.tree_shape.values[batch].tolist()
            for start, shape, *parts in zip(starts, shapes, *tables, strict=True):
                yield start, self._pattern(start, shape, parts)

    def _pattern(self, start: int, shape: int, parts: Sequence[Table]) -> Pattern:
        key: tuple[int | bytes, ...] = (shape, *[part.tobytes() for part in parts])
        pattern = self._patterns.get(key)
        if pattern is None:
            pattern = self._patterns[key] = Pattern(self._walk(start, parts))
        return pattern

    def _walk(self, start: int, parts: Sequence[Table]) -> Combinations:
        """The combinations of one tree in local numbers."""
        tables: list[list[list[int]]] = [part.tolist() for part in parts]
        # Fewest options first; the sort is stable, so the order of answers is fixed.
        order = sorted(range(len(tables)), key=lambda at: len(tables[at]))
        steps = [[line[0] for line in tables[at]] for at in order]
        rules = self._rules(start, [self._slots[at] for at in order], [tables[at] for at in order])
        return Walk(order, steps, rules).run() if rules is not None else iter(())

    def _rules(
        self, start: int, slots: Sequence[Slot], tables: Sequence[list[list[int]]]
    ) -> list[Rule] | None:
        """The rules for one tree; None if they plainly cannot all be kept there."""
        rules: list[Rule] = []
        steps = [[line[0] for line in table] for table in tables]
        distinct = sorted({option for options in steps for option in options})
        bits = {option: 1 << at for at, option in enumerate(distinct)}
        if self._questions.contended:
            wanted, headroom = self._contention(slots, tables)
            if not enough_in_all(wanted, headroom):
                return None
            rules.append(Capacity(wanted, headroom))
        if self._isolated:
            alone = [slot.group.suffix in self._isolated for slot in slots]
            if not distinct_options(
                [o for o, is_alone in zip(steps, alone, strict=True) if is_alone]
            ):
                return None
            rules.append(
                Isolation(
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
            rules += [subtree(a, slots, masks, ancestry, bits) for a in self._affinities]
        if self._questions.required:
            spread = [not slot.group.suffix for slot in slots]
            meets = {
                line[0]: line[-1]
                for table, is_spread in zip(tables, spread, strict=True)
                if is_spread
                for line in table
            }
            rules.append(CollectiveTraits(spread, steps, meets, len(self._questions.required)))
        if self._one_per_tree:
            giving = [bool(slot.resources) for slot in slots]
            rules.append(OneProviderPerTree(giving, {o: self._tree(o) for o in distinct}))
        return rules

    def _contention(
        self, slots: Sequence[Slot], tables: Sequence[list[list[int]]]
    ) -> tuple[list[dict[str, int]], dict[tuple[int, str], int]]:
        """By step what is wanted of contended classes; by option and class what can be had."""
        wanted: list[dict[str, int]] = []
        headroom: dict[tuple[int, str], int] = {}
        for slot, table in zip(slots, tables, strict=True):
            names = contended_by(slot, self._questions)
            wanted.append({name: slot.resources[name] for name in names})
            for line in table:
                for name, room in zip(names, line[1:], strict=False):
                    headroom[line[0], name] = room
        return wanted, headroom

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


def subtree(
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


class Pattern:
    """Combinations shared by trees that are alike: found once, by whoever comes first."""

    def __init__(self, walk: Combinations) -> None:
        self._walk = walk
        self._found: list[Combination] = []

    @property
    def size(self) -> int:
        return len(self._found)

    def reach(self, number: int) -> bool | None:
        """Whether there is a combination of this number; None: ask again, it takes long."""
        while len(self._found) <= number:
            try:
                combination = next(self._walk)
            except StopIteration:
                return False
            if combination is None:
                return None
            self._found.append(combination)
        return True

    def placed(self, number: int, start: int) -> Combination:
        """A combination that is in reach, in rows of the snapshot."""
        return tuple([start + o if o >= 0 else ~o for o in self._found[number]])


class Walk:
    """A depth-first walk over the slots of one tree."""

    def __init__(
        self, order: Sequence[int], steps: Sequence[list[int]], rules: Sequence[Rule]
    ) -> None:
        self._steps, self._rules = steps, rules
        self._place = [order.index(at) for at in range(len(order))]
        self._hopeless: set[tuple[int, State]] = set()
        self._choices = 0

    def run(self) -> Combinations:
        return self._from(0, tuple(rule.start for rule in self._rules), ())

    def _from(self, step: int, state: State, chosen: Combination) -> Combinations:
        if step == len(self._steps):
            yield tuple([chosen[place] for place in self._place])
            return
        if (step, state) in self._hopeless:
            return
        found = False
        for option in self._steps[step]:
            self._choices += 1
            if self._choices % PULSE == 0:
                yield None
            after = self._extend(state, step, option)
            if after is not None:
                for combination in self._from(step + 1, after, (*chosen, option)):
                    found = found or combination is not None
                    yield combination
        if not found:
            self._hopeless.add((step, state))

    def _extend(self, state: State, step: int, option: int) -> State:
        after = []
        for rule, before in zip(self._rules, state, strict=True):
            remembered = rule.extend(before, step, option)
            if remembered is None:
                return None
            after.append(remembered)
        return tuple(after)


def enough_in_all(
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


def distinct_options(options: Sequence[list[int]]) -> bool:
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
