"""Random questions about a world: mostly allocation candidates, well-formed and likely to be met.

Wishes are drawn from what one tree of the world has and then bent a little, so that most queries
have answers and many just miss.
"""

from __future__ import annotations

import random
from dataclasses import replace

from tests.differential.faults import spoilt
from tests.differential.forests import CLASSES, TRAITS, some_of, some_uuid
from tests.differential.lookups import Lookups, some_version
from tests.differential.oracle import Oracle
from tests.differential.query import Group, Query
from tests.differential.wire import Call
from tests.differential.world import SHARES, Provider, World

MOST_COMBINATIONS = 3000
FEW = 4
REPEATED_AGGREGATES, SUFFIXES, IN_TREE, NOT_MEMBER, NAMED = 24, 25, 31, 32, 33
LIMIT, REQUIRED, MEMBER_OF, FORBIDDEN = 16, 17, 21, 22
ROOT_REQUIRED, SUBTREE, ANY_TRAIT = 35, 36, 39


class Questioner:
    """Draws questions about one world."""

    def __init__(self, rng: random.Random, oracle: Oracle) -> None:
        self.rng, self.oracle = rng, oracle
        self.world: World = oracle.world
        self.aggregates = sorted({a for it in self.world.providers for a in it.aggregates})
        self.aggregates.append(some_uuid(rng))
        self.lookups = Lookups(rng, self.world, self.aggregates)

    def next(self) -> Query | Call:
        drawn = self.rng.random()
        if drawn < 0.75:
            return self.query()
        if drawn < 0.82:
            return spoilt(self.rng, self.query())
        return self.lookups.listing() if drawn < 0.92 else self.lookups.reading()

    def query(self) -> Query:
        while True:
            query = self._query()
            size = self.oracle.size(query)
            if size > MOST_COMBINATIONS or (size == 0 and self.rng.random() < 0.85):
                continue
            if size < FEW and self.rng.random() < 0.3:
                continue
            return query

    def _query(self) -> Query:
        rng = self.rng
        version = some_version(rng, 10)
        minor = int(version.split(".")[1])
        tree = self._tree()
        groups = self._groups(tree, minor)
        suffixes = [group.suffix for group in groups if group.suffix]
        query = Query(tuple(groups), version, policy=self._policy(suffixes))
        if minor >= SUBTREE:
            query = self._related(query, tree)
        if minor >= ROOT_REQUIRED and rng.random() < 0.15:
            traits = sorted(self.world.by_uuid[tree[0].uuid].traits)
            needed = some_of(rng, traits or TRAITS, 1)
            query = replace(
                query,
                root_required=needed,
                root_forbidden=some_of(rng, TRAITS, 1) - needed,
            )
        if minor >= LIMIT and rng.random() < 0.12:
            query = replace(query, limit=rng.randint(1, 12))
        return query

    def _tree(self) -> list[Provider]:
        """The providers of one tree and some that share with it: where wishes come from."""
        root = self.rng.choice(list(self.world.roots.values()))
        return [
            it
            for it in self.world.providers
            if self.world.roots[it.uuid] == root or root in self.oracle.anchors[it.uuid]
        ]

    def _groups(self, tree: list[Provider], minor: int) -> list[Group]:
        rng = self.rng
        count = rng.choice((0, 0, 1, 1, 2, 2, 3)) if minor >= SUFFIXES else 0
        names = ["1", "2", "3"] if minor < NAMED or rng.random() < 0.3 else ["_A", "_B-1", "_NET"]
        groups = [self._suffixed(tree, minor, suffix) for suffix in names[:count]]
        if not groups or rng.random() < 0.6:
            groups.insert(rng.choice((0, len(groups))), self._unsuffixed(tree, minor))
        return groups

    def _policy(self, suffixes: list[str]) -> str | None:
        if len(suffixes) > 1:
            return self.rng.choice(("none", "none", "isolate"))
        return self.rng.choice((None, "none", "isolate")) if suffixes else None

    def _unsuffixed(self, tree: list[Provider], minor: int) -> Group:
        rng = self.rng
        offered = sorted({name for it in tree for name in it.inventories}) or list(CLASSES[:1])
        names = rng.sample(offered, min(len(offered), rng.choice((1, 1, 2, 2, 3))))
        wanted = {name: self._amount() for name in names}
        return self._conditioned(Group("", wanted), tree, minor)

    def _suffixed(self, tree: list[Provider], minor: int, suffix: str) -> Group:
        rng = self.rng
        stocked = [it for it in tree if it.inventories]
        if not stocked:
            return Group(suffix, {CLASSES[0]: 1})
        model = rng.choice(stocked)
        names = rng.sample(sorted(model.inventories), rng.choice((1, 1, len(model.inventories))))
        wanted = {name: self._amount() for name in names}
        return self._conditioned(Group(suffix, wanted), [model], minor)

    def _amount(self) -> int:
        return self.rng.choice((1, 1, 1, 1, 2, 2, 3, 4))

    def _conditioned(self, group: Group, models: list[Provider], minor: int) -> Group:
        rng = self.rng
        model = rng.choice(models)
        if minor >= REQUIRED and rng.random() < 0.3:
            group = self._with_traits(group, model, minor)
        if minor >= MEMBER_OF and rng.random() < 0.2:
            group = self._with_aggregates(group, model, minor)
        if minor >= IN_TREE and rng.random() < 0.12:
            anyone = rng.choice([it.uuid for it in self.world.providers])
            group = replace(group, in_tree=rng.choice((model.uuid, model.uuid, anyone)))
        return group

    def _with_traits(self, group: Group, model: Provider, minor: int) -> Group:
        rng = self.rng
        known = sorted(model.traits - {SHARES}) or list(TRAITS)
        required = [frozenset({it}) for it in sorted(some_of(rng, known, 2))]
        forbidden = frozenset[str]()
        if minor >= ANY_TRAIT and rng.random() < 0.4:
            required.append(frozenset(rng.sample(TRAITS, 2)))
        if minor >= FORBIDDEN and rng.random() < 0.4:
            forbidden = some_of(rng, (*TRAITS, SHARES), 1)
        forbidden -= {trait for any_of in required for trait in any_of}
        return replace(group, required=tuple(required), forbidden=forbidden)

    def _with_aggregates(self, group: Group, model: Provider, minor: int) -> Group:
        rng = self.rng
        root = self.world.by_uuid[self.world.roots[model.uuid]]
        near = sorted(model.aggregates | root.aggregates) or self.aggregates
        member_of = []
        if rng.random() < 0.8:
            member_of.append(frozenset({rng.choice(near)} | some_of(rng, self.aggregates, 1)))
        if minor >= REPEATED_AGGREGATES and rng.random() < 0.3:
            member_of.append(frozenset({rng.choice(near)}))
        barred = frozenset[str]()
        if minor >= NOT_MEMBER and rng.random() < 0.4:
            barred = some_of(rng, self.aggregates, 2)
        return replace(group, member_of=tuple(member_of), forbidden_aggregates=barred)

    def _related(self, query: Query, tree: list[Provider]) -> Query:
        """Perhaps groups without resources, perhaps groups bound to one subtree."""
        rng = self.rng
        groups = list(query.groups)
        bare = [self._bare(tree, query.minor, f"_R{i}") for i in range(rng.choice((0, 0, 0, 1, 2)))]
        bare = [group for group in bare if list(group.params())]
        if bare and not query.suffixed:
            groups.append(self._suffixed(tree, query.minor, "_S"))
        groups += bare
        suffixes = [group.suffix for group in groups if group.suffix]
        subtrees = []
        if bare or (suffixes and rng.random() < 0.4):
            bound = some_of(rng, suffixes, 3) | {group.suffix for group in bare}
            subtrees = [bound] if bound else []
            if rng.random() < 0.15:
                subtrees.append(frozenset(rng.sample(suffixes, 1)))
        policy = query.policy
        if len(suffixes) > 1 and policy is None:
            policy = rng.choice(("none", "isolate"))
        return replace(query, groups=tuple(groups), same_subtrees=tuple(subtrees), policy=policy)

    def _bare(self, tree: list[Provider], minor: int, suffix: str) -> Group:
        rng = self.rng
        model = rng.choice(tree)
        group = Group(suffix, {})
        if rng.random() < 0.7:
            group = self._with_traits(group, model, minor)
        if rng.random() < 0.3:
            group = self._with_aggregates(group, model, minor)
        if rng.random() < 0.15:
            group = replace(group, in_tree=model.uuid)
        return group
