"""Every candidate of a request, found by trying everything.

For each tree as the anchor and each choice of providers the conditions are checked one by one.
Written to be obviously right and nothing else: it is slow on purpose and shares no code with the
engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import product
from typing import NamedTuple

from dovetail.core.request import Affinity, Group, Request
from dovetail.core.selectors.selector import Expression, Operator
from tests.engine.forest import SHARING, Forest, Provider

Sets = tuple[frozenset[str], ...]


class Candidate(NamedTuple):
    """What tells candidates apart."""

    allocations: frozenset[tuple[str, str, int]]
    """provider, class, amount"""
    mappings: frozenset[tuple[str, frozenset[str]]]
    """suffix, the providers that serve it"""


class Serving(NamedTuple):
    """One way to serve one group."""

    group: Group
    providers: frozenset[Provider]
    givers: tuple[tuple[str, Provider], ...]
    """class of the group's resources, the provider that gives it"""


def candidates(forest: Forest, request: Request) -> set[Candidate]:
    """All of them, whatever the request's limit."""
    return {
        as_candidate(servings)
        for anchor in forest.roots()
        if root_fits(anchor, request)
        for servings in product(*(ways(forest, anchor, group) for group in request.groups))
        if fit_together(forest, servings, request)
    }


def as_candidate(servings: tuple[Serving, ...]) -> Candidate:
    return Candidate(
        frozenset((giver.name, name, sum_) for (giver, name), sum_ in sums(servings).items()),
        frozenset(
            (serving.group.suffix, frozenset(provider.name for provider in serving.providers))
            for serving in servings
        ),
    )


def sums(servings: tuple[Serving, ...]) -> Counter[tuple[Provider, str]]:
    """What all groups together take of each provider and class."""
    total: Counter[tuple[Provider, str]] = Counter()
    for serving in servings:
        for name, giver in serving.givers:
            total[giver, name] += serving.group.resources[name]
    return total


# The anchor ---------------------------------------------------------------------------------------


def root_fits(anchor: Provider, request: Request) -> bool:
    return (
        meets(anchor.traits, request.root_required)
        and not anchor.traits & request.root_forbidden
        and meets(anchor.aggregates, request.root_member_of)
        and not anchor.aggregates & request.root_not_member_of
    )


def meets(owned: frozenset[str], sets: Sets) -> bool:
    """At least one of each set is owned."""
    return all(owned & any_of for any_of in sets)


def reaches(forest: Forest, anchor: Provider, provider: Provider) -> bool:
    """Is this a provider of the anchor's tree, or one that shares with that tree?"""
    return forest.root(provider) is anchor or (
        SHARING in provider.traits
        and any(provider.aggregates & member.aggregates for member in forest.tree(anchor))
    )


# One group ----------------------------------------------------------------------------------------


def ways(forest: Forest, anchor: Provider, group: Group) -> list[Serving]:
    """All ways to serve this group alone under this anchor."""
    if group.suffix:
        return ways_by_one(forest, anchor, group)
    return ways_by_several(forest, anchor, group)


def ways_by_one(forest: Forest, anchor: Provider, group: Group) -> list[Serving]:
    return [
        Serving(group, frozenset([provider]), tuple((name, provider) for name in group.resources))
        for provider in forest
        if reaches(forest, anchor, provider)
        and all(has_free(provider, name, amount) for name, amount in group.resources.items())
        and meets(provider.traits, group.required)
        and not provider.traits & group.forbidden
        and meets(provider.aggregates, group.member_of)
        and not provider.aggregates & group.not_member_of
        and is_selected(provider, group)
        and (group.in_tree is None or in_tree_of(forest, provider, group.in_tree))
    ]


def ways_by_several(forest: Forest, anchor: Provider, group: Group) -> list[Serving]:
    givers_by_class = [
        [
            (name, provider)
            for provider in forest
            if has_free(provider, name, amount) and may_give(forest, anchor, provider, group)
        ]
        for name, amount in group.resources.items()
    ]
    servings = [
        Serving(group, frozenset(provider for _, provider in givers), givers)
        for givers in product(*givers_by_class)
    ]
    return [
        serving
        for serving in servings
        if meets(
            frozenset(trait for provider in serving.providers for trait in provider.traits),
            group.required,
        )
    ]


def may_give(forest: Forest, anchor: Provider, provider: Provider, group: Group) -> bool:
    """May this provider give something to the group without suffix, resources left aside?"""
    own = forest.root(provider) is anchor
    member = meets(provider.aggregates, group.member_of) or (
        own and meets(anchor.aggregates, group.member_of)
    )
    return (
        reaches(forest, anchor, provider)
        and not provider.traits & group.forbidden
        and is_selected(provider, group)
        and member
        and not provider.aggregates & group.not_member_of
        and not anchor.aggregates & group.not_member_of
        and (group.in_tree is None or (own and in_tree_of(forest, provider, group.in_tree)))
    )


def is_selected(provider: Provider, group: Group) -> bool:
    """Does it meet every condition on attributes, and is it of every class?"""
    selectors = [*group.selectors, *(named.selector for named in group.classes)]
    return all(
        any(
            bool(branch) and all(is_met(provider.attributes, each) for each in branch)
            for branch in selector
        )
        for selector in selectors
    )


def is_met(attributes: Mapping[str, str], expression: Expression) -> bool:
    """Only what the strategies ask for: bare whole numbers are all that is compared."""
    value, wanted = attributes.get(expression.key), expression.values
    match expression.operator:
        case Operator.EXISTS:
            return value is not None
        case Operator.DOES_NOT_EXIST:
            return value is None
        case Operator.IN:
            return value in wanted
        case Operator.NOT_IN:
            return value not in wanted
        case Operator.EQ:
            return value == wanted[0]
        case Operator.GT_EQ:
            return value is not None and value.isdigit() and int(value) >= int(wanted[0])
        case other:
            raise ValueError(f"the oracle knows no {other}")


def in_tree_of(forest: Forest, provider: Provider, name: str) -> bool:
    other = forest.named(name)
    return other is not None and forest.root(other) is forest.root(provider)


def has_free(provider: Provider, name: str, amount: int) -> bool:
    held = provider.inventories.get(name)
    return (
        held is not None
        and held.used + amount <= (held.total - held.reserved) * held.ratio
        and held.min_unit <= amount <= held.max_unit
        and amount % held.step_size == 0
    )


# All groups together ------------------------------------------------------------------------------


def fit_together(forest: Forest, servings: tuple[Serving, ...], request: Request) -> bool:
    return (
        sums_fit(servings)
        and are_isolated(servings, request.isolated)
        and all(is_kept(forest, servings, affinity) for affinity in request.affinities)
        and not (request.one_provider_per_tree and nests(forest, servings))
    )


def sums_fit(servings: tuple[Serving, ...]) -> bool:
    for (giver, name), amount in sums(servings).items():
        held = giver.inventories[name]
        if held.used + amount > int((held.total - held.reserved) * held.ratio):
            return False
        if amount > held.max_unit:
            return False
    return True


def are_isolated(servings: tuple[Serving, ...], isolated: frozenset[str]) -> bool:
    suffixed = [serving for serving in servings if serving.group.suffix]
    return not any(
        one.providers & other.providers
        for one in suffixed
        for other in suffixed
        if one is not other and one.group.suffix in isolated
    )


def is_kept(forest: Forest, servings: tuple[Serving, ...], affinity: Affinity) -> bool:
    """Does one provider of `together` stand above all of them, and above none of `apart`?"""
    together = of_groups(servings, affinity.together)
    apart = of_groups(servings, affinity.apart)
    return any(
        all(top in forest.path(provider) for provider in together)
        and not any(top in forest.path(provider) for provider in apart)
        for top in together
    )


def of_groups(servings: tuple[Serving, ...], suffixes: frozenset[str]) -> set[Provider]:
    return {
        provider
        for serving in servings
        if serving.group.suffix in suffixes
        for provider in serving.providers
    }


def nests(forest: Forest, servings: tuple[Serving, ...]) -> bool:
    """Do two providers of one tree give resources?"""
    givers = {giver for serving in servings for _, giver in serving.givers}
    return len({forest.root(giver) for giver in givers}) < len(givers)
