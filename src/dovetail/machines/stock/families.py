"""Families: a type and those that depend on it, which share one stock.

A unit of a child is a share of a unit of the root. The first child that is sold opens a unit of the
root on its node: children take their shares of opened units, and the whole ones are the root's.
Selling and stock ask a `FamilyBook`; a type without dependents is a family of one, and costs
nothing more than counting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from math import lcm

import msgspec

from dovetail.machines.documents import MachineSpec, derived
from dovetail.machines.shapes import UnitShape, shapes_of

WHOLE = Fraction(1)


class Family(msgspec.Struct, frozen=True):
    root: UnitShape
    children: tuple[UnitShape, ...]
    """All that depend on the root, the largest share first."""
    available: dict[str, int]
    """Units by type."""

    @property
    def denominator(self) -> int:
        """Shares in whole numbers: the root's unit has so many."""
        return lcm(*(each.share.denominator for each in self.children))


@derived
def families_of(spec: MachineSpec) -> tuple[Family, ...]:
    """In the order of the specification, by their roots."""
    shapes = shapes_of(spec)
    available = {each.name: each.available for each in spec.machine_types}
    found = []
    for shape in shapes.values():
        if shape.root == shape.name:
            children = [each for each in shapes.values() if each.root == shape.name]
            children.remove(shape)
            children.sort(key=lambda each: (-each.share, each.name))
            names = [shape.name, *(each.name for each in children)]
            found.append(Family(shape, tuple(children), {name: available[name] for name in names}))
    return tuple(found)


def opened_units(shares: Iterable[Fraction]) -> list[Fraction]:
    """What is taken of each opened unit, when shares are put into as few as first fit finds, the
    largest first."""
    opened: list[Fraction] = []
    for share in sorted(shares, reverse=True):
        at = next((n for n, taken in enumerate(opened) if taken + share <= WHOLE), None)
        if at is None:
            opened.append(share)
        else:
            opened[at] += share
    return opened


class FamilyBook:
    """What of a family is sold, and what is left to be held as stock."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.sold: Counter[str] = Counter()
        self._shapes = {each.name: each for each in (family.root, *family.children)}
        self._shares: dict[str, list[Fraction]] = {}
        """Of children, by node."""
        self._opened: dict[str, list[Fraction]] = {}

    def add(self, name: str, node: str) -> None:
        """A unit of the type is sold there."""
        self.sold[name] += 1
        shape = self._shapes[name]
        if shape is not self.family.root:
            shares = self._shares.setdefault(node, [])
            shares.append(shape.share)
            self._opened[node] = opened_units(shares)

    def remove(self, name: str, node: str) -> None:
        """It was not sold after all."""
        self.sold[name] -= 1
        shape = self._shapes[name]
        if shape is not self.family.root:
            self._shares[node].remove(shape.share)
            self._opened[node] = opened_units(self._shares[node])

    @property
    def opened(self) -> int:
        """Units of the root that are in parts."""
        return sum(map(len, self._opened.values()))

    @property
    def whole(self) -> int:
        """Units of the root that are neither sold nor opened; below nothing if too many are."""
        root = self.family.root.name
        return self.family.available[root] - self.sold[root] - self.opened

    def has_stock_on(self, name: str, node: str) -> bool:
        """Whether one more could be sold there, as far as the counts go."""
        if self.sold[name] >= self.family.available[name]:
            return False
        return self.whole > 0 or not self.opens_unit(name, node)

    def opens_unit(self, name: str, node: str) -> bool:
        """Whether the next unit of the type there needs another whole unit of the root."""
        shape = self._shapes[name]
        if shape is self.family.root:
            return True
        return all(taken + shape.share > WHOLE for taken in self._opened.get(node, ()))

    def free(self, name: str) -> int:
        """How many more of the type could be sold, as far as the counts go."""
        left = self.family.available[name] - self.sold[name]
        shape = self._shapes[name]
        whole = max(self.whole, 0)
        if shape is self.family.root:
            return max(min(left, whole), 0)
        parts = sum(
            int((WHOLE - taken) / shape.share)
            for opened in self._opened.values()
            for taken in opened
        )
        return max(min(left, parts + whole * int(WHOLE / shape.share)), 0)

    def parts(self) -> Counter[tuple[str, str]]:
        """What holds the rest of opened units: so many sleepers of a type on a node.

        The largest shares first, for they are the hardest to find room for later.
        """
        found: Counter[tuple[str, str]] = Counter()
        left = {
            each.name: self.family.available[each.name] - self.sold[each.name]
            for each in self.family.children
        }
        for node, opened in sorted(self._opened.items()):
            for taken in opened:
                rest = WHOLE - taken
                for shape in self.family.children:
                    count = min(int(rest / shape.share), left[shape.name])
                    if count > 0:
                        found[shape.name, node] += count
                        left[shape.name] -= count
                        rest -= count * shape.share
        return found

    def used(self, name: str, counted: Counter[str]) -> Fraction:
        """Units of the type in use, its descendants' shares included; `counted` by type."""
        share = self._shapes[name].share
        return sum(
            (
                each.share / share * counted[each.name]
                for each in self._shapes.values()
                if name in each.line
            ),
            Fraction(0),
        )
