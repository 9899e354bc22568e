"""The right answer to a request for candidates, found by trying every combination.

Slow, short and independent of both servers: what it holds is how Placement's answers are meant,
told by its documentation and sources with the known defects left out.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.differential.query import Group, Query
from tests.differential.world import SHARES, Provider, World

NESTED = 29
"""From 1.29 on a candidate may take from several providers of one tree."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to give one group what it asks for, as seen from the tree of an anchor."""

    suffix: str
    anchor: str
    parts: frozenset[tuple[str, str, int]]
    """(provider, class, amount)"""
    providers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One choice per group: what is taken, and which provider serves which group."""

    allocations: frozenset[tuple[str, str, int]]
    mappings: frozenset[tuple[str, frozenset[str]]]
    spread: frozenset[tuple[str, str, int]]
    """The part of the unsuffixed group; it follows from the other two."""


class Oracle:
    """Answers queries about one world in which some amounts are already used."""

    def __init__(self, world: World, used: dict[tuple[str, str], int]) -> None:
        self.world = world
        self.used = used
        self.anchors = {it.uuid: set(self._anchors(it)) for it in world.providers}

    def candidates(self, query: Query) -> dict[Candidate, set[str]]:
        """Every candidate, with the anchors it can be reached from."""
        return self.combine(query, {g.suffix: self.choices(query, g) for g in query.groups})

    def size(self, query: Query) -> int:
        """How many combinations there are to try."""
        per_anchor: dict[str, Counter[str]] = defaultdict(Counter)
        for group in query.groups:
            for choice in self.choices(query, group):
                per_anchor[choice.anchor][choice.suffix] += 1
        wanted = len(query.groups)
        return sum(math.prod(it.values()) for it in per_anchor.values() if len(it) == wanted)

    def choices(self, query: Query, group: Group) -> list[Choice]:
        found = self._alone(group) if group.suffix else self._spread(group)
        return [choice for choice in found if self.root_fits(query, choice.anchor)]

    def combine(self, query: Query, choices: dict[str, list[Choice]]) -> dict[Candidate, set[str]]:
        found: dict[Candidate, set[str]] = defaultdict(set)
        for anchor in self.world.providers:
            ways = [[it for it in each if it.anchor == anchor.uuid] for each in choices.values()]
            for combination in itertools.product(*ways):
                candidate = self._merged(query, combination)
                if candidate is not None:
                    found[candidate].add(anchor.uuid)
        return found

    def has_room(self, provider: Provider, name: str, amount: int) -> bool:
        """Whether one group may take the amount: capacity, unit bounds and step."""
        it = provider.inventories.get(name)
        return (
            it is not None
            and self._fits(provider.uuid, name, amount)
            and amount >= it.min_unit
            and amount % it.step_size == 0
        )

    def members(self, group: Group) -> set[str]:
        """Providers in an aggregate of each member_of."""
        return {
            it.uuid
            for it in self.world.providers
            if all(any_of & it.aggregates for any_of in group.member_of)
        }

    def _fits(self, uuid: str, name: str, amount: int) -> bool:
        it = self.world.by_uuid[uuid].inventories[name]
        total = self.used.get((uuid, name), 0) + amount
        return total <= (it.total - it.reserved) * it.allocation_ratio and amount <= it.max_unit

    def _anchors(self, provider: Provider) -> Iterator[str]:
        """Roots of the trees that may use the provider."""
        yield self.world.roots[provider.uuid]
        if SHARES in provider.traits:
            for other in self.world.providers:
                if other.aggregates & provider.aggregates:
                    yield self.world.roots[other.uuid]

    def root_fits(self, query: Query, root: str) -> bool:
        traits = self.world.by_uuid[root].traits
        return query.root_required <= traits and not query.root_forbidden & traits

    def _alone(self, group: Group) -> Iterator[Choice]:
        """A suffixed group: one provider gives everything and has all that is asked for."""
        members = self.members(group)
        for it in self.world.providers:
            if (
                it.uuid in members
                and not group.forbidden_aggregates & it.aggregates
                and not group.forbidden & it.traits
                and all(any_of & it.traits for any_of in group.required)
                and self._in_tree(group, it)
                and all(self.has_room(it, name, n) for name, n in group.resources.items())
            ):
                parts = frozenset((it.uuid, name, n) for name, n in group.resources.items())
                for anchor in self.anchors[it.uuid]:
                    yield Choice(group.suffix, anchor, parts, frozenset({it.uuid}))

    def _spread(self, group: Group) -> Iterator[Choice]:
        """The unsuffixed group: each class from any provider that the anchor's tree may use."""
        for root in (it.uuid for it in self.world.providers if it.parent is None):
            givers = [list(self.givers(group, root, name)) for name in group.resources]
            for picked in itertools.product(*givers):
                if self._traits_fit(group, picked):
                    amounts = group.resources.items()
                    taken = ((it.uuid, *what) for it, what in zip(picked, amounts, strict=True))
                    uuids = frozenset(it.uuid for it in picked)
                    yield Choice(group.suffix, root, frozenset(taken), uuids)

    def givers(self, group: Group, root: str, name: str) -> Iterator[Provider]:
        """Providers that may give the unsuffixed group one class in the tree of this root."""
        members = self.members(group)
        barred = group.forbidden_aggregates
        for it in self.world.providers:
            own = self.world.roots[it.uuid] == root
            # A provider of another tree must be a member itself and is out when in_tree is given.
            shared = root in self.anchors[it.uuid] and it.uuid in members and not group.in_tree
            if (
                (own or shared)
                and {it.uuid, root} & members
                and not barred & (it.aggregates | self.world.by_uuid[root].aggregates)
                and self._in_tree(group, it)
                and self.has_room(it, name, group.resources[name])
            ):
                yield it

    def _in_tree(self, group: Group, provider: Provider) -> bool:
        roots = self.world.roots
        return group.in_tree is None or roots.get(group.in_tree) == roots[provider.uuid]

    def _traits_fit(self, group: Group, picked: Iterable[Provider]) -> bool:
        together = frozenset[str]().union(*(it.traits for it in picked))
        return not group.forbidden & together and all(it & together for it in group.required)

    def _merged(self, query: Query, combination: tuple[Choice, ...]) -> Candidate | None:
        served = {choice.suffix: choice.providers for choice in combination}
        alone = [providers for suffix, providers in served.items() if suffix]
        if query.policy == "isolate" and len(set(alone)) < len(alone):
            return None
        if not all(self._together(served, names) for names in query.same_subtrees):
            return None
        taken: Counter[tuple[str, str]] = Counter()
        for choice in combination:
            for uuid, name, amount in choice.parts:
                taken[uuid, name] += amount
        if not all(self._fits(uuid, name, n) for (uuid, name), n in taken.items()):
            return None
        allocations = frozenset((uuid, name, n) for (uuid, name), n in taken.items())
        if query.minor < NESTED and not self._one_per_tree(allocations):
            return None
        spread = frozenset[tuple[str, str, int]]().union(
            *(choice.parts for choice in combination if not choice.suffix)
        )
        return Candidate(allocations, frozenset(served.items()), spread)

    def _together(self, served: dict[str, frozenset[str]], names: frozenset[str]) -> bool:
        """Whether one of the providers of these groups stands above all of them."""
        providers = frozenset[str]().union(*(served[name] for name in names))
        above = set.intersection(*(self.world.ancestors(uuid) for uuid in providers))
        return bool(above & providers)

    def _one_per_tree(self, allocations: frozenset[tuple[str, str, int]]) -> bool:
        providers = {uuid for uuid, _, _ in allocations}
        return len({self.world.roots[uuid] for uuid in providers}) == len(providers)
