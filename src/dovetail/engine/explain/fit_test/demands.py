"""Demands: the constraints of a request by number, and requests that keep only some of them.

Explainers ask thousands of times what would be if this or that constraint were not there. So sets
of constraints are bits of a whole number here, and a `PartialRequest` is what a set of them leaves
to be fitted into a tree (`tree_problem`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec
from msgspec.structs import replace

from dovetail.core.constraints import Constraint, constraints, tidy_affinities
from dovetail.core.explanation import Reason
from dovetail.core.request import Affinity, Request
from dovetail.engine.explain.fit_test.parts import (
    KeptRelations,
    PartialRequest,
    PartialSlot,
    Parts,
    bits,
)

Kept = int
"""A set of constraints: bit n is the constraint with number n."""
Groups = frozenset[int]
"""Groups, by number."""
ANY = ("",)
"""In place of classes that are not kept: one that no provider has, so that any will do."""
MOST_REMEMBERED = 1024
"""Partial requests; beyond that all are forgotten. Thousands, of a hundred slots each, would keep
the garbage collector busy for a tenth of a second at a time."""


class GroupDemands(msgspec.Struct, frozen=True):
    """The constraints of one group, by number."""

    suffix: str
    amounts: Mapping[str, int]
    """By resource class."""
    conditions: Sequence[int]
    """What a provider meets by itself, but for amounts. In `need`, bit n is the n-th of them."""

    @property
    def numbers(self) -> tuple[int, ...]:
        return (*self.amounts.values(), *self.conditions)


class Demands:
    """A request, taken apart."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.constraints = constraints(request)
        self.everything: Kept = (1 << len(self.constraints)) - 1
        numbered = list(enumerate(self.constraints))
        self.roots = [at for at, one in numbered if one.reason in OF_ROOTS]
        self.together = [at for at, one in numbered if one.reason is Reason.TOGETHER]
        self.relations = [at for at, one in numbered if one.reason in BETWEEN_GROUPS]
        """All of them but what contention for a class demands, which nobody can waive."""
        self.shared = next(
            (at for at, one in numbered if one.reason is Reason.SHARED_CAPACITY), None
        )
        own: dict[str | None, list[int]] = {}
        for at, one in numbered:
            if one.reason not in BETWEEN_GROUPS and at != self.shared:
                own.setdefault(one.group, []).append(at)
        self.groups = [self._group(group.suffix, own) for group in request.groups]
        self.group_bits: list[Kept] = [bits(group.numbers) for group in self.groups]
        """The constraints of each group."""
        self.amount_bits: list[Kept] = [bits(group.amounts.values()) for group in self.groups]
        self._partial: dict[tuple[Kept, Groups | None, bool, bool], PartialRequest] = {}
        self._bare: dict[Kept, Groups] = {}
        self._slots: dict[PartialSlot, PartialSlot] = {}
        self._parts = Parts()

    def _group(self, suffix: str, own: Mapping[str | None, list[int]]) -> GroupDemands:
        mine = own.get(suffix, [])
        is_amount = {at: self.constraints[at].reason is Reason.AMOUNT for at in mine}
        return GroupDemands(
            suffix,
            {self.constraints[at].name: at for at in mine if is_amount[at]},
            [at for at in mine if not is_amount[at]],
        )

    @cached_property
    def droppable(self) -> Kept:
        shared = 0 if self.shared is None else 1 << self.shared
        return self.everything & ~shared

    def without(
        self, dropped: Kept, changed: Mapping[int, Constraint] | None = None
    ) -> PartialRequest:
        """What is asked for without these, and with some in another form.

        A group that asks for nothing any more and is tied to no other goes with what it demanded,
        as in `core.constraints.with_changes`; so does one that demands nothing at all.
        """
        return self._cached(self.everything & ~dropped, changed, self.bare(dropped))

    def without_groups(
        self, dropped: Kept, changed: Mapping[int, Constraint] | None, gone: Groups
    ) -> PartialRequest:
        """The same where only these groups go for demanding nothing, and no provider does.

        Then what fits with more constraints fits with fewer; while without a group that others
        have to be below, they may be harder to place, and without a provider that has a trait
        which several have to have between them.
        """
        return self._cached(self.everything & ~dropped, changed, gone, spare=bool(self.together))

    def only(self, kept: Kept) -> PartialRequest:
        """These constraints alone; no provider less is to be found for that."""
        return self._cached(kept, None, None)

    def only_anywhere(self, kept: Kept) -> PartialRequest:
        """The same where a group's provider need not have the classes that are not kept of it."""
        return self._cached(kept, None, None, loose=True)

    def bare(self, dropped: Kept) -> Groups:
        """The groups that demand nothing without these."""
        found = self._bare.get(dropped)
        if found is None:
            found = self._bare[dropped] = frozenset(
                number for number, own in enumerate(self.group_bits) if not own & ~dropped
            )
        return found

    def _cached(
        self,
        kept: Kept,
        changed: Mapping[int, Constraint] | None,
        gone: Groups | None,
        *,
        spare: bool = False,
        loose: bool = False,
    ) -> PartialRequest:
        if changed:
            return self._make(kept, changed, gone, spare=spare, loose=loose)
        key = (kept, gone, spare, loose)
        found = self._partial.get(key)
        if found is None:
            if len(self._partial) >= MOST_REMEMBERED:
                self._partial.clear()
                self._parts.clear()
            found = self._partial[key] = self._make(kept, {}, gone, spare=spare, loose=loose)
        return found

    def _make(
        self,
        kept: Kept,
        changed: Mapping[int, Constraint],
        gone: Groups | None,
        *,
        spare: bool,
        loose: bool,
    ) -> PartialRequest:
        def form(at: int) -> Constraint:
            return changed.get(at, self.constraints[at])

        relations = [form(at) for at in self.relations if kept >> at & 1]
        affinities = [one.affinity for one in relations if one.affinity is not None]
        groups = list(enumerate(self.groups))
        if gone is not None:
            groups, affinities = self._tidied(kept, affinities, gone)
        slots: list[PartialSlot] = []
        for number, group in groups:
            amounts = tuple(
                (name, form(at).amount) for name, at in group.amounts.items() if kept >> at & 1
            )
            dropped = tuple(name for name, at in group.amounts.items() if not kept >> at & 1)
            unasked = dropped if gone is None else ()
            need = bits(place for place, at in enumerate(group.conditions) if kept >> at & 1)
            for slot in slots_of_group(number, group.suffix, need, amounts, unasked):
                is_free = loose and slot.unasked
                slots.append(self._numbered(replace(slot, unasked=ANY) if is_free else slot))
            if spare and not group.suffix and amounts:
                anywhere = [PartialSlot(number, "", name, need, (), ()) for name in dropped]
                slots += map(self._numbered, anywhere)
        asked = Counter(name for slot in slots for name, _ in slot.amounts)
        suffixes = frozenset(group.suffix for _, group in groups if group.suffix)
        isolated = frozenset(
            name for one in relations if one.reason is Reason.ISOLATION for name in one.names
        )
        contended = frozenset(name for name, times in asked.items() if times > 1)
        together = bits(place for place, at in enumerate(self.together) if kept >> at & 1)
        isolated = isolated & suffixes if len(suffixes) > 1 else frozenset()
        ties = [one for one in affinities if len(one.together) + len(one.apart) > 1]
        roots = bits(place for place, at in enumerate(self.roots) if kept >> at & 1)
        of_slots = KeptRelations(contended, together, isolated, tuple(ties))
        return PartialRequest(roots, slots, of_slots, self._parts)

    def _numbered(self, slot: PartialSlot) -> PartialSlot:
        """The same slot is one object, and has one number."""
        found = self._slots.get(slot)
        if found is None:
            found = self._slots[slot] = replace(slot, number=len(self._slots))
        return found

    def _tidied(
        self, kept: Kept, affinities: Iterable[Affinity], gone: Groups
    ) -> tuple[list[tuple[int, GroupDemands]], list[Affinity]]:
        """The groups that still ask for something or are tied to others, and what ties them.

        Each round takes a group or an affinity away, or is the last.
        """
        groups = list(enumerate(self.groups))
        ties = list(affinities)
        while True:
            tied = {name for one in ties for name in one.together | one.apart}
            left = [
                (number, group)
                for number, group in groups
                if any(kept >> at & 1 for at in group.amounts.values())
                or (group.suffix in tied and number not in gone)
            ]
            suffixes = frozenset(group.suffix for _, group in left if group.suffix)
            narrowed = list(tidy_affinities(ties, suffixes))
            if len(left) == len(groups) and narrowed == ties:
                return left, ties
            groups, ties = left, narrowed


def slots_of_group(
    number: int,
    suffix: str,
    need: int,
    amounts: tuple[tuple[str, int], ...],
    unasked: tuple[str, ...],
) -> Iterator[PartialSlot]:
    if suffix:
        yield PartialSlot(number, suffix, "", need, amounts, unasked)
        return
    for amount in amounts:
        yield PartialSlot(number, "", amount[0], need, (amount,), ())
    for name in unasked:
        yield PartialSlot(number, "", name, need, (), (name,))


def numbers_in(kept: Kept) -> Iterator[int]:
    """The constraints of a set, ascending."""
    while kept:
        lowest = kept & -kept
        yield lowest.bit_length() - 1
        kept ^= lowest


OF_ROOTS = frozenset(
    (
        Reason.ROOT_TRAIT,
        Reason.ROOT_FORBIDDEN_TRAIT,
        Reason.ROOT_AGGREGATE,
        Reason.ROOT_FORBIDDEN_AGGREGATE,
    )
)
BETWEEN_GROUPS = frozenset((Reason.TOGETHER, Reason.ISOLATION, Reason.SAME_SUBTREE))
