"""Slots that have nothing to do with each other: combinations follow from their numbers."""

from __future__ import annotations

from itertools import product as plainly

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dovetail.engine.combine.offers import SlotOptions
from dovetail.engine.combine.product import Products, trees_with_more
from tests.engine.strategies import examples

Tree = list[int]
"""How many options each slot has in it."""

SLOTS = 3
trees = st.lists(st.lists(st.integers(1, 3), min_size=SLOTS, max_size=SLOTS), max_size=4)


def part(counts: list[Tree], base: int) -> Products:
    """Trees with so many options; rows are counted up from `base`, with gaps between trees."""
    found = []
    for slot in range(SLOTS):
        firsts = [3 * at for at in range(len(counts))]
        rows = np.arange(base + 100 * slot, base + 100 * slot + 3 * len(counts), dtype=np.int32)
        mine = [tree[slot] for tree in counts]
        found.append(SlotOptions(rows, np.array(firsts, np.intp), np.array(mine, np.intp)))
    return Products(found)


def ways(counts: Tree, base: int, at: int) -> list[tuple[int, ...]]:
    """The combinations of the tree at a place, the last slot changing fastest."""
    firsts = [base + 100 * slot + 3 * at for slot in range(SLOTS)]
    return list(plainly(*(range(f, f + n) for f, n in zip(firsts, counts, strict=True))))


def in_turns(lists: list[list[tuple[int, ...]]], low: int, high: int) -> list[tuple[int, ...]]:
    return [ways[number] for number in range(low, high) for ways in lists if number < len(ways)]


def found(products: Products, low: int, high: int) -> list[tuple[int, ...]]:
    return [
        tuple(line)
        for block in products.blocks(low, high)
        if block is not None
        for line in block.tolist()
    ]


@examples(100)
@given(trees, st.integers(0, 9), st.integers(1, 9))
def test_the_nth_combination_of_each_tree(counts: list[Tree], low: int, more: int) -> None:
    expected = [ways(tree, 0, at) for at, tree in enumerate(counts)]
    assert found(part(counts, 0), low, low + more) == in_turns(expected, low, low + more)


@examples(100)
@given(trees, trees, st.integers(0, 9))
def test_trees_with_more_go_on_together(some: list[Tree], others: list[Tree], number: int) -> None:
    every = [
        ways(tree, base, at)
        for counts, base in ((some, 0), (others, 1000))
        for at, tree in enumerate(counts)
    ]
    rest = trees_with_more([part(some, 0), part(others, 1000)], number)
    expected = [each for each in every if len(each) > number]
    assert len(rest) == len(expected)
    assert found(rest, number, number + 5) == in_turns(expected, number, number + 5)


def test_more_combinations_than_numbers_can_count() -> None:
    many = SlotOptions(np.arange(9, dtype=np.int32), np.zeros(1, np.intp), np.full(1, 9, np.intp))
    block = found(Products([many] * 100), 0, 10)
    assert [line[-2:] for line in block] == [*((0, n) for n in range(9)), (1, 0)]
