"""Families: parents and children are sold from one stock, in whatever order they are bought."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.machines.stock.families import ANYWHERE, FamilyBook, families_of
from tests.machines.building import machine
from tests.machines.lab import kind, small

NODES = ("a", "b", "c")


def child(name: str, cpu: int, available: int, parent: str, ratio: float) -> dict[str, Any]:
    dependence = {"parent": parent, "availableRatio": ratio}
    return kind(name, cpu, available, spec={"dependence": dependence})


def book(*types: dict[str, Any], served: str = "whole") -> FamilyBook:
    """Of a family all of whose nodes serve the same."""
    spec = machine(small(*types, nodes=dict.fromkeys(NODES, served))).spec
    [family] = families_of(spec)
    return FamilyBook(family)


def halves(available: int = 2) -> FamilyBook:
    return book(kind("whole", 4, available), child("half", 2, 2 * available, "whole", 0.5))


def tenths() -> FamilyBook:
    return book(
        kind("whole", 10, 2),
        child("large", 6, 3, "whole", 0.6),
        child("small", 2, 10, "whole", 0.2),
    )


def nested() -> FamilyBook:
    return book(
        kind("whole", 8, 2),
        child("half", 4, 3, "whole", 0.5),
        child("quarter", 2, 8, "half", 0.5),
    )


def stock(found: FamilyBook) -> dict[tuple[str, str], int]:
    return dict(found.stock())


def test_a_type_alone_is_counted() -> None:
    found = book(kind("whole", 4, 2))
    assert stock(found) == {("whole", ANYWHERE): 2}
    found.add("whole", "a")
    assert stock(found) == {("whole", ANYWHERE): 1}
    assert (found.free("whole"), found.has_stock_on("whole", "b")) == (1, True)
    found.add("whole", "b")
    assert (found.free("whole"), found.has_stock_on("whole", "c")) == (0, False)


def test_inconsistency_17_the_first_half_opens_a_unit_whose_other_half_is_held() -> None:
    found = halves()
    found.add("half", "a")
    assert stock(found) == {("half", "a"): 1, ("whole", ANYWHERE): 1}
    assert (found.free("whole"), found.free("half")) == (1, 3)
    assert not found.opens_unit("half", "a")
    assert found.opens_unit("half", "b")
    found.add("half", "a")
    assert stock(found) == {("whole", ANYWHERE): 1}


def test_inconsistency_17_halves_on_two_nodes_open_two_units() -> None:
    found = halves()
    found.add("half", "a")
    found.add("half", "b")
    assert stock(found) == {("half", "a"): 1, ("half", "b"): 1}
    assert found.free("whole") == 0
    assert found.has_stock_on("half", "a")
    assert not found.has_stock_on("half", "c"), "that would open a third unit"


@pytest.mark.parametrize("bought", sorted(set(permutations(["whole", "half", "half"]))))
def test_inconsistency_17_the_order_of_buying_does_not_matter(bought: tuple[str, ...]) -> None:
    found = halves()
    for name in bought:
        assert found.has_stock_on(name, "a")
        found.add(name, "a")
    assert stock(found) == {}
    assert (found.free("whole"), found.free("half")) == (0, 0)


def test_inconsistency_17_a_rest_that_is_no_unit_of_any_child_is_held_by_nobody() -> None:
    found = book(kind("whole", 10, 2), child("large", 6, 3, "whole", 0.6))
    found.add("large", "a")
    assert stock(found) == {("whole", ANYWHERE): 1}
    assert (found.free("whole"), found.free("large")) == (1, 1)


def test_inconsistency_17_shares_of_several_units_on_a_node_add_up() -> None:
    """Three times 0.6 are less than two units, and the amounts are, too."""
    found = book(kind("whole", 10, 2), child("large", 6, 3, "whole", 0.6))
    found.add("large", "a")
    found.add("large", "a")
    assert stock(found) == {("large", "a"): 1}
    assert found.has_stock_on("large", "a")
    assert not found.has_stock_on("large", "b")


def test_the_largest_shares_hold_the_rest() -> None:
    found = tenths()
    found.add("small", "a")
    assert stock(found) == {("large", "a"): 1, ("small", "a"): 1, ("whole", ANYWHERE): 1}


def test_inconsistency_17_a_grandchild_is_a_share_of_all_above_it() -> None:
    found = nested()
    found.add("quarter", "a")
    assert stock(found) == {("half", "a"): 1, ("quarter", "a"): 1, ("whole", ANYWHERE): 1}
    counted = Counter({"quarter": 1})
    assert found.used("half", counted) == Fraction(1, 2)
    assert found.used("whole", counted) == Fraction(1, 4)


def test_inconsistency_22_a_type_is_not_sold_beyond_its_number_by_its_children_either() -> None:
    """Four quarters are two of three halves: one half is left, though a unit and a half are."""
    found = nested()
    for _ in range(4):
        found.add("quarter", "a")
    assert (found.free("half"), found.free("quarter"), found.free("whole")) == (1, 2, 1)
    found.add("half", "b")
    assert (found.free("half"), found.free("quarter"), found.free("whole")) == (0, 0, 0)
    assert not found.has_stock_on("half", "b")
    assert stock(found) == {}


def test_inconsistency_18_children_of_a_parent_that_no_node_serves_hold_their_own_stock() -> None:
    found = book(kind("whole", 4, 2), child("half", 2, 4, "whole", 0.5), served="half")
    assert stock(found) == {("half", ANYWHERE): 4}
    for node in NODES:
        assert found.has_stock_on("half", node)
        found.add("half", node)
    assert stock(found) == {("half", ANYWHERE): 1}


def test_inconsistency_18_they_still_share_their_parents_number() -> None:
    types = (
        kind("whole", 10, 1),
        child("half", 5, 1, "whole", 0.5),
        child("fifth", 2, 5, "whole", 0.2),
    )
    [family] = families_of(machine(small(*types, nodes={"a": "half", "b": "fifth"})).spec)
    found = FamilyBook(family)
    assert stock(found) == {("half", ANYWHERE): 1, ("fifth", ANYWHERE): 2}
    for _ in range(4):
        found.add("fifth", "b")
    assert stock(found) == {("fifth", ANYWHERE): 1}
    assert (found.free("half"), found.free("fifth")) == (0, 1)


def test_inconsistency_18_a_family_that_no_node_serves_holds_nothing() -> None:
    types = (kind("whole", 4, 2), kind("other", 4, 2))
    families = families_of(machine(small(*types, nodes={"a": "other"})).spec)
    assert [dict(FamilyBook(each).stock()) for each in families] == [{}, {("other", ANYWHERE): 2}]
    assert FamilyBook(families[0]).free("whole") == 2


def test_inconsistency_22_what_was_lowered_is_held_no_more() -> None:
    found = halves(available=1)
    for node in NODES:
        found.add("half", node)
    assert stock(found) == {}
    assert (found.free("whole"), found.free("half")) == (0, 0)


SALES = st.lists(
    st.tuples(st.sampled_from(["whole", "half", "quarter"]), st.sampled_from(NODES)), max_size=14
)


@given(SALES)
def test_inconsistency_22_sold_and_held_are_never_more_than_there_are(
    wanted: list[tuple[str, str]],
) -> None:
    """In whole numbers and in shares, along the line; and what was undone was never there."""
    found, sold = nested(), []
    for name, node in wanted:
        if found.has_stock_on(name, node):
            assert found.free(name) > 0
            found.add(name, node)
            sold.append((name, node))
    held = Counter(found.sold)
    for (name, _), count in found.stock().items():
        held[name] += count
    for name, most in found.family.available.items():
        assert found.used(name, held) <= most
    for name, node in sold:
        found.remove(name, node)
    assert found.stock() == nested().stock()
