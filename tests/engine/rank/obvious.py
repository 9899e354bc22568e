"""Ranking done slowly and plainly: every candidate of a small forest, scored one by one.

A candidate is a tuple of provider ids, one for each slot. The formulas are those of the policies'
descriptions, written down a second time without arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from math import exp, floor

from dovetail.core.request import Group, Request
from dovetail.engine import Search
from dovetail.engine.rank import Typical
from tests.engine.forest import SHARING, Forest, Inventory, Provider

Line = tuple[int, ...]
Free = dict[str, int]

MILLION = 1_000_000
ORDINARY = {"VCPU", "PCPU", "MEMORY_MB", "DISK_GB"}


def capacity(held: Inventory) -> int:
    return int((held.total - held.reserved) * held.ratio)


def free(provider: Provider, name: str) -> int:
    held = provider.inventories[name]
    return capacity(held) - held.used


def millionths(part: int, whole: int) -> int:
    return int(min(max(part / max(whole, 1) * MILLION, 0), MILLION))


def whole_mean(numbers: Sequence[int]) -> int:
    return sum(numbers) // len(numbers)


class Judge:
    """Scores the candidates of one request in one forest."""

    def __init__(self, forest: Forest, search: Search, typical: Typical) -> None:
        self.forest = forest
        self.slots = [dict(slot.resources) for slot in search.slots]
        self.asked = Counter[str]()
        for wanted in self.slots:
            self.asked.update(wanted)
        self.fragments = Fragments(forest, typical)

    def home(self, line: Line) -> Provider:
        """The root of the first provider that does not share, or of the first."""
        chosen = [self.forest.providers[id_] for id_ in line]
        return self.forest.root(next((p for p in chosen if SHARING not in p.traits), chosen[0]))

    def points(self, policy: str, line: Line) -> int:
        if policy == "best-fit":
            left = self.over_classes(line, lambda p, n: self.left(p, n, self.largest(n)))
            return (MILLION - left) * 100 // MILLION
        if policy in {"spread", "pack"}:
            left = self.over_classes(line, lambda p, n: self.left(p, n, self.total(p, n)))
            return (left if policy == "spread" else MILLION - left) * 100 // MILLION
        if policy == "fragmentation":
            return self.fragments.points(self.home(line), self.claims(line))
        return 0

    def nuance(self, policy: str, line: Line) -> int:
        if policy == "best-fit":
            return -self.over_rows(line, lambda p, n: self.largest(n))
        if policy in {"spread", "pack"}:
            left = self.over_rows(line, lambda p, n: capacity(p.inventories[n]))
            return left if policy == "spread" else MILLION - left
        return 0

    def over_classes(self, line, value) -> int:  # type: ignore[no-untyped-def]
        """The mean over classes of the mean over the slots that want some."""
        return whole_mean(
            [
                whole_mean(
                    [
                        value(self.forest.providers[id_], name)
                        for id_, wanted in zip(line, self.slots, strict=True)
                        if name in wanted
                    ]
                )
                for name in self.asked
            ]
        )

    def over_rows(self, line, whole) -> int:  # type: ignore[no-untyped-def]
        """The mean of what the providers themselves have left."""
        left = []
        for id_, wanted in zip(line, self.slots, strict=True):
            provider = self.forest.providers[id_]
            for name, amount in wanted.items():
                left.append(millionths(free(provider, name) - amount, whole(provider, name)))
        return whole_mean(left)

    def left(self, provider: Provider, name: str, whole: int) -> int:
        tree = self.forest.tree(provider)
        there = sum(free(each, name) for each in tree if name in each.inventories)
        return millionths(there - self.asked[name], whole)

    def total(self, provider: Provider, name: str) -> int:
        held = [each.inventories.get(name) for each in self.forest.tree(provider)]
        return sum(capacity(inventory) for inventory in held if inventory)

    def largest(self, name: str) -> int:
        return max([1, *(self.total(root, name) for root in self.forest.roots())])

    def claims(self, line: Line) -> Counter[tuple[int, str]]:
        found = Counter[tuple[int, str]]()
        for id_, wanted in zip(line, self.slots, strict=True):
            for name, amount in wanted.items():
                found[id_, name] += amount
        return found

    def order(self, terms: Iterable[tuple[str, int]], lines: Sequence[Line]) -> list[Line]:
        """The lines, which come as an unranked search finds them, best first."""
        terms = list(terms)
        total = {line: sum(w * self.points(name, line) for name, w in terms) for line in lines}
        nuance = {line: sum(w * self.nuance(name, line) for name, w in terms) for line in lines}
        home = {line: self.home(line).id for line in lines}
        turns = Counter[Hashable]()
        keyed = []
        for line in sorted(lines, key=lambda line: -nuance[line]):
            place = home[line], total[line]
            keyed.append(((-total[line], turns[place], home[line]), line))
            turns[place] += 1
        return [line for _, line in sorted(keyed, key=lambda pair: pair[0])]


class Fragments:
    """Free device units that typical requests cannot use, before and after a claim."""

    def __init__(self, forest: Forest, typical: Typical) -> None:
        self.forest, self.typical = forest, typical
        asked = {
            (g.suffix, name) for r, _ in typical.requests for g in r.groups for name in g.resources
        }
        own = {name for suffix, name in asked if suffix and name not in ORDINARY}
        self.measured = own or {name for _, name in asked}

    def points(self, root: Provider, claims: Counter[tuple[int, str]]) -> int:
        before = {p.id: {n: free(p, n) for n in p.inventories} for p in self.forest.tree(root)}
        after = {
            id_: {name: amount - claims[id_, name] for name, amount in held.items()}
            for id_, held in before.items()
        }
        drop = self.expected(before) - self.expected(after)
        return floor(100 / (1 + exp(-drop / 1000)))

    def expected(self, tree: dict[int, Free]) -> float:
        weight = sum(count for _, count in self.typical.requests)
        lost = sum(count * self.lost(request, tree) for request, count in self.typical.requests)
        return lost / max(weight, 1)

    def lost(self, request: Request, tree: dict[int, Free]) -> int:
        runs = self.runs(request, tree)
        return sum(
            self.units(name, held)
            for id_, held in tree.items()
            for name in self.measured & held.keys()
            if not (runs and self.usable(request, id_, held, name))
        )

    def units(self, name: str, held: Free) -> int:
        sizes = [capacity(p.inventories[name]) for p in self.forest if name in p.inventories]
        return max(held[name], 0) * 1000 // max([1, *sizes])

    def usable(self, request: Request, id_: int, held: Free, name: str) -> bool:
        return any(
            self.gives(id_, held, part)
            for group in request.groups
            for part in parts(group)
            if name in part.resources
        )

    def gives(self, id_: int, held: Free, part: Group) -> bool:
        traits = self.forest.providers[id_].traits
        return (
            all(max(held.get(name, 0), 0) >= amount for name, amount in part.resources.items())
            and all(traits & alternatives for alternatives in part.required)
            and not traits & part.forbidden
        )

    def runs(self, request: Request, tree: dict[int, Free]) -> bool:
        """Whether the tree meets each need by itself."""
        wanted = [part for group in request.groups for part in parts(group)]
        return all(self.meets(request, tree, part, wanted) for part in wanted)

    def meets(
        self, request: Request, tree: dict[int, Free], part: Group, wanted: list[Group]
    ) -> bool:
        giving = [held for id_, held in tree.items() if self.gives(id_, held, part)]
        alone = part.suffix in request.isolated
        same = [each for each in wanted if alike(each, part)]
        same = [each for each in same if (each.suffix in request.isolated) == alone]
        if alone:
            return len(giving) >= len(same)
        if not part.resources:
            return bool(giving)
        pieces = [min(held[n] // amount for n, amount in part.resources.items()) for held in giving]
        return sum(pieces) >= len(same)


def parts(group: Group) -> list[Group]:
    """What one provider each has to give: all of a suffixed group, else class by class."""
    if group.suffix:
        return [group]
    return [
        *(Group(resources={n: a}, forbidden=group.forbidden) for n, a in group.resources.items()),
        *(Group(required=(alternatives,)) for alternatives in group.required),
    ]


def alike(one: Group, other: Group) -> bool:
    return (
        dict(one.resources) == dict(other.resources)
        and one.required == other.required
        and one.forbidden == other.forbidden
    )
