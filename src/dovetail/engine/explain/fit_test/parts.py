"""Parts: what is left of a request, taken apart into slots that have to do with each other.

`demands` makes partial requests, and `tree_problem` fits them into a tree part by part. Slots in
one subtree, and those that have to have traits between them, are of one part in any tree. Slots
that contend for a class or are isolated from each other are so only where one place may serve both:
groups that want processors and groups that want cards are looked at apart, so that a tree is
compared with others by what matters to each, and parts that stay the same when something else is
relaxed are known already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence

import msgspec

from dovetail.core.request import Affinity
from dovetail.engine.explain.fit_test.offers import Offering, Verdicts

Served = tuple[int, ...]
"""By slot of a partial request: bits of the places of a tree that may serve it."""
MOST_SPLITS = 256
"""That are kept of a partial request; beyond that all are forgotten."""


class PartialSlot(msgspec.Struct, frozen=True):
    """One provider to be found: for a suffixed group, or for one class of the unsuffixed one."""

    group: int
    suffix: str
    class_name: str
    """Of the unsuffixed group."""
    need: int
    """The group's conditions that are kept."""
    amounts: tuple[tuple[str, int], ...]
    unasked: tuple[str, ...]
    """Classes that are not kept: the provider is to be one of those that have them, if any has."""
    number: int = -1
    """Of all slots that were made of the request."""


class KeptRelations(msgspec.Struct, frozen=True):
    """What slots demand of each other."""

    contended: frozenset[str] = frozenset()
    together: int = 0
    """Bit n: the n-th trait that the unsuffixed group's providers have to have between them."""
    isolated: frozenset[str] = frozenset()
    affinities: tuple[Affinity, ...] = ()

    def within(self, slots: Sequence[PartialSlot]) -> KeptRelations:
        """As far as they are about these, which are all that a tie is about, or none."""
        names = Counter(name for slot in slots for name, _ in slot.amounts)
        suffixes = frozenset(slot.suffix for slot in slots if slot.suffix)
        return KeptRelations(
            frozenset(name for name in self.contended if names[name] > 1),
            self.together if len(suffixes) < len(slots) else 0,
            self.isolated & suffixes if len(suffixes) > 1 else frozenset(),
            tuple(one for one in self.affinities if members(one) & suffixes),
        )


class RequestPart(msgspec.Struct, frozen=True):
    """Slots that have to do with each other; `Parts` makes one for all requests that have it."""

    slots: Sequence[PartialSlot]
    relations: KeptRelations
    offering: Offering
    verdicts: Verdicts
    """What was found out about trees."""


class Parts:
    """All parts that were made of a request."""

    def __init__(self) -> None:
        self._known: dict[Hashable, RequestPart] = {}
        self._offerings: dict[Hashable, Offering] = {}

    def of(self, slots: Sequence[PartialSlot], relations: KeptRelations) -> RequestPart:
        own = relations.within(slots)
        key = (tuple(slot.number for slot in slots), own)
        found = self._known.get(key)
        if found is None:
            offering = self.offering(slots, range(len(slots)), own)
            found = self._known[key] = RequestPart(slots, own, offering, Verdicts())
        return found

    def offering(
        self, slots: Sequence[PartialSlot], bound: Sequence[int], relations: KeptRelations
    ) -> Offering:
        """One for all that see trees alike, so that those are looked at once."""
        contended, together = relations.contended, relations.together
        is_tied = bool(relations.affinities)
        numbers = tuple(slot.number for slot in slots)
        key = (numbers, tuple(bound), contended, together, is_tied)
        found = self._offerings.get(key)
        if found is None:
            amounts = [dict(slot.amounts) for slot in slots]
            found = Offering(amounts, bound, contended, together.bit_count(), is_tied=is_tied)
            self._offerings[key] = found
        return found

    def clear(self) -> None:
        self._known.clear()
        self._offerings.clear()


NumberedPart = tuple[list[int], RequestPart]
"""With the numbers of its slots in a partial request."""


class PartialRequest:
    """What is left of a request."""

    def __init__(
        self, roots: int, slots: Sequence[PartialSlot], relations: KeptRelations, parts: Parts
    ) -> None:
        """`roots`: bit n is the n-th constraint on roots."""
        self.roots, self.slots, self.relations = roots, slots, relations
        self.slot_numbers = tuple(slot.number for slot in slots)
        self._known = parts
        self._tied, self._meets = tied_slots(slots, relations), meeting_slots(slots, relations)
        self.bound = [at for at in range(len(slots)) if self._tied[at] or self._meets[at]]
        """The slots that may have to do with others."""
        self._splits: dict[Served, list[NumberedPart]] = {}
        self._known_splits: dict[tuple[int, ...], list[NumberedPart]] = {}
        """By what slots have to do with each other: the same in many trees."""

    def asks_for_something(self) -> bool:
        return any(slot.amounts for slot in self.slots)

    @property
    def offering(self) -> Offering:
        """To all slots at once: relations with fewer members see trees alike through it."""
        return self._known.offering(self.slots, self.bound, self.relations)

    def parts(self, served: Served) -> list[NumberedPart]:
        """Of a tree whose places serve so; slots that any option will do for are left out."""
        if not self.bound:
            return []
        found = self._splits.get(served)
        if found is None:
            if len(self._splits) >= MOST_SPLITS:
                self._splits.clear()
                self._known_splits.clear()
            near = tuple(self._near(at, served) for at in self.bound)
            found = self._known_splits.get(near)
            if found is None:
                found = self._known_splits[near] = list(self._split(near))
            self._splits[served] = found
        return found

    def _near(self, at: int, served: Served) -> int:
        """Bits of the slots that this one has to do with directly."""
        found, places = self._tied[at], served[at]
        for other in self._meets[at]:
            if places & served[other]:
                found |= 1 << other
        return found

    def _split(self, near: Sequence[int]) -> Iterator[NumberedPart]:
        """`near`: of each bound slot."""
        of_slot = dict(zip(self.bound, near, strict=True))
        left = bits(self.bound)
        while left:
            own, new = 0, left & -left
            while new:
                lowest = new & -new
                own |= lowest
                new = (new | of_slot[lowest.bit_length() - 1]) & ~own
            left &= ~own
            numbers = [at for at in self.bound if own >> at & 1]
            if len(numbers) > 1 or self._tied[numbers[0]]:
                slots = [self.slots[at] for at in numbers]
                yield numbers, self._known.of(slots, self.relations)


def tied_slots(slots: Sequence[PartialSlot], relations: KeptRelations) -> list[int]:
    """By slot: bits of itself and of others that it is tied to, whatever the tree; 0 if to none."""
    found = [0] * len(slots)
    groups = [members(one) for one in relations.affinities]
    if relations.together:
        groups.append(frozenset([""]))
    for names in groups:
        tied = [at for at, slot in enumerate(slots) if slot.suffix in names]
        for at in tied:
            found[at] |= bits(tied)
    return found


def meeting_slots(slots: Sequence[PartialSlot], relations: KeptRelations) -> list[list[int]]:
    """By slot: others that matter to it if one place may serve both."""
    found: list[set[int]] = [set() for _ in slots]
    for name in relations.contended:
        asking = [at for at, slot in enumerate(slots) if name in dict(slot.amounts)]
        for at in asking:
            found[at].update(asking)
    if relations.isolated:
        suffixed = [at for at, slot in enumerate(slots) if slot.suffix]
        isolated = [at for at in suffixed if slots[at].suffix in relations.isolated]
        for at in suffixed:
            found[at].update(suffixed if slots[at].suffix in relations.isolated else isolated)
    return [sorted(others - {at}) for at, others in enumerate(found)]


def members(affinity: Affinity) -> frozenset[str]:
    return affinity.together | affinity.apart


def bits(places: Iterable[int]) -> int:
    return sum(1 << place for place in places)
