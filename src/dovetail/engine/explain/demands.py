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

from dovetail.core.constraints import Constraint, constraints, tidy_affinities
from dovetail.core.explanation import Reason
from dovetail.core.request import Affinity, Request

Kept = int
"""A set of constraints: bit n is the constraint with number n."""


Groups = frozenset[int]
"""Groups, by number."""


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


class PartialSlot(msgspec.Struct, frozen=True):
    """One provider to be found: for a suffixed group, or for one class of the unsuffixed one."""

    group: int
    class_name: str
    """Of the unsuffixed group."""
    need: int
    """The group's conditions that are kept."""
    amounts: tuple[tuple[str, int], ...]
    unasked: tuple[str, ...]
    """Classes that are not kept: the provider is to be one of those that have them, if any has."""


class PartialRequest(msgspec.Struct, frozen=True):
    roots: int
    """Bit n: the n-th constraint on roots."""
    slots: Sequence[PartialSlot]
    contended: frozenset[str]
    together: int
    """Bit n: the n-th trait that the unsuffixed group's providers have to have between them."""
    isolated: frozenset[str]
    affinities: Sequence[Affinity]

    def asks_for_something(self) -> bool:
        return any(slot.amounts for slot in self.slots)


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
        self._partial: dict[tuple[Kept, Groups | None], PartialRequest] = {}
        self._bare: dict[Kept, Groups] = {}

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
        """The same where only these groups go for demanding nothing.

        Then what fits with more constraints fits with fewer; while without a group that others
        have to be below, they may be harder to place.
        """
        return self._cached(self.everything & ~dropped, changed, gone)

    def only(self, kept: Kept) -> PartialRequest:
        """These constraints alone; no provider less is to be found for that."""
        return self._cached(kept, None, None)

    def bare(self, dropped: Kept) -> Groups:
        """The groups that demand nothing without these."""
        found = self._bare.get(dropped)
        if found is None:
            found = self._bare[dropped] = frozenset(
                number for number, own in enumerate(self.group_bits) if not own & ~dropped
            )
        return found

    def _cached(
        self, kept: Kept, changed: Mapping[int, Constraint] | None, gone: Groups | None
    ) -> PartialRequest:
        if changed:
            return self._make(kept, changed, gone)
        found = self._partial.get((kept, gone))
        if found is None:
            found = self._partial[kept, gone] = self._make(kept, {}, gone)
        return found

    def _make(
        self, kept: Kept, changed: Mapping[int, Constraint], gone: Groups | None
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
            unasked = (
                ()
                if gone is not None
                else tuple(n for n, at in group.amounts.items() if not kept >> at & 1)
            )
            need = bits(place for place, at in enumerate(group.conditions) if kept >> at & 1)
            slots += slots_of_group(number, group.suffix, need, amounts, unasked)
        asked = Counter(name for slot in slots for name, _ in slot.amounts)
        suffixes = frozenset(group.suffix for _, group in groups if group.suffix)
        isolated = frozenset(
            name for one in relations if one.reason is Reason.ISOLATION for name in one.names
        )
        return PartialRequest(
            roots=bits(place for place, at in enumerate(self.roots) if kept >> at & 1),
            slots=slots,
            contended=frozenset(name for name, times in asked.items() if times > 1),
            together=bits(place for place, at in enumerate(self.together) if kept >> at & 1),
            isolated=isolated & suffixes if len(suffixes) > 1 else frozenset(),
            affinities=[one for one in affinities if len(one.together) + len(one.apart) > 1],
        )

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
        yield PartialSlot(number, "", need, amounts, unasked)
        return
    for amount in amounts:
        yield PartialSlot(number, amount[0], need, (amount,), ())
    for name in unasked:
        yield PartialSlot(number, name, need, (), (name,))


def bits(places: Iterable[int]) -> int:
    return sum(1 << place for place in places)


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
