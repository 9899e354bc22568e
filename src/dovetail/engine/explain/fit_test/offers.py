"""Offers: what a tree has for the slots of a partial request, as one whole number.

The fit test (`tree_problem`) asks here first. Bits say which places may serve which slot, and how
much each has left of a class that slots contend for; so a tree that has all the bits of one that
fits does too, and one that has none beyond those of a tree that does not fit does not either. Where
a thousand hosts are in use to different degrees, nearly all tests are answered by a few dozen.

What is left is told by the sums of amounts that it could serve: bit n is the n-th smallest of them.
Places that the request cannot tell apart are put in one order, so that mirrored trees are equal:
all places, if nothing ties slots together; else those below one provider, kind of subtree by kind.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from dovetail.core.inventory import Supply

Place = int
"""A row that a tree can be served from, by its number in `TreeProblem.rows`."""
Shape = bytes
"""Of a subtree: the shapes of what is below it, in brackets."""
Offer = tuple[Shape, int]
"""Trees are compared with those of one shape."""
MOST_SUMS = 256
"""Of amounts of one class; if there are more, trees are not compared."""


class Verdicts:
    """Offers of trees that were tested: the least that fit, and the most that do not."""

    def __init__(self) -> None:
        self._by_shape: dict[Shape, tuple[list[int], list[int]]] = {}

    def of(self, offer: Offer) -> bool | None:
        """Whether such a tree fits; None if that is not known."""
        shape, bits = offer
        fitting, failing = self._by_shape.get(shape, NEITHER)
        if any(not less & ~bits for less in fitting):
            return True
        return False if any(not bits & ~more for more in failing) else None

    def add(self, offer: Offer, *, fits: bool) -> None:
        shape, bits = offer
        known = self._by_shape.setdefault(shape, ([], []))[0 if fits else 1]
        known[:] = [one for one in known if (bits & ~one if fits else one & ~bits)]
        known.append(bits)


NEITHER: tuple[list[int], list[int]] = ([], [])


class Levels:
    """Of a class that slots contend for: what a place has left, in bits."""

    def __init__(self, wanted: Mapping[int, int]) -> None:
        """`wanted`: by slot, how much."""
        self._wanted = wanted
        self._sums: dict[int, tuple[list[int], list[int]]] = {}
        """By the slots that a place may serve (bits): the sums of what they want, ascending, and
        the bits that each of them is told by."""
        self.slots = sum(1 << at for at in wanted)
        self._all = self._of(self.slots)
        self.width = len(self._all)

    def _of(self, slots: int) -> list[int]:
        sums = {0}
        for at, amount in self._wanted.items():
            if slots >> at & 1 and len(sums) <= MOST_SUMS:
                sums |= {each + amount for each in sums}
        return sorted(sums)

    def bits(self, slots: int, held: Supply) -> int:
        slots &= self.slots
        known = self._sums.get(slots)
        if known is None:
            sums = self._of(slots)
            told = [(1 << bisect_right(self._all, each) - 1) - 1 for each in sums]
            known = self._sums[slots] = (sums, told)
        at = bisect_right(known[0], min(held.free, held.max_unit)) - 1
        return known[1][max(at, 0)]


class Offering:
    """How the offers of trees to some slots are made; requests that have these may share it."""

    def __init__(
        self,
        amounts: Sequence[Mapping[str, int]],
        bound: Sequence[int],
        contended: Iterable[str],
        traits: int,
        *,
        is_tied: bool,
    ) -> None:
        """By slot, what it asks for; the slots that have to do with others; how many traits are
        wanted of several together; whether some have to lie in one subtree."""
        self._bound, self._traits, self._is_tied = bound, traits, is_tied
        wanted = {
            name: {at: amounts[at][name] for at in bound if name in amounts[at]}
            for name in sorted(contended)
        }
        levels = [(name, Levels(by_slot)) for name, by_slot in wanted.items() if by_slot]
        self.is_comparable = all(one.width <= MOST_SUMS for _, one in levels)
        self._levels = levels if self.is_comparable else []
        self._width = len(amounts) + traits + sum(levels.width for _, levels in self._levels)

    def offer(
        self,
        form: Form,
        options: Sequence[Sequence[Place]],
        supplies: Mapping[tuple[Place, str], Supply],
        traits: Sequence[int],
    ) -> Offer:
        """`options`: by slot; `traits`: by place, which of those wanted together it has."""
        rows = [0] * form.size
        for at in self._bound:
            for place in options[at]:
                rows[place] |= 1 << at
        for place, served in enumerate(rows):
            if served:
                rows[place] = self._row(place, served, supplies, traits)
        if self._is_tied:
            return form.shape, packed(form.in_order(rows), self._width)
        return b"", packed(sorted(filter(None, rows), reverse=True), self._width)

    def _row(
        self,
        place: Place,
        served: int,
        supplies: Mapping[tuple[Place, str], Supply],
        traits: Sequence[int],
    ) -> int:
        found = served
        shift = self._width
        for name, levels in self._levels:
            shift -= levels.width
            if served & levels.slots:
                found |= levels.bits(served, supplies[place, name]) << shift
        if self._traits:
            found |= traits[place] << shift - self._traits
        return found


def packed(rows: Sequence[int], width: int) -> int:
    found = 0
    for row in reversed(rows):
        found = found << width | row
    return found


class Form:
    """How the places of a tree lie to each other."""

    def __init__(self, above: Sequence[Place | None]) -> None:
        """By place: the one above it, if that is a place of the tree."""
        self.size = len(above)
        self._below: list[list[Place]] = [[] for _ in above]
        self._tops: list[Place] = []
        for place, parent in enumerate(above):
            (self._tops if parent is None else self._below[parent]).append(place)
        self._bottom_up = list(self._tops)
        self.ancestry: dict[Place, int] = {}
        """By place: the bits of itself and of those above it."""
        for place in self._bottom_up:
            parent = above[place]
            self.ancestry[place] = 1 << place | (0 if parent is None else self.ancestry[parent])
            self._bottom_up += self._below[place]
        self._bottom_up.reverse()
        self._shapes: list[Shape] = [b""] * self.size
        for place in self._bottom_up:
            self._shapes[place] = b"(" + self._shape(self._below[place]) + b")"
        self.shape = self._shape(self._tops)
        self._alike_tops = self._by_shape(self._tops)
        self._inner = [
            (place, self._by_shape(self._below[place]))
            for place in self._bottom_up
            if self._below[place]
        ]
        """Places that have others below them, from the bottom up; and those, by shape."""

    def _shape(self, places: Sequence[Place]) -> Shape:
        return b"".join(sorted(self._shapes[place] for place in places))

    def _by_shape(self, places: Iterable[Place]) -> list[list[Place]]:
        found: dict[Shape, list[Place]] = {}
        for place in places:
            found.setdefault(self._shapes[place], []).append(place)
        return [found[shape] for shape in sorted(found)]

    def in_order(self, rows: Sequence[int]) -> list[int]:
        """The rows from the top down, in an order that is the same for trees that are mirrored.

        Of what is below one provider, shapes come in order, and then bits: so in trees of one shape
        places that lie alike have the same number.
        """
        flat: list[list[int]] = [[row] for row in rows]
        for place, below in self._inner:
            append_in_order(flat[place], below, flat)
        found: list[int] = []
        append_in_order(found, self._alike_tops, flat)
        return found


def append_in_order(
    found: list[int], by_shape: Sequence[Sequence[Place]], flat: Sequence[list[int]]
) -> None:
    for places in by_shape:
        if len(places) == 1:
            found += flat[places[0]]
        else:
            for each in sorted([flat[place] for place in places]):
                found += each
