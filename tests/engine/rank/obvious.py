"""Ranking done slowly and plainly: every candidate of a small forest, scored one by one.

A candidate is a tuple of provider ids, one for each slot. The formulas are those of the policies'
descriptions, written down a second time without arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from math import exp, floor, isqrt

from dovetail.core.request import Group, Request
from dovetail.engine import Search
from dovetail.engine.rank import Typical
from tests.engine.forest import SHARING, Forest, Inventory, Provider

Line = tuple[int, ...]
Free = dict[str, int]
Claims = Counter[tuple[int, str]]

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
        self.scarcity = Scarcity(forest, typical)

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
        if policy in {"fragmentation", "scarcity"}:
            parts = 4 if policy == "scarcity" else 1
            return floor(100 / (1 + exp(-self.drop(policy, line) / (1000 * parts))))
        return 0

    def drop(self, policy: str, line: Line) -> float:
        """How much less is lost after the claim, in thousandths of devices."""
        measure = self.fragments if policy == "fragmentation" else self.scarcity
        return measure.drop(self.home(line), self.claims(line))

    def nuance(self, policy: str, line: Line) -> int:
        if policy == "best-fit":
            return -self.over_rows(line, lambda p, n: self.largest(n))
        if policy in {"spread", "pack"}:
            left = self.over_rows(line, lambda p, n: capacity(p.inventories[n]))
            return left if policy == "spread" else MILLION - left
        if policy in {"fragmentation", "scarcity"}:
            return round(self.drop(policy, line) * self.fragments.weight)
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

    def claims(self, line: Line) -> Claims:
        found: Claims = Counter()
        for id_, wanted in zip(line, self.slots, strict=True):
            for name, amount in wanted.items():
                found[id_, name] += amount
        return found

    def order(self, terms: Iterable[tuple[str, int]], lines: Sequence[Line]) -> list[Line]:
        """The lines, which come as an unranked search finds them, best first."""
        terms = list(terms)
        if all(name == "first-fit" for name, _ in terms):
            return list(lines)
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
        held = {name for provider in forest for name in provider.inventories}
        self.measured = (own or {name for _, name in asked}) & held
        self.weight = max(sum(count for _, count in typical.requests), 1)

    def drop(self, root: Provider, claims: Claims) -> float:
        before = {p.id: {n: free(p, n) for n in p.inventories} for p in self.forest.tree(root)}
        after = {
            id_: {name: amount - claims[id_, name] for name, amount in held.items()}
            for id_, held in before.items()
        }
        return (self.expected(before) - self.expected(after)) / self.weight

    def expected(self, tree: dict[int, Free]) -> int:
        """Times the weight of all requests."""
        return sum(count * self.lost(request, tree) for request, count in self.typical.requests)

    def lost(self, request: Request, tree: dict[int, Free]) -> int:
        runs = self.runs(request, tree)
        return sum(
            self.units(name, held[name])
            for id_, held in tree.items()
            for name in self.measured & held.keys()
            if not (runs and self.usable(request, id_, held, name))
        )

    def units(self, name: str, amount: int) -> int:
        sizes = [capacity(p.inventories[name]) for p in self.forest if name in p.inventories]
        return max(amount, 0) * 1000 // max([1, *sizes])

    def usable(self, request: Request, id_: int, held: Free, name: str) -> bool:
        return any(
            self.gives(id_, held, part)
            for group in request.groups
            for part in parts(group)
            if name in part.resources
        )

    def gives(self, id_: int, held: Free, part: Group) -> bool:
        enough = all(max(held.get(n, 0), 0) >= amount for n, amount in part.resources.items())
        return enough and has_traits(self.forest.providers[id_], part)

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


class Scarcity(Fragments):
    """The same, with room, devices that cannot be fed and those that others will be short of."""

    def __init__(self, forest: Forest, typical: Typical) -> None:
        super().__init__(forest, typical)
        seen = [*typical.requests, *typical.rare]
        self.held = [(r, count) for r, count in seen if self.taken(r)]
        self.prices = [self.price(request) for request, _ in self.held]

    def expected(self, tree: dict[int, Free]) -> int:
        short = sum(self.weight * self.short(name, tree) // 4 for name in self.measured)
        worth = 8 * self.weight * self.worth(tree) // 1000
        return super().expected(tree) + 2 * self.room(tree) + 5 * short - worth

    def room(self, tree: dict[int, Free]) -> int:
        """What could be fed by what is free, for each request without devices that does not run."""
        unserved = sum(
            count
            for request, count in self.typical.requests
            if not self.takes_devices(request) and not self.runs(request, tree)
        )
        mixes = [self.mix(name) for name in self.measured]
        return unserved * sum(self.fed(tree, *mix, 2) for mix in mixes if mix[1])

    def takes_devices(self, request: Request) -> bool:
        return any(name in self.measured for group in request.groups for name in group.resources)

    def worth(self, tree: dict[int, Free]) -> int:
        """The free units, each at the highest price of a request that could use it."""
        found = 0
        for id_, held in tree.items():
            for name in self.measured & held.keys():
                offers = [
                    price
                    for (request, _), price in zip(self.held, self.prices, strict=True)
                    if self.runs(request, tree) and self.usable(request, id_, held, name)
                ]
                found += self.units(name, held[name]) * max([0, *offers])
        return found

    def price(self, request: Request) -> int:
        """In thousandths: pressure to the 3/2, times the share of demand easier to place."""
        asked = sum(count * self.taken(each) for each, count in self.held)
        competing = sum(
            count * self.taken(other)
            for other, count in self.held
            if self.is_as_hard(other, request)
        )
        supply = free_units = 0
        for root in self.forest.roots():
            tree = {p.id: {n: free(p, n) for n in p.inventories} for p in self.forest.tree(root)}
            runs = self.runs(request, tree)
            for id_, held in tree.items():
                for name in self.measured & held.keys():
                    units = self.units(name, held[name])
                    free_units += units
                    if runs and self.usable(request, id_, held, name):
                        supply += units
        pressure = 2000
        if supply:
            demand = competing * free_units // asked + self.taken(request)
            pressure = min(2000, 1000 * demand // supply)
        price = isqrt(pressure**3 // 1000) * (asked - competing) // asked
        return price * 1000 // self.hunger(request, asked)

    def hunger(self, request: Request, asked: int) -> int:
        """What it takes of other classes for a device, in thousandths of the mean of all."""
        totals = Counter[str]()
        for other, count in self.held:
            for name, amount in self.companions(other).items():
                totals[name] += count * amount
        size = self.taken(request)
        mine = self.companions(request)
        shares = [1000 * mine[name] * asked // (totals[name] * size) for name in mine]
        return max([1000, *shares])

    def companions(self, request: Request) -> Counter[str]:
        found = Counter[str]()
        for group in request.groups:
            found.update({n: a for n, a in group.resources.items() if n not in self.measured})
        return found

    def taken(self, request: Request) -> int:
        """Device units that a request takes."""
        return sum(
            self.units(name, amount)
            for group in request.groups
            for name, amount in group.resources.items()
            if name in self.measured
        )

    def is_as_hard(self, one: Request, other: Request) -> bool:
        """Whether each need of the other has a need of the one that is as hard, as many times."""
        return all(
            any(
                self.is_harder_need(mine, need) and times >= wanted
                for mine, times in counted_needs(one)
            )
            for need, wanted in counted_needs(other)
        )

    def is_harder_need(self, one: tuple[Group, bool], other: tuple[Group, bool]) -> bool:
        (mine, alone), (need, other_alone) = one, other
        return (
            alone >= other_alone
            and all(mine.resources.get(n, 0) >= amount for n, amount in need.resources.items())
            and all(has_traits(p, need) for p in self.forest if has_traits(p, mine))
        )

    def short(self, name: str, tree: dict[int, Free]) -> int:
        """Summed over four mixes: half, once, one and a half times and twice as hungry."""
        asked, others = self.mix(name)
        if not others:
            return 0
        there = sum(self.units(name, held.get(name, 0)) for held in tree.values())
        fed = [self.fed(tree, asked, others, halves) for halves in range(1, 5)]
        return sum(max(0, there - each) for each in fed)

    def mix(self, name: str) -> tuple[int, Counter[str]]:
        """Units of a class that typical requests take, and what they take beside it."""
        asked, others = 0, Counter[str]()
        for request, count in self.typical.requests:
            if any(name in group.resources for group in request.groups):
                for group in request.groups:
                    asked += count * self.units(name, group.resources.get(name, 0))
                    for other in group.resources.keys() - self.measured:
                        others[other] += count * group.resources[other]
        return asked, others

    def fed(self, tree: dict[int, Free], asked: int, others: Counter[str], halves: int) -> int:
        """The devices for which there is enough beside them, so hungry in halves of the mean."""
        return min(
            total_free(tree, other) * (2**21 * asked // (amount * halves)) // 2**20
            for other, amount in others.items()
        )


def total_free(tree: dict[int, Free], name: str) -> int:
    return sum(max(held.get(name, 0), 0) for held in tree.values())


def has_traits(provider: Provider, part: Group) -> bool:
    required = all(provider.traits & alternatives for alternatives in part.required)
    return required and not provider.traits & part.forbidden


def parts(group: Group) -> list[Group]:
    """What one provider each has to give: all of a suffixed group, else class by class."""
    if group.suffix:
        return [group]
    return [
        *(Group(resources={n: a}, forbidden=group.forbidden) for n, a in group.resources.items()),
        *(Group(required=(alternatives,)) for alternatives in group.required),
    ]


def counted_needs(request: Request) -> list[tuple[tuple[Group, bool], int]]:
    """What a request needs, whether each time of another provider, and how many times."""
    found: list[tuple[tuple[Group, bool], int]] = []
    left = [(part, part.suffix in request.isolated) for g in request.groups for part in parts(g)]
    while left:
        part, alone = left[0]
        same = [each for each in left if alike(each[0], part) and each[1] == alone]
        left = [each for each in left if not any(each is other for other in same)]
        times = len(same) if part.resources or alone else 1
        found.append(((part, alone), times))
    return found


def alike(one: Group, other: Group) -> bool:
    return (
        dict(one.resources) == dict(other.resources)
        and one.required == other.required
        and one.forbidden == other.forbidden
    )
