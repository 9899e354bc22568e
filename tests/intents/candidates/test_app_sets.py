"""Families of app sets, against all subsets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dovetail.intents.candidates.app_sets import (
    closed,
    in_order,
    intersection,
    largest,
    place_of,
    without_pairs,
)

APPS = 5
masks = st.integers(0, 2**APPS - 1)
families = st.lists(masks, min_size=1, max_size=5)


def members(sets: list[int]) -> set[int]:
    """All of a family that these are the largest sets of."""
    return {mask for mask in range(2**APPS) if any(mask & ~each == 0 for each in sets)}


@given(families)
def test_largest_sets_say_all_of_a_family(sets: list[int]) -> None:
    found = largest(sets)
    assert members(found) == members(sets)
    assert not any(one & ~two == 0 for one in found for two in found if one != two)


@given(families, families)
def test_intersection(one: list[int], two: list[int]) -> None:
    assert members(intersection(one, two)) == members(one) & members(two)


@given(families, st.lists(st.tuples(st.integers(0, APPS - 1), st.integers(0, APPS - 1))))
def test_pairs_apart(sets: list[int], pairs: list[tuple[int, int]]) -> None:
    denied = [0] * APPS
    for one, two in pairs:
        if one != two:
            denied[one] |= 1 << two
            denied[two] |= 1 << one
    allowed = {
        mask
        for mask in members(sets)
        if not any(mask >> app & 1 and denied[app] & mask for app in range(APPS))
    }
    found, are_all = without_pairs(sets, denied)
    assert are_all
    assert members(found) == allowed


@given(masks, st.lists(masks, min_size=APPS, max_size=APPS))
def test_with_all_that_is_required(mask: int, required: list[int]) -> None:
    for middle in range(APPS):
        required = [
            each | 1 << app | (required[middle] if each >> middle & 1 else 0)
            for app, each in enumerate(required)
        ]
    inside = [
        some
        for some in range(2**APPS)
        if some & ~mask == 0
        and all(required[app] & ~some == 0 for app in range(APPS) if some >> app & 1)
    ]
    assert closed(mask, required) == max(inside, key=int.bit_count)


def test_sets_of_the_apps_listed_first_come_first() -> None:
    assert in_order([0b110, 0b001, 0b100, 0b011]) == (0b011, 0b001, 0b110, 0b100)


def test_place() -> None:
    family = (0b011, 0b110)
    assert [place_of(family, mask) for mask in (0, 0b001, 0b010, 0b100, 0b101)] == [
        *(0, 0, 0, 1),
        None,
    ]
