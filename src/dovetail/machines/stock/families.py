"""Families: a type and those that depend on it, which share one stock.

A unit of a child is a share of a unit of its parent, exactly and in everything that it has: what
children take on a node adds up, and opens there as many units of the parent as hold it. Whole units
are held as the highest types that nodes serve (`tops`: the root, if nodes serve it), the rest of
opened ones as children, on their node. Selling and stock ask a `FamilyBook`; a type without
dependents is a family of one, and costs nothing more than counting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor

import msgspec

from dovetail.machines.documents import MachineSpec, derived
from dovetail.machines.shapes import UnitShape, shapes_of, types_unserved

ANYWHERE = ""
"""In the place of a node: whole units are held wherever there is room."""
NOTHING = Fraction(0)
NONE_UNHELD: Mapping[str, int] = {}


class Family(msgspec.Struct, frozen=True):
    root: UnitShape
    children: tuple[UnitShape, ...]
    """All that depend on the root, the largest share first."""
    available: dict[str, int]
    """Units by type."""
    tops: tuple[UnitShape, ...]
    """Served types whose parent no node serves; none, if no node serves the family."""

    @property
    def shapes(self) -> tuple[UnitShape, ...]:
        return (self.root, *self.children)


@derived
def families_of(spec: MachineSpec) -> tuple[Family, ...]:
    """In the order of the specification, by their roots."""
    shapes = shapes_of(spec)
    available = {each.name: each.available for each in spec.machine_types}
    unserved = types_unserved(spec)
    found = []
    for root in shapes.values():
        if root.root != root.name:
            continue
        children = [each for each in shapes.values() if each.root == root.name != each.name]
        children.sort(key=lambda each: (-each.share, each.name))
        family = (root, *children)
        tops = tuple(
            each
            for each in family
            if each.name not in unserved and all(one in unserved for one in each.line[1:])
        )
        numbers = {each.name: available[each.name] for each in family}
        found.append(Family(root, tuple(children), numbers, tops))
    return tuple(found)


class FamilyBook:
    """What of a family is sold, and what is left to be held as stock."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.sold: Counter[str] = Counter()
        self._shapes = {each.name: each for each in family.shapes}
        self._tops = {
            each.name: top for top in family.tops for each in family.shapes if top.name in each.line
        }
        """By type: as what its whole units are held."""
        self._opened: dict[str, dict[str, Fraction]] = {each.name: {} for each in family.tops}
        """By top and node: what children have of its units there."""

    def add(self, name: str, node: str, count: int = 1) -> None:
        """Units of the type are sold there."""
        self._count(name, node, count)

    def remove(self, name: str, node: str) -> None:
        """It was not sold after all."""
        self._count(name, node, -1)

    def _count(self, name: str, node: str, count: int) -> None:
        self.sold[name] += count
        top = self._tops.get(name)
        if top is not None and top.name != name:
            opened = self._opened[top.name]
            taken = opened.pop(node, NOTHING) + count * self._shapes[name].share / top.share
            if taken:
                opened[node] = taken

    def whole(self, top: str) -> int:
        """Units of a top that are neither sold nor opened; below nothing if too many are."""
        opened = sum(map(ceil, self._opened[top].values()))
        return self.family.available[top] - self.sold[top] - opened

    def has_stock_on(self, name: str, node: str) -> bool:
        """Whether one more could be sold there, as far as the counts go."""
        if self._left(name, self.sold) <= 0:
            return False
        top = self._tops.get(name)
        return top is None or not self.opens_unit(name, node) or self.whole(top.name) > 0

    def opens_unit(self, name: str, node: str) -> bool:
        """Whether the next unit of the type there needs another whole one."""
        top = self._tops.get(name)
        if top is None or top.name == name:
            return True
        taken = self._opened[top.name].get(node, NOTHING)
        return ceil(taken + self._shapes[name].share / top.share) > ceil(taken)

    def best_node(self, name: str) -> str:
        """One on which the next unit of the type opens no other, if there is any: else ANYWHERE."""
        top = self._tops.get(name)
        opened = () if top is None else self._opened[top.name]
        return next((node for node in opened if not self.opens_unit(name, node)), ANYWHERE)

    def spent(self, name: str) -> str:
        """Of a type of which none is left: the type above it of which there is too little, or
        itself."""
        counted = self.sold
        shape = self._shapes[name]
        return next(
            (
                each
                for each in shape.line
                if self.family.available[each] - self.used(each, counted)
                < shape.share / self._shapes[each].share
            ),
            self._tops[name].name if name in self._tops else name,
        )

    def free(self, name: str, unheld: Mapping[str, int] = NONE_UNHELD) -> int:
        """How many more of the type could be sold at the least, as far as the counts go.

        `unheld` has by type how many units that should be held find no room.
        """
        left = max(self._left(name, self.sold), 0)
        top = self._tops.get(name)
        if top is None:
            return left
        whole = max(self.whole(top.name) - unheld.get(top.name, 0), 0)
        if top.name == name:
            return min(left, whole)
        share = self._shapes[name].share / top.share
        parts = sum(int((ceil(taken) - taken) / share) for taken in self._opened[top.name].values())
        parts = max(parts - unheld.get(name, 0), 0)
        return min(left, parts + whole * int(1 / share))

    def _left(self, name: str, counted: Counter[str]) -> int:
        """How many more there are of the type, and of all that it is a share of."""
        if not self.family.children:
            return self.family.available[name] - counted[name]
        shape = self._shapes[name]
        return min(
            floor(
                (self.family.available[each] - self.used(each, counted))
                * (self._shapes[each].share / shape.share)
            )
            for each in shape.line
        )

    def stock(self) -> Counter[tuple[str, str]]:
        """Sleepers that there should be, by type and node; whole units ANYWHERE.

        Of the rest of an opened unit the largest shares are held, for they are the hardest to find
        room for later.
        """
        found: Counter[tuple[str, str]] = Counter()
        counted = Counter(self.sold)
        for top in self.family.tops:
            for node, taken in sorted(self._opened[top.name].items()):
                rest = ceil(taken) - taken
                for shape in self.family.children:
                    if self._tops.get(shape.name) is not top or shape is top:
                        continue
                    share = shape.share / top.share
                    count = min(int(rest / share), self._left(shape.name, counted))
                    if count > 0:
                        found[shape.name, node] += count
                        counted[shape.name] += count
                        rest -= count * share
            count = min(self.whole(top.name), self._left(top.name, counted))
            if count > 0:
                found[top.name, ANYWHERE] += count
                counted[top.name] += count
        return found

    def parts(self) -> Counter[tuple[str, str]]:
        """Of the stock what holds the rest of opened units, by type and node."""
        stock = self.stock()
        return Counter({key: count for key, count in stock.items() if key[1] != ANYWHERE})

    def used(self, name: str, counted: Counter[str]) -> Fraction:
        """Units of the type in use, its descendants' shares included; `counted` by type."""
        share = self._shapes[name].share
        return sum(
            (
                each.share / share * counted[each.name]
                for each in self._shapes.values()
                if name in each.line
            ),
            NOTHING,
        )
