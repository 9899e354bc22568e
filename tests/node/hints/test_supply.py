"""Which hints a counted resource gives."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints import Hint, masks_with_enough

FULL = {0: 40, 1: 40}


def good(*nodes: int) -> Hint:
    return Hint(CpuSet(nodes).mask, preferred=True)


def poor(*nodes: int) -> Hint:
    return Hint(CpuSet(nodes).mask, preferred=False)


def test_either_node_or_both() -> None:
    assert masks_with_enough(FULL, 20, FULL) == [good(0), good(1), poor(0, 1)]


def test_a_busy_node_is_left_out() -> None:
    assert masks_with_enough({0: 19, 1: 40}, 20, FULL) == [good(1), poor(0, 1)]


def test_spread_over_what_is_left_is_not_preferred() -> None:
    """An idle machine would do it with one node."""
    assert masks_with_enough({0: 15, 1: 15}, 20, FULL) == [poor(0, 1)]


def test_what_needs_two_nodes_prefers_two() -> None:
    assert masks_with_enough(FULL, 60, FULL) == [good(0, 1)]


def test_too_much() -> None:
    assert masks_with_enough({0: 5, 1: 5}, 20, FULL) == []


def test_nodes_that_hold_what_is_reused() -> None:
    assert masks_with_enough(FULL, 20, FULL, must=[1]) == [good(1), poor(0, 1)]


@given(
    st.dictionaries(
        st.integers(0, 9), st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=5
    ),
    st.integers(1, 30).map(lambda each: Fraction(each, 2)),
)
def test_every_set_with_enough_and_no_other(
    nodes: dict[int, tuple[int, int]], wanted: Fraction
) -> None:
    free = {node: each for node, (each, _) in nodes.items()}
    total = {node: sum(each) for node, each in nodes.items()}
    hints = masks_with_enough(free, wanted, total)
    subsets = [
        each for size in range(1, len(nodes) + 1) for each in combinations(sorted(nodes), size)
    ]
    enough = [each for each in subsets if sum(free[node] for node in each) >= wanted]
    fewest = (
        min(len(each) for each in subsets if sum(total[node] for node in each) >= wanted)
        if (sum(total.values()) >= wanted)
        else None
    )
    assert set(hints) == {Hint(CpuSet(each).mask, preferred=len(each) == fewest) for each in enough}
    assert len(hints) == len(enough)
