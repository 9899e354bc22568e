"""Interned keys: decided once each, counted by row, nothing kept of what is gone."""

from __future__ import annotations

from dovetail.core.interned import MOST_ANSWERS, Interned


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
    for number in range(3 * MOST_ANSWERS):
        taken = kinds.take(number)
        assert kinds.decided(number, number.__eq__)[taken]
        kinds.give(taken)
    assert len(kinds.keys) == 2
    assert len(kinds._answers) <= MOST_ANSWERS
    assert len(kinds._log) < 2000
