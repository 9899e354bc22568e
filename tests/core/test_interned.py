"""Interned keys: decided once each, counted by row, nothing kept of what is gone."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core.interned import MOST_DECISIONS, Interned
from dovetail.podfit.row_multiset import RowMultiset


def test_a_rule_is_asked_once_per_distinct_key() -> None:
    kinds = Interned[str]()
    asked: list[str] = []

    def rule(key: str) -> bool:
        asked.append(key)
        return key == "a"

    numbers = [kinds.take(key) for key in ("a", "b", "a", "a")]
    for _ in range(3):
        assert kinds.decided("rule", rule).take(numbers).tolist() == [True, False, True, True]
    assert sorted(asked) == ["a", "b"]


def test_numbers_are_used_again_and_decided_anew() -> None:
    kinds = Interned[str]()
    first = kinds.take("a")
    assert kinds.decided("rule", lambda key: key == "a")[first]
    kinds.give(first)
    second = kinds.take("b")
    assert second == first
    assert not kinds.decided("rule", lambda key: key == "a")[second]


def test_keys_and_decisions_that_come_and_go_are_not_kept() -> None:
    kinds = Interned[int]()
    for number in range(3 * MOST_DECISIONS):
        taken = kinds.take(number)
        assert kinds.decided(number, number.__eq__)[taken]
        kinds.give(taken)
    assert len(kinds.keys) == 2
    assert len(kinds._decisions) <= MOST_DECISIONS
    assert len(kinds._log) < 2000


@settings(max_examples=60, deadline=None)
@given(st.integers(min_value=0, max_value=2**32))
def test_a_tally_counts_what_is_in_it(seed: int) -> None:
    rng = Random(seed)
    tally, bag = RowMultiset[str](), dict[int, tuple[str, int]]()
    for _ in range(60):
        if bag and rng.random() < 0.4:
            place = rng.choice(list(bag))
            tally.remove(place)
            del bag[place]
        else:
            key, row = rng.choice("abcdef"), rng.randrange(4)
            place = tally.add(key, row)
            assert place not in bag
            bag[place] = (key, row)
        wanted = frozenset(rng.sample("abcdef", 2))
        chosen = tally.decided(wanted, wanted.__contains__)
        right = Counter(row for key, row in bag.values() if key in wanted)
        assert tally.counts(chosen, 4).tolist() == [right[row] for row in range(4)]
        assert bool(tally) == bool(bag)
