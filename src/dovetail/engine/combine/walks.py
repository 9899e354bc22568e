"""Walks: the backtracking of one offer, with the rules that its request makes.

The combiner has a walk made for each distinct offer; rules are made when somebody wants its
combinations, slot by slot, so that a tree of a thousand devices holds nobody up. What plainly
cannot fit (too little in all, fewer options than isolated groups) is refused before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from dovetail.core.request import Affinity, Request
from dovetail.engine.combine.backtrack import Backtracking, Combinations
from dovetail.engine.combine.matching import has_distinct_options
from dovetail.engine.combine.offers import ANSWERS, OPTION, SLOT, WORD, Questions, Table
from dovetail.engine.combine.rules import (
    CapacityRule,
    CollectiveTraitsRule,
    IsolationRule,
    OneProviderPerTreeRule,
    Rule,
    SubtreeRule,
)
from dovetail.engine.feasible import Slot, SlotWish, trait_mask
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.work import Work

OfferLines = list[list[int]]
"""The lines of an offer that belong to one slot."""


class SlotRelations(msgspec.Struct, frozen=True):
    """How the slots of a request lie to each other."""

    questions: Questions
    isolated: frozenset[str]
    affinities: tuple[Affinity, ...]
    one_per_tree: bool

    @property
    def are_any(self) -> bool:
        """Whether slots have anything to do with each other."""
        return bool(
            self.questions.contended
            or self.questions.required
            or self.isolated
            or self.affinities
            or self.one_per_tree
        )


def relations_of(snapshot: Snapshot, request: Request, slots: Sequence[Slot]) -> SlotRelations:
    amounts: dict[str, list[int]] = {}
    for slot in slots:
        for name, amount in slot.resources.items():
            amounts.setdefault(name, []).append(amount)
    spread = next((slot.group for slot in slots if not slot.group.suffix), None)
    suffixed = sum(1 for slot in slots if slot.group.suffix)
    return SlotRelations(
        Questions(
            contended={name: sum(each) for name, each in amounts.items() if len(each) > 1},
            required=[
                trait_mask(snapshot, [alternatives], ())
                for alternatives in (spread.required if spread else ())
            ],
        ),
        request.isolated if suffixed > 1 else frozenset(),
        tuple(
            affinity
            for affinity in request.affinities
            if len(affinity.together) + len(affinity.apart) > 1
        ),
        request.one_provider_per_tree,
    )


class OfferWalk:
    """Starts backtracking over one offer. It reads nothing of its tree that may change later, and
    keeps no column: patterns are kept by the thousand, and columns are as long as the fleet."""

    def __init__(
        self,
        snapshot: Snapshot,
        wishes: Sequence[SlotWish],
        relations: SlotRelations,
        start: int,
        offer: Table,
    ) -> None:
        """`start`: the first row of a tree with this offer."""
        self._wishes, self._relations, self._offer = wishes, relations, offer
        parent, tree = snapshot.parent.values, snapshot.tree.values
        own = parent[start : start + int(snapshot.tree_size.values[tree[start]])]
        self._own_parents: NDArray[np.int32] = np.where(own < 0, -1, own - start)
        shared = {option for option in offer[:, OPTION].tolist() if option < 0}
        self._shared_homes = {option: int(tree[~option]) for option in shared}
        self._shared_parents: dict[int, int] = {}
        for option in shared:
            up = option
            while up < 0 and up not in self._shared_parents:
                self._shared_parents[up] = up = ~int(parent[~up])

    def __call__(self) -> Combinations:
        """The combinations of the tree in local numbers."""
        tables: list[OfferLines] = [[] for _ in self._wishes]
        ends = self._offer[:, SLOT].searchsorted(np.arange(len(tables) + 1))
        for at, (low, high) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)):
            tables[at] = self._offer[low:high].tolist()
            yield None
        # Fewest options first; the sort is stable, so the order of answers is fixed.
        order = sorted(range(len(tables)), key=lambda at: len(tables[at]))
        steps = [[line[OPTION] for line in tables[at]] for at in order]
        rules = yield from self._rules(
            [self._wishes[at] for at in order], [tables[at] for at in order], steps
        )
        if rules is not None:
            yield from Backtracking(order, steps, rules).combinations()

    def _rules(
        self, slots: Sequence[SlotWish], tables: Sequence[OfferLines], steps: Sequence[list[int]]
    ) -> Work[list[Rule] | None]:
        """The rules for the tree; None if they plainly cannot all be kept there."""
        relations, rules = self._relations, list[Rule]()
        distinct = sorted({option for options in steps for option in options})
        bits = {option: 1 << at for at, option in enumerate(distinct)}
        if relations.questions.contended:
            wanted, headroom = yield from self._contention(slots, tables)
            if not has_enough_in_all(wanted, headroom):
                return None
            rules.append(CapacityRule(wanted, headroom))
            yield
        if relations.isolated:
            alone = [slot.group.suffix in relations.isolated for slot in slots]
            places = [each for each, is_alone in zip(steps, alone, strict=True) if is_alone]
            if not (yield from has_distinct_options(places)):
                return None
            isolation = [
                is_alone if slot.group.suffix else None
                for slot, is_alone in zip(slots, alone, strict=True)
            ]
            rules.append(IsolationRule(isolation, bits))
        if relations.affinities:
            ancestry = yield from self._ancestry(distinct, bits)
            masks = [sum(bits[option] for option in options) for options in steps]
            for affinity in relations.affinities:
                rules.append(subtree_rule(affinity, slots, masks, ancestry, bits))
                yield
        if relations.questions.required:
            rules.append(self._collective_rule(slots, tables, steps))
            yield
        if relations.one_per_tree:
            giving = [bool(slot.resources) for slot in slots]
            rules.append(OneProviderPerTreeRule(giving, {o: self._home(o) for o in distinct}))
        return rules

    def _contention(
        self, slots: Sequence[SlotWish], tables: Sequence[OfferLines]
    ) -> Work[tuple[list[dict[str, int]], dict[tuple[int, str], int]]]:
        """By step what is wanted of contended classes; by option and class what can be had."""
        wanted: list[dict[str, int]] = []
        headroom: dict[tuple[int, str], int] = {}
        for slot, table in zip(slots, tables, strict=True):
            names = self._relations.questions.contended_columns(slot)
            wanted.append({name: slot.resources[name] for name, _ in names})
            for line in table:
                for name, at in names:
                    headroom[line[OPTION], name] = line[at]
            yield
        return wanted, headroom

    def _collective_rule(
        self, slots: Sequence[SlotWish], tables: Sequence[OfferLines], steps: Sequence[list[int]]
    ) -> CollectiveTraitsRule:
        questions = self._relations.questions
        spread = [not slot.group.suffix for slot in slots]
        meets = {
            line[OPTION]: requirements_met(line[ANSWERS : ANSWERS + questions.words])
            for table, is_spread in zip(tables, spread, strict=True)
            if is_spread
            for line in table
        }
        return CollectiveTraitsRule(spread, steps, meets, len(questions.required))

    def _ancestry(self, options: Sequence[int], bits: Mapping[int, int]) -> Work[dict[int, int]]:
        """For each option, the bits of itself and of those options that are above it."""
        own = self._own_parents.tolist()
        ancestry = {}
        for at, option in enumerate(options):
            mask, up = 0, option
            if option >= 0:
                while up >= 0:
                    mask |= bits.get(up, 0)
                    up = own[up]
            else:
                while up < 0:
                    mask |= bits.get(up, 0)
                    up = self._shared_parents[up]
            ancestry[option] = mask
            if at % 64 == 0:
                yield
        return ancestry

    def _home(self, option: int) -> int:
        """The tree of an option, where it matters only whether two options have the same."""
        return -1 if option >= 0 else self._shared_homes[option]


def requirements_met(words: Sequence[int]) -> int:
    """Which of the requirements an option meets, a bit each."""
    return sum(word << WORD * at for at, word in enumerate(words))


def subtree_rule(
    affinity: Affinity,
    slots: Sequence[SlotWish],
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


def has_enough_in_all(
    wanted: Sequence[Mapping[str, int]], headroom: Mapping[tuple[int, str], int]
) -> bool:
    """Whether the options together could hold what the slots want: in units, and in pieces."""
    portions: dict[str, list[int]] = {}
    for amounts in wanted:
        for name, amount in amounts.items():
            portions.setdefault(name, []).append(amount)
    rooms: dict[str, list[int]] = {name: [] for name in portions}
    for (_, name), room in headroom.items():
        rooms[name].append(room)
    for name, pieces in portions.items():
        smallest = min(pieces)
        in_pieces = sum(room // smallest for room in rooms[name])
        if sum(rooms[name]) < sum(pieces) or in_pieces < len(pieces):
            return False
    return True
