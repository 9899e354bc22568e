"""The fast merge equals the literal one; and examples of what each policy does."""

from __future__ import annotations

import random
from collections.abc import Mapping
from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core.explanation import Reason
from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints import (
    Distances,
    Hint,
    Hints,
    MergedHint,
    TopologyOptions,
    TopologyPolicy,
    merge,
)
from dovetail.node.hints.merge import overlaps
from tests.node.hints import literal

CASES = 24_000
NAMES = ("cpu", "memory", "nic", "gpu")
TWO = CpuSet({0, 1})
PLAIN = TopologyOptions()


def flat(nodes: CpuSet) -> Distances:
    return {a: {b: 10 if a == b else 20 for b in nodes} for a in nodes}


def asked(policy: TopologyPolicy, hints: Mapping[str, Hints], nodes: CpuSet = TWO) -> MergedHint:
    return merge(policy, PLAIN, hints, nodes, flat(nodes))


def good(*nodes: int) -> Hint:
    return Hint(CpuSet(nodes).mask, preferred=True)


def poor(*nodes: int) -> Hint:
    return Hint(CpuSet(nodes).mask, preferred=False)


ANY = Hint(None, preferred=True)


class Question:
    """A random one. Nodes may have gaps between their numbers."""

    def __init__(self, chance: random.Random) -> None:
        self.nodes = CpuSet(chance.sample(range(6), chance.randint(1, 4)))
        self.policy = chance.choice(list(TopologyPolicy))
        self.options = TopologyOptions(
            prefer_closest_numa_nodes=chance.random() < 0.5,
            align=chance.choice([("cpu", "memory"), ("cpu", "memory", "nic"), ("nic",), ()]),
        )
        self.distances: dict[int, dict[int, int]] = {
            a: {b: 10 if a == b else chance.choice([11, 12, 20]) for b in self.nodes}
            for a in self.nodes
        }
        names = chance.sample(NAMES, chance.randint(0, len(NAMES)))
        self.hints = {name: self.some(chance) for name in names}

    def some(self, chance: random.Random) -> Hints:
        if chance.random() < 0.05:
            return None
        count = chance.choices(range(8), [1, 6, 6, 6, 4, 2, 1, 1])[0]
        return tuple(self.one(chance) for _ in range(count))

    def one(self, chance: random.Random) -> Hint:
        subset = chance.sample(sorted(self.nodes), chance.randint(1, len(self.nodes)))
        mask = None if chance.random() < 0.08 else CpuSet(subset).mask
        return Hint(mask, preferred=chance.random() < 0.6)


def both(question: Question) -> tuple[literal.Answer, literal.Answer]:
    asking = (
        question.policy,
        question.options,
        question.hints,
        question.nodes,
        question.distances,
    )
    merged = merge(*asking)
    return (merged.admitted, {name: merged.of(name) for name in question.hints}), literal.merge(
        *asking
    )


def test_equals_the_literal_merge() -> None:
    chance = random.Random(3461)
    seen: set[tuple[TopologyPolicy, bool, bool]] = set()
    for _ in range(CASES):
        question = Question(chance)
        ours, theirs = both(question)
        assert ours == theirs, (question.policy, question.options, question.hints, question.nodes)
        closest = question.options.prefer_closest_numa_nodes
        seen.add((question.policy, closest, ours[0]))
    # Every policy was met with and without distances, and those that can refuse did both.
    always = {TopologyPolicy.NONE, TopologyPolicy.BEST_EFFORT}
    assert len(seen) == 2 * (2 * len(TopologyPolicy) - len(always))


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False))
def test_equals_the_literal_merge_in_the_smallest_case(chance: random.Random) -> None:
    ours, theirs = both(Question(chance))
    assert ours == theirs


def test_many_pairs_go_another_way_to_the_same_end() -> None:
    """Sets of at least four of six nodes: what two have in common has at least two."""
    chance = random.Random(8)
    large = [mask for mask in range(64) if mask.bit_count() >= 4]
    for _ in range(50):
        some, others = (set(chance.sample(large, 20)) for _ in range(2))
        assert len(some) * len(others) > 6 << 6
        assert overlaps(some, others, 63) == {one & other for one in some for other in others}


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "policy", [each for each in TopologyPolicy if each is not TopologyPolicy.NONE]
)
@pytest.mark.parametrize("agreeing", [True, False])
def test_eight_nodes_cost_little(policy: TopologyPolicy, agreeing: bool) -> None:
    """16.6 million combinations: tried one by one they take more than the time allowed."""
    nodes = CpuSet(range(8))
    hints = {
        name: tuple(
            Hint(mask, preferred=agreeing or mask.bit_count() == at + 1) for mask in range(1, 256)
        )
        for at, name in enumerate(("cpu", "memory", "nic"))
    }
    before = perf_counter()
    merged = merge(
        policy, TopologyOptions(prefer_closest_numa_nodes=True), hints, nodes, flat(nodes)
    )
    print(f"{policy}: {1000 * (perf_counter() - before):.1f} ms")
    generous = {TopologyPolicy.BEST_EFFORT, TopologyPolicy.NUMERIC}
    assert merged.admitted == (agreeing or policy in generous)
    if agreeing:
        assert merged.hint == good(0)


@pytest.mark.parametrize(
    "policy",
    [TopologyPolicy.BEST_EFFORT, TopologyPolicy.RESTRICTED, TopologyPolicy.SINGLE_NUMA_NODE],
)
def test_the_node_that_all_prefer(policy: TopologyPolicy) -> None:
    merged = asked(policy, {"cpu": [good(0), good(1), poor(0, 1)], "memory": [good(1), poor(0, 1)]})
    assert merged == MergedHint(hint=good(1), admitted=True, why=Reason.ALIGNED)


def test_best_effort_takes_what_is_left() -> None:
    merged = asked(TopologyPolicy.BEST_EFFORT, {"cpu": [good(0)], "memory": [poor(0, 1)]})
    assert merged == MergedHint(hint=poor(0), admitted=True, why=Reason.UNALIGNED)


def test_rather_less_than_is_needed_than_more_even_if_that_is_nearer() -> None:
    """Three nodes are needed; one or four can be had."""
    hints = {"cpu": [good(0, 1, 2, 3), good(0, 4, 5)], "memory": [poor(0, 1, 2, 3), good(1, 4, 6)]}
    assert asked(TopologyPolicy.BEST_EFFORT, hints, CpuSet(range(7))).hint == poor(0)


def test_best_effort_admits_what_cannot_be_anywhere() -> None:
    merged = asked(TopologyPolicy.BEST_EFFORT, {"cpu": [good(1)], "nic": ()})
    assert merged == MergedHint(hint=poor(1), admitted=True, why=Reason.UNALIGNED)


@pytest.mark.parametrize(
    ("policy", "hints", "why"),
    [
        (TopologyPolicy.RESTRICTED, {"cpu": [good(0)], "memory": [good(1)]}, Reason.NO_COMMON_NODE),
        (
            TopologyPolicy.RESTRICTED,
            {"cpu": [good(0)], "memory": [poor(0, 1)]},
            Reason.NOT_PREFERRED,
        ),
        (TopologyPolicy.RESTRICTED, {"cpu": ()}, Reason.IMPOSSIBLE),
        (TopologyPolicy.SINGLE_NUMA_NODE, {"cpu": [good(0, 1)]}, Reason.NO_SINGLE_NODE),
        (TopologyPolicy.SINGLE_NUMA_NODE, {"cpu": [poor(0)]}, Reason.NO_SINGLE_NODE),
        (TopologyPolicy.SINGLE_NUMA_NODE, {"cpu": ()}, Reason.IMPOSSIBLE),
        (TopologyPolicy.NUMERIC, {"cpu": [good(0)], "memory": [good(1)]}, Reason.NOT_NESTED),
        (TopologyPolicy.NUMERIC, {"cpu": [poor(0)], "memory": [poor(0)]}, Reason.NOT_NESTED),
        (TopologyPolicy.NUMERIC, {"cpu": [good(0)], "memory": ()}, Reason.IMPOSSIBLE),
    ],
)
def test_refused(policy: TopologyPolicy, hints: Mapping[str, Hints], why: Reason) -> None:
    merged = asked(policy, hints)
    assert not merged.admitted
    assert merged.why is why


def test_restricted_allows_two_nodes_to_what_needs_two() -> None:
    merged = asked(TopologyPolicy.RESTRICTED, {"cpu": [good(0, 1)], "memory": [good(0, 1)]})
    assert merged == MergedHint(hint=good(0, 1), admitted=True, why=Reason.ALIGNED)


@pytest.mark.parametrize("policy", [TopologyPolicy.BEST_EFFORT, TopologyPolicy.RESTRICTED])
def test_without_a_preference_all_nodes_are_given(policy: TopologyPolicy) -> None:
    assert asked(policy, {"cpu": None}).hint == good(0, 1)
    assert asked(policy, {}).hint == good(0, 1)


def test_without_a_preference_the_single_node_is_left_open() -> None:
    assert asked(TopologyPolicy.SINGLE_NUMA_NODE, {"cpu": None}).hint == ANY


def test_nobody_is_asked() -> None:
    merged = asked(TopologyPolicy.NONE, {"cpu": ()})
    assert merged == MergedHint(hint=ANY, admitted=True, why=Reason.NOT_ASKED)


def test_numeric_gives_each_its_own() -> None:
    hints = {
        "cpu": [good(0, 1)],
        "memory": [good(0), good(1), poor(0, 1)],
        "gpu": [good(1)],
        "disk": None,
    }
    merged = asked(TopologyPolicy.NUMERIC, hints)
    assert merged.admitted
    assert merged.own == {"cpu": good(0, 1), "memory": poor(0, 1), "gpu": good(1), "disk": ANY}
    assert merged.hint == poor(0, 1)


def test_numeric_counts_every_aligned_resource_when_it_looks_for_one_that_prefers() -> None:
    """Katalyst looks at the last two of them."""
    options = TopologyOptions(align=("a", "b", "c"))
    hints = {"a": [good(0)], "b": [poor(0)], "c": [poor(0)]}
    assert merge(TopologyPolicy.NUMERIC, options, hints, TWO, flat(TWO)).admitted


def test_closest_nodes() -> None:
    nodes = CpuSet({0, 1, 2})
    near = {0: {0: 10, 1: 31, 2: 12}, 1: {0: 31, 1: 10, 2: 21}, 2: {0: 12, 1: 21, 2: 10}}
    hints = {"cpu": [good(0, 1), good(0, 2), good(1, 2)]}
    closest = TopologyOptions(prefer_closest_numa_nodes=True)
    assert merge(TopologyPolicy.RESTRICTED, PLAIN, hints, nodes, near).hint == good(0, 1)
    assert merge(TopologyPolicy.RESTRICTED, closest, hints, nodes, near).hint == good(0, 2)
