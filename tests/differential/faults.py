"""Queries with one thing wrong in them, to compare how the two servers refuse."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.differential.query import Query
from tests.differential.wire import Call

Pairs = list[tuple[str, str]]


def spoilt(rng: random.Random, query: Query) -> Call:
    """The query with one fault; now and then also at a version too old for it."""
    pairs = rng.choice(FAULTS)(rng, list(query.params()))
    version = f"1.{rng.randint(10, 39)}" if rng.random() < 0.2 else query.version
    return Call("GET", "/allocation_candidates", tuple(pairs), version=version)


def _set(pairs: Pairs, prefix: str, value: str) -> Pairs:
    """The value put in place of the first parameter of this kind, or added."""
    for i, (key, _) in enumerate(pairs):
        if key.startswith(prefix):
            return [*pairs[:i], (key, value), *pairs[i + 1 :]]
    return [*pairs, (prefix, value)]


def _older(_: random.Random, pairs: Pairs) -> Pairs:
    """Nothing wrong but the version, if that is changed."""
    return pairs


def _no_resources(_: random.Random, pairs: Pairs) -> Pairs:
    return [pair for pair in pairs if not pair[0].startswith("resources")]


def _bad_amount(rng: random.Random, pairs: Pairs) -> Pairs:
    amount = rng.choice(("VCPU:0", "VCPU:-1", "VCPU:x", "VCPU", "VCPU:1:2", "", "VCPU:1,"))
    return _set(pairs, "resources", amount)


def _unknown_class(_: random.Random, pairs: Pairs) -> Pairs:
    return _set(pairs, "resources", "CUSTOM_NOWHERE:1")


def _unknown_trait(rng: random.Random, pairs: Pairs) -> Pairs:
    return _set(pairs, "required", rng.choice(("CUSTOM_NOWHERE", "!CUSTOM_NOWHERE")))


def _bad_traits(rng: random.Random, pairs: Pairs) -> Pairs:
    values = ("", "!", "CUSTOM_RED,", "in:", "in:CUSTOM_RED,!CUSTOM_BLUE", "CUSTOM_RED,!CUSTOM_RED")
    return _set(pairs, "required", rng.choice(values))


def _bad_aggregate(rng: random.Random, pairs: Pairs) -> Pairs:
    return _set(pairs, "member_of", rng.choice(("", "nonsense", "in:", "!", "a,b", "in:x,x")))


def _bad_tree(rng: random.Random, pairs: Pairs) -> Pairs:
    return _set(pairs, "in_tree", rng.choice(("", "nonsense")))


def _bad_limit(rng: random.Random, pairs: Pairs) -> Pairs:
    return _set(pairs, "limit", rng.choice(("0", "-1", "many", "")))


def _bad_policy(rng: random.Random, pairs: Pairs) -> Pairs:
    return _set(pairs, "group_policy", rng.choice(("", "any")))


def _bad_subtree(rng: random.Random, pairs: Pairs) -> Pairs:
    return _set(pairs, "same_subtree", rng.choice(("", "_A,", "_NOWHERE", "1,1", ",")))


def _bad_root(rng: random.Random, pairs: Pairs) -> Pairs:
    values = ("", "CUSTOM_NOWHERE", "CUSTOM_RED,!CUSTOM_RED", "in:CUSTOM_RED,CUSTOM_BLUE", "!")
    return _set(pairs, "root_required", rng.choice(values))


def _orphan(_: random.Random, pairs: Pairs) -> Pairs:
    return [*pairs, ("required7", "CUSTOM_RED")]


def _unknown_key(rng: random.Random, pairs: Pairs) -> Pairs:
    return [*pairs, (rng.choice(("nonsense", "resources!", "resourcesé")), "1")]


FAULTS: tuple[Callable[[random.Random, Pairs], Pairs], ...] = (
    _older,
    _no_resources,
    _bad_amount,
    _unknown_class,
    _unknown_trait,
    _bad_traits,
    _bad_aggregate,
    _bad_tree,
    _bad_limit,
    _bad_policy,
    _bad_subtree,
    _bad_root,
    _orphan,
    _unknown_key,
)
