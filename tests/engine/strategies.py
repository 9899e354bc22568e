"""Small random forests, requests that use every feature, and histories of forests.

Forests are small because the oracle tries everything, and their names few so that requests meet
them often. Identifiers are shuffled: a child may be older than its parent. What is picked from
is a list throughout, the simplest first: that draws fast and shrinks well.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from dovetail.core.request import Affinity, Group, NamedSelector, Request
from dovetail.core.selectors.selector import Expression, Operator, Selector
from tests.engine.forest import CLASSES, SHARING, TRAITS, Forest, Inventory, Provider

FEW_CLASSES = CLASSES[:3]
FEW_TRAITS = TRAITS[1:4]
AGGREGATES = ("agg-1", "agg-2", "agg-3")
SUFFIXES = ("_A", "_B", "_C")
NOWHERE = "CUSTOM_NOWHERE"
"""A name that no forest holds."""
MOST_PROVIDERS = 8
MOST_CHOICES = 4
"""Suffixed groups and classes of the unsuffixed one; both keep the oracle's product small."""

T = TypeVar("T")


def examples(count: int) -> settings:
    """So many examples, always the same ones; FUZZ=20 tries twenty times as many new ones."""
    fuzz = int(os.environ.get("FUZZ", "0"))
    return settings(
        max_examples=count * max(fuzz, 1),
        derandomize=not fuzz,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@cache
def one_of(*options: T) -> st.SearchStrategy[T]:
    """Made once for the same options; making and checking strategies is most of the cost."""
    return st.sampled_from(options)


def subsets(names: Sequence[str], least: int = 0, most: int = 2) -> list[frozenset[str]]:
    sizes = range(least, most + 1)
    return [frozenset(chosen) for size in sizes for chosen in combinations(names, size)]


# Forests ------------------------------------------------------------------------------------------

inventories = one_of(
    *(Inventory(8), Inventory(8), Inventory(8), Inventory(8), None, None, None),
    *(Inventory(1), Inventory(2), Inventory(3), Inventory(4, used=2), Inventory(8, used=9)),
    *(Inventory(5, reserved=2), Inventory(4, reserved=4)),
    *(Inventory(8, min_unit=2), Inventory(8, max_unit=2), Inventory(8, step_size=2)),
    *(Inventory(3, ratio=1.5), Inventory(3, ratio=0.7), Inventory(2, ratio=16.0, used=29)),
    *(Inventory(9, min_unit=2, max_unit=5, step_size=3), Inventory(1, max_unit=3, ratio=4.0)),
)
traits = one_of(*[frozenset(FEW_TRAITS)] * 3, *subsets(FEW_TRAITS))
aggregates = one_of(*[frozenset(AGGREGATES[:2])] * 4, *subsets(AGGREGATES))
SMALL_GPU = (("Kind", "gpu"), ("memory", "8"))
LARGE_GPU = (("Kind", "gpu"), ("memory", "32"), ("ecc", "yes"))
attributes = one_of(*(SMALL_GPU, LARGE_GPU) * 2, (), (("Kind", "nic"),), (("memory", "plenty"),))
sharing = one_of(*[frozenset[str]()] * 2, frozenset([SHARING]))


def provider(draw: st.DrawFn, own: int, parent: int | None) -> Provider:
    held = {name: inventory for name in FEW_CLASSES if (inventory := draw(inventories))}
    marks = (draw(traits) | draw(sharing), draw(aggregates), dict(draw(attributes)))
    return Provider(own, f"p{own}", parent, held, *marks)


def shuffled_ids(draw: st.DrawFn) -> list[int]:
    step = draw(one_of(1, 2, 4, 5, 7, 8))
    return [step * place % (MOST_PROVIDERS + 1) for place in range(1, MOST_PROVIDERS + 1)]


@st.composite
def forests(draw: st.DrawFn) -> Forest:
    trees: list[Provider] = []
    for own in shuffled_ids(draw)[: draw(one_of(1, 2, 3, 3, 4, 5, 6, 6, 7, 7, 8, 8))]:
        parent = draw(one_of(None, None, *(provider.id for provider in trees)))
        trees.append(provider(draw, own, parent))
    return Forest(trees)


@st.composite
def alike_forests(draw: st.DrawFn) -> Forest:
    """Two or three trees of one shape, with a difference here and there, and a few single ones."""
    ids = shuffled_ids(draw)
    copies, size = draw(one_of((2, 2), (2, 3), (3, 2), (2, 1), (3, 1)))
    above = [None, *(draw(one_of(*range(place))) for place in range(1, size))]
    pattern = [provider(draw, 0, None) for _ in range(size)]
    trees: list[Provider] = []
    for copy in range(copies):
        own = ids[copy * size : (copy + 1) * size]
        for place, up in enumerate(above):
            parent = None if up is None else own[up]
            if draw(one_of(*[False] * 5, True)):
                trees.append(provider(draw, own[place], parent))
            else:
                name = f"p{own[place]}"
                trees.append(replace(pattern[place], id=own[place], name=name, parent=parent))
    singles = ids[copies * size :][: draw(one_of(0, 1, 2))]
    return Forest([*trees, *(provider(draw, own, None) for own in singles)])


# Requests -----------------------------------------------------------------------------------------


def any_ofs(*names: str) -> st.SearchStrategy[tuple[frozenset[str], ...]]:
    sets = subsets(names, least=1)
    pairs = [(one, other) for one in sets for other in sets[: len(names)] if one != other]
    unknown = frozenset([NOWHERE])
    return one_of(*((one,) for one in sets), *pairs, (unknown,), (sets[0] | unknown,))


def none_ofs(*names: str) -> st.SearchStrategy[frozenset[str]]:
    return one_of(*subsets(names, least=1), frozenset([NOWHERE]))


def condition(key: str, operator: Operator, *values: str) -> Selector:
    return ((Expression(key, operator, values),),)


GPU = condition("Kind", Operator.IN, "gpu")
LARGE = condition("memory", Operator.GT_EQ, "16")
SELECTORS = (
    *(GPU, LARGE, condition("memory", Operator.GT_EQ, "8"), condition("Kind", Operator.EQ, "gpu")),
    *(condition("ecc", Operator.DOES_NOT_EXIST), condition("memory", Operator.EXISTS)),
    *(condition("Kind", Operator.NOT_IN, "nic"), condition("ecc", Operator.EXISTS)),
)
NAMED = (
    *(NamedSelector("any", (*GPU, *condition("Kind", Operator.IN, "nic"))),),
    *(NamedSelector("large", ((*GPU[0], *LARGE[0]),)), NamedSelector("none", ())),
)

Conditions = dict[str, st.SearchStrategy[Any]]
ON_ROOTS: Conditions = {
    "root_required": any_ofs(*FEW_TRAITS),
    "root_forbidden": none_ofs(*FEW_TRAITS),
    "root_member_of": any_ofs(*AGGREGATES),
    "root_not_member_of": none_ofs(*AGGREGATES),
}
ON_GROUPS: Conditions = {
    "required": any_ofs(*FEW_TRAITS, SHARING),
    "forbidden": none_ofs(*FEW_TRAITS, SHARING),
    "member_of": any_ofs(*AGGREGATES),
    "not_member_of": none_ofs(*AGGREGATES),
    "selectors": one_of(*((one,) for one in SELECTORS), (GPU, LARGE)),
    "classes": one_of(*((one,) for one in NAMED)),
    "in_tree": one_of(*(f"p{own}" for own in range(1, MOST_PROVIDERS + 1)), NOWHERE),
}
amounts = one_of(1, 1, 1, 2, 2, 3, 4)
few = one_of(0, 0, 0, 0, 1)
some = one_of(0, 0, 1, 2)
many = one_of(0, 1, 1, 2)
Count = st.SearchStrategy[int]


def conditions(draw: st.DrawFn, known: Conditions, count: Count) -> dict[str, Any]:
    """So many of the known conditions; a request with all of them is met by nothing."""
    kinds = draw(one_of(*combinations(known, draw(count))))
    return {kind: draw(known[kind]) for kind in kinds}


def group(draw: st.DrawFn, suffix: str, sizes: range, count: Count) -> Group:
    """A group of so many classes and so many conditions."""
    known = list(combinations(FEW_CLASSES, draw(one_of(*sizes))))
    unknown = tuple(NOWHERE if name == FEW_CLASSES[0] else name for name in known[0])
    resources = {name: draw(amounts) for name in draw(one_of(*known * 8, unknown))}
    return Group(suffix=suffix, resources=resources, **conditions(draw, ON_GROUPS, count))


def affinity(draw: st.DrawFn, suffixes: list[str]) -> Affinity:
    together = draw(one_of(*subsets(suffixes, least=1, most=3)[::-1]))
    rest = [suffix for suffix in suffixes if suffix not in together]
    return Affinity(together=together, apart=draw(one_of(*subsets(rest))))


def related(draw: st.DrawFn, groups: list[Group], count: Count) -> Request:
    """These groups with so many affinities between them, and with conditions on the root."""
    suffixes = [group.suffix for group in groups if group.suffix]
    affinities = draw(count) if suffixes else 0
    return Request(
        groups=tuple(draw(st.permutations(groups))),
        isolated=draw(one_of(*subsets(suffixes, most=3))),
        affinities=tuple(affinity(draw, suffixes) for _ in range(affinities)),
        one_provider_per_tree=draw(one_of(*[False] * 7, True)),
        **conditions(draw, ON_ROOTS, one_of(0, 0, 0, 1, 2)),
    )


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """A bit of everything."""
    suffixes = SUFFIXES[: draw(one_of(0, 1, 2, 2, 3, 3, 3))]
    groups = [group(draw, suffix, range(3), some) for suffix in suffixes]
    if not any(group.resources for group in groups) or draw(st.booleans()):
        most = min(MOST_CHOICES - len(suffixes), len(FEW_CLASSES))
        groups.append(group(draw, "", range(1, most + 1), some))
    return related(draw, groups, some)


@st.composite
def spread_requests(draw: st.DrawFn) -> Request:
    """One group over several providers, with many conditions."""
    return related(draw, [group(draw, "", range(2, 4), many)], some)


@st.composite
def related_requests(draw: st.DrawFn) -> Request:
    """Several groups with few conditions but on how they lie to each other."""
    groups = [group(draw, suffix, range(1, 3), few) for suffix in SUFFIXES[:2]]
    groups.append(group(draw, SUFFIXES[2], range(2), few))
    return related(draw, groups, one_of(1, 1, 2))


# Histories ----------------------------------------------------------------------------------------


@st.composite
def histories(draw: st.DrawFn) -> list[Forest]:
    """A forest and what becomes of it, a few steps long."""
    history = [draw(st.one_of(forests(), alike_forests()))]
    for _ in range(draw(one_of(1, 2, 3, 4))):
        edit = draw(one_of(used, taken, rewritten, moved, cut, planted))
        history.append(edit(draw, history[-1]))
    return history


@st.composite
def claim_histories(draw: st.DrawFn) -> list[Forest]:
    """A forest of which, step by step, units of one provider are taken or given back."""
    history = [draw(st.one_of(forests(), alike_forests()))]
    for _ in range(draw(one_of(4, 8))):
        history.append(taken(draw, history[-1]))
    return history


def used(draw: st.DrawFn, forest: Forest) -> Forest:
    """Usages change, nothing else."""
    return Forest(with_other_use(draw, provider) for provider in forest)


def with_other_use(draw: st.DrawFn, provider: Provider) -> Provider:
    inventories = {
        name: replace(held, used=draw(one_of(held.used, 0, 1, 2)))
        for name, held in provider.inventories.items()
    }
    return replace(provider, inventories=inventories)


def taken(draw: st.DrawFn, forest: Forest) -> Forest:
    """Usages of one provider change, nothing else."""
    if not forest.providers:
        return forest
    chosen = forest.providers[draw(one_of(*forest.providers))]
    return Forest(with_other_use(draw, each) if each is chosen else each for each in forest)


def rewritten(draw: st.DrawFn, forest: Forest) -> Forest:
    """One provider gets other inventories, traits and aggregates."""
    if not forest.providers:
        return forest
    chosen = forest.providers[draw(one_of(*forest.providers))]
    fresh = provider(draw, chosen.id, chosen.parent)
    return Forest(fresh if each is chosen else each for each in forest)


def moved(draw: st.DrawFn, forest: Forest) -> Forest:
    """One provider gets another parent, perhaps of another tree, or none."""
    if not forest.providers:
        return forest
    chosen = forest.providers[draw(one_of(*forest.providers))]
    parents = [provider.id for provider in forest if chosen not in forest.path(provider)]
    placed = replace(chosen, parent=draw(one_of(None, *parents)))
    return Forest(placed if each is chosen else each for each in forest)


def cut(draw: st.DrawFn, forest: Forest) -> Forest:
    """One provider goes, with all below it."""
    if not forest.providers:
        return forest
    chosen = forest.providers[draw(one_of(*forest.providers))]
    return Forest(provider for provider in forest if chosen not in forest.path(provider))


def planted(draw: st.DrawFn, forest: Forest) -> Forest:
    """One provider comes, where the forest is not full."""
    free = [own for own in range(1, MOST_PROVIDERS + 1) if own not in forest.providers]
    if not free:
        return forest
    parent = draw(one_of(None, *forest.providers))
    return Forest([*forest, provider(draw, draw(one_of(*free)), parent)])
