"""Layouts: which pods of the set are in which regions, and whether filters accept one more there.

The search over regions asks it for every step. The rules are those of `podfit/filters`, of pods
counted by region: a layout knows no nodes, and of regions that are alike only how many have what.
"""

from __future__ import annotations

import msgspec

from dovetail.podfit.packing.regions import RegionClass, RegionMap, SpreadCounts
from dovetail.podfit.packing.solver.problem import Counts

Layout = tuple[tuple[tuple[Counts, int], ...], ...]
"""By class of regions: what regions have of each kind, and how many have it."""


def empty_layout(regions: RegionMap, kinds: int) -> Layout:
    nothing = (0,) * kinds
    return tuple(((nothing, len(each.regions)),) for each in regions.classes)


def exchanged(layout: Layout, at: int, content: Counts, more: Counts) -> Layout:
    """With another content for one of the regions of that class that have the one."""
    groups = dict(layout[at])
    groups[content] -= 1
    if not groups[content]:
        del groups[content]
    groups[more] = groups.get(more, 0) + 1
    return (*layout[:at], tuple(sorted(groups.items())), *layout[at + 1 :])


def total(layout: Layout, kinds: int) -> list[int]:
    """How many of each kind are placed."""
    found = [0] * kinds
    for groups in layout:
        for content, regions in groups:
            for kind, count in enumerate(content):
                found[kind] += count * regions
    return found


class KindRules(msgspec.Struct):
    """What is asked before a pod of one kind is accepted."""

    apart: list[tuple[int, int]]
    """Topologies, and the kinds that must not be in the domain."""
    near: list[int]
    """Numbers of `RegionMap.near`, and of `spread`."""
    spread: list[int]


class LayoutRules:
    def __init__(self, regions: RegionMap, kinds: int) -> None:
        self.regions = regions
        self.of = [KindRules([], [], []) for _ in range(kinds)]
        """By kind."""
        for topology, one, other in regions.apart:
            self.of[one].apart.append((topology, other))
            if one != other:
                self.of[other].apart.append((topology, one))
        for at, near in enumerate(regions.near):
            self.of[near.near.kind].near.append(at)
        for at, spread in enumerate(regions.spread):
            self.of[spread.among.kind].spread.append(at)
        self._least_outside = [self._outside(each) for each in regions.spread]

    def _outside(self, spread: SpreadCounts) -> list[int]:
        """The fewest pods of a domain that no pod of the set can come to, if there is one."""
        reached = {
            each.domains[spread.topology] for one in self.regions.classes for each in one.regions
        }
        counts = [
            spread.there[domain]
            for domain, counts in enumerate(spread.domains)
            if counts and domain not in reached
        ]
        return [min(counts)] if counts else []

    def least_of(self, at: int, inside: list[int]) -> int:
        """The fewest pods of a domain, for a constraint; `inside`: of the domains of regions."""
        spread = self.regions.spread[at]
        if sum(spread.domains) < spread.among.constraint.min_domains:
            return 0
        return min(inside + self._least_outside[at], default=0)


class PodsInDomains:
    """One layout, seen by domain: what filters look at."""

    def __init__(self, rules: LayoutRules, layout: Layout) -> None:
        self._rules, self._regions = rules, rules.regions
        self._shared: dict[tuple[int, int], list[int]] = {}
        """By topology and domain with several regions, how many of each kind."""
        self._counted: list[dict[int, int]] = [{} for _ in self._regions.spread]
        """By constraint and such a domain, how many pods of the set count."""
        self._found = [each.is_anywhere for each in self._regions.near]
        private: list[list[int]] = [[] for _ in self._regions.spread]
        for region, groups in zip(self._regions.classes, layout, strict=True):
            for content, size in groups:
                if any(content):
                    self._add(region, content, size)
                for at, spread in enumerate(self._regions.spread):
                    if not region.private[spread.topology]:
                        self._count(at, region, content, size)
                    elif spread.domains[region.domains[spread.topology]]:
                        private[at].append(self.level(at, region, content))
        self._least = [
            rules.least_of(at, each + self._levels_of_shared(at)) for at, each in enumerate(private)
        ]

    def _add(self, region: RegionClass, content: Counts, size: int) -> None:
        for at, domain in enumerate(region.domains):
            if domain and not region.private[at]:
                tally = self._shared.setdefault((at, domain), [0] * len(content))
                for kind, count in enumerate(content):
                    tally[kind] += count * size
        for at, near in enumerate(self._regions.near):
            if any(content[kind] for kind in near.near.wanted):
                self._found[at] |= any(region.domains[topology] for topology in near.topologies)

    def _count(self, at: int, region: RegionClass, content: Counts, size: int) -> None:
        spread = self._regions.spread[at]
        domain = region.domains[spread.topology]
        if domain:
            count = counted_in(spread, region.counted[at], content) * size
            self._counted[at][domain] = self._counted[at].get(domain, 0) + count

    def _levels_of_shared(self, at: int) -> list[int]:
        spread = self._regions.spread[at]
        return [
            spread.there[domain] + count
            for domain, count in self._counted[at].items()
            if spread.domains[domain]
        ]

    def level(self, at: int, region: RegionClass, content: Counts) -> int:
        """The pods that count for a constraint in the domain of a region with that content."""
        spread = self._regions.spread[at]
        domain = region.domains[spread.topology]
        if region.private[spread.topology]:
            count = counted_in(spread, region.counted[at], content)
        else:
            count = self._counted[at].get(domain, 0)
        return spread.there[domain] + count

    def has(self, kind: int, topology: int, region: RegionClass, content: Counts) -> bool:
        """Whether any of the kind is in the domain of a region with that content."""
        domain = region.domains[topology]
        if not domain:
            return False
        if region.private[topology]:
            return content[kind] > 0
        return (topology, domain) in self._shared and self._shared[topology, domain][kind] > 0

    def accepts(self, kind: int, region: RegionClass, content: Counts) -> bool:
        """Whether filters accept one more pod of the kind in a region with that content."""
        rules = self._rules.of[kind]
        return (
            not any(self.has(other, at, region, content) for at, other in rules.apart)
            and all(self._is_first(at) or self.is_near(at, region, content) for at in rules.near)
            and all(self._is_even(at, region, content) for at in rules.spread)
        )

    def _is_first(self, at: int) -> bool:
        """A pod that wants its like is accepted anywhere, if there is none yet."""
        return not self._found[at] and self._regions.near[at].near.is_of_itself

    def is_near(self, at: int, region: RegionClass, content: Counts) -> bool:
        """Whether pods that affinity wants are in the domains of the region."""
        near = self._regions.near[at]
        return all(
            there[region.domains[topology]]
            or any(self.has(kind, topology, region, content) for kind in near.near.wanted)
            for topology, there in zip(near.topologies, near.there, strict=True)
        )

    def _is_even(self, at: int, region: RegionClass, content: Counts) -> bool:
        spread = self._regions.spread[at]
        skew = self.level(at, region, content) + spread.own - self._least[at]
        return skew <= spread.among.constraint.skew


def counted_in(spread: SpreadCounts, is_counted: bool, content: Counts) -> int:
    """How many pods of a region count for a constraint."""
    return sum(content[kind] for kind in spread.among.counted) if is_counted else 0
