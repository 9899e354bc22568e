"""Pods of some kinds on nodes of some classes: decided as by trying every node for every pod."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.podfit.packing.solver.problem import (
    BudgetSpent,
    Counts,
    NodeClass,
    Packing,
    PackingProblem,
    StepBudget,
)
from dovetail.podfit.packing.solver.solve import solve

SEEDS = st.integers(min_value=0, max_value=2**32)
ENOUGH = 100_000


def problem(rng: Random) -> PackingProblem:
    kinds = rng.randint(1, 4)
    amounts = tuple((1, rng.randint(1, 6), rng.choice((0, 1, 2))) for _ in range(kinds))
    classes = tuple(
        NodeClass(
            size=rng.randint(1, 3),
            free=(rng.randint(1, 6), rng.randint(3, 12), rng.randint(0, 5)),
            kinds=tuple(kind for kind in range(kinds) if rng.random() < 0.8),
            apart=apart(rng, kinds) if rng.random() < 0.4 else None,
        )
        for _ in range(rng.randint(1, 3))
    )
    return PackingProblem(amounts, tuple(rng.randint(0, 4) for _ in range(kinds)), classes)


def apart(rng: Random, kinds: int) -> tuple[int, ...]:
    pairs = [(one, other) for one in range(kinds) for other in range(one + 1)]
    chosen = [pair for pair in pairs if rng.random() < 0.3]
    return tuple(
        sum(1 << other for other in range(kinds) if {(kind, other), (other, kind)} & set(chosen))
        for kind in range(kinds)
    )


def takes(of: NodeClass, amounts: tuple[tuple[int, ...], ...], pattern: Counts) -> bool:
    """Whether one node of the class can have the pattern."""
    there = [kind for kind, count in enumerate(pattern) if count]
    if not set(there) <= set(of.kinds):
        return False
    if of.apart is not None:
        for kind in there:
            others = [other for other in there if other != kind or pattern[kind] > 1]
            if any(of.apart[kind] >> other & 1 for other in others):
                return False
    return all(
        sum(count * amounts[kind][at] for kind, count in enumerate(pattern)) <= free
        for at, free in enumerate(of.free)
    )


def is_packing(asked: PackingProblem, packing: Packing) -> bool:
    placed = [0] * len(asked.counts)
    for of, patterns in zip(asked.classes, packing, strict=True):
        for pattern, nodes in patterns:
            assert takes(of, asked.amounts, pattern)
            for kind, count in enumerate(pattern):
                placed[kind] += count * nodes
        assert sum(nodes for _, nodes in patterns) <= of.size
    return placed == list(asked.counts)


def fits(asked: PackingProblem) -> bool:
    """By putting every pod on every node."""
    nodes = [of for of in asked.classes for _ in range(of.size)]
    pods = [kind for kind, count in enumerate(asked.counts) for _ in range(count)]
    nothing = (0,) * len(asked.counts)
    reached = {(nothing,) * len(nodes)}
    for kind in pods:
        after = set()
        for patterns in reached:
            for at, of in enumerate(nodes):
                more = list(patterns[at])
                more[kind] += 1
                if takes(of, asked.amounts, tuple(more)):
                    after.add((*patterns[:at], tuple(more), *patterns[at + 1 :]))
        # Nodes of a class that exchange what they have are the same.
        reached = {sorted_by_class(asked, patterns) for patterns in after}
    return bool(reached)


def sorted_by_class(asked: PackingProblem, patterns: tuple[Counts, ...]) -> tuple[Counts, ...]:
    found: list[Counts] = []
    for of in asked.classes:
        found += sorted(patterns[len(found) : len(found) + of.size])
    return tuple(found)


@settings(max_examples=300, deadline=None)
@given(SEEDS)
def test_as_by_trying_every_node_for_every_pod(seed: int) -> None:
    asked = problem(Random(seed))
    found = solve(asked, StepBudget(ENOUGH))
    assert (found is not None) == fits(asked)
    assert found is None or is_packing(asked, found)


@settings(max_examples=200, deadline=None)
@given(SEEDS, st.integers(min_value=0, max_value=300))
def test_a_small_budget_may_be_spent_but_gives_no_wrong_answer(seed: int, steps: int) -> None:
    asked = problem(Random(seed))
    budget = StepBudget(steps)
    try:
        found = solve(asked, budget)
    except BudgetSpent:
        assert budget.spent == steps
        return
    assert (found is not None) == fits(asked)
    assert found is None or is_packing(asked, found)


def nodes(size: int, *free: int, kinds: int) -> NodeClass:
    return NodeClass(size, free, tuple(range(kinds)))


SEVENS = ((1, 7), (1, 5), (1, 3))
"""Kinds whose sizes fill forty in few ways."""


def test_a_thousand_nodes_without_anything_to_spare_are_rounded_from_the_relaxation() -> None:
    """One CPU of forty thousand is left. Forty is 7 + 7 + 7 + 7 + 7 + 5 and so on."""
    asked = PackingProblem(SEVENS, (3000, 3000, 1333), (nodes(1000, 110, 40, kinds=3),))
    assert sum(n * size for n, (_, size) in zip(asked.counts, SEVENS, strict=True)) == 39_999
    found = solve(asked, StepBudget(ENOUGH))
    assert found is not None
    assert is_packing(asked, found)


def test_one_pod_too_many_is_proved_by_prices_of_the_relaxation() -> None:
    """A node takes nine small, or a large and three small: a large is worth six of them. The sum of
    what they want is far below what there is."""
    classes = (nodes(1000, 110, 64, kinds=2),)
    full = PackingProblem(((1, 40), (1, 7)), (500, 6000), classes)
    assert 500 * 40 + 6000 * 7 < 1000 * 64 - 1000
    found = solve(full, StepBudget(ENOUGH))
    assert found is not None
    assert is_packing(full, found)
    over = PackingProblem(full.amounts, (500, 6001), classes)
    assert solve(over, StepBudget(ENOUGH)) is None


def test_thousands_cost_no_more_steps_than_a_few() -> None:
    def spent(times: int) -> int:
        asked = PackingProblem(
            ((1, 40), (1, 7)), (5 * times, 60 * times), (nodes(10 * times, 110, 64, kinds=2),)
        )
        budget = StepBudget(ENOUGH)
        assert solve(asked, budget) is not None
        return budget.spent

    assert spent(1000) <= spent(1)


def test_parts_that_have_nothing_in_common_are_decided_apart() -> None:
    """Twenty pools, each a near thing: together they would be more combinations than anybody has
    time for."""
    pools = 20
    amounts = tuple(size for _ in range(pools) for size in ((1, 4), (1, 3)))
    classes = tuple(NodeClass(2, (110, 10), (2 * pool, 2 * pool + 1)) for pool in range(pools))
    asked = PackingProblem(amounts, (2, 4) * pools, classes)
    found = solve(asked, StepBudget(1000))
    assert found is not None
    assert is_packing(asked, found)
    last_is_too_much = PackingProblem(amounts, (*((2, 4) * (pools - 1)), 2, 5), classes)
    assert solve(last_is_too_much, StepBudget(1000)) is None


@pytest.mark.parametrize("more", [0, 1])
def test_kinds_that_cannot_share_a_node_are_in_no_pattern_together(more: int) -> None:
    """Each kind keeps apart from its like and from the other, so a node takes one pod."""
    of = NodeClass(3, (110, 100), (0, 1), apart=(0b11, 0b11))
    asked = PackingProblem(((1, 1), (1, 1)), (1 + more, 2), (of,))
    assert (solve(asked, StepBudget(ENOUGH)) is None) == bool(more)
