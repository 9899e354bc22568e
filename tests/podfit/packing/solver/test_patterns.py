"""What one node can take."""

from __future__ import annotations

from itertools import product
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.podfit.packing.solver.patterns import patterns_of
from dovetail.podfit.packing.solver.problem import Counts, StepBudget
from tests.podfit.packing.solver.test_solve import ENOUGH, SEEDS, problem, takes


@settings(max_examples=200, deadline=None)
@given(SEEDS)
def test_maximal_patterns_are_those_within_no_other(seed: int) -> None:
    asked = problem(Random(seed))
    of = patterns_of(asked)[0]
    every = [
        pattern
        for pattern in product(*(range(count + 1) for count in asked.counts))
        if takes(of.of, asked.amounts, pattern)
    ]

    def is_within(pattern: Counts, other: Counts) -> bool:
        return pattern != other and all(map(int.__le__, pattern, other))

    maximal = {one for one in every if not any(is_within(one, other) for other in every)}
    found = list(of.maximal(asked.counts, StepBudget(ENOUGH)))
    assert set(found) == maximal
    assert len(found) == len(maximal)


@settings(max_examples=200, deadline=None)
@given(SEEDS, st.integers(min_value=0, max_value=20))
def test_no_pattern_is_worth_more_than_the_best_or_its_bound(seed: int, steps: int) -> None:
    rng = Random(seed)
    asked = problem(rng)
    of = patterns_of(asked)[0]
    prices = tuple(rng.randint(0, 9) for _ in asked.counts)

    def worth(pattern: Counts) -> int:
        return sum(count * price for count, price in zip(pattern, prices, strict=True))

    best = max(
        worth(pattern)
        for pattern in product(*(range(count + 1) for count in asked.counts))
        if takes(of.of, asked.amounts, pattern)
    )
    found, pattern = of.best(prices, StepBudget(ENOUGH))
    assert found == worth(pattern) == best
    bound, tried = of.best(prices, StepBudget(steps))
    assert worth(tried) <= best <= bound
