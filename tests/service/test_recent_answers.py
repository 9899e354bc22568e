"""Answers remembered for the claims that follow: bounded by what they take, not only by number."""

from __future__ import annotations

import tracemalloc

from dovetail.service.decisions import CandidateAnswer
from dovetail.service.recent_answers import MOST_BYTES, MOST_CANDIDATES, RecentAnswers


def answer(number: int, *, slots: int = 1, candidates: int = 10) -> CandidateAnswer:
    return CandidateAnswer(
        query=f"{number}&" + "x" * 20 * slots,
        candidates=candidates,
        shares=[{"VCPU": number + 1} for _ in range(slots)],
        providers=[
            [b"%036d" % (number * 10**9 + candidate * 10**6 + slot) for slot in range(slots)]
            for candidate in range(candidates)
        ],
    )


def allocations(one: CandidateAnswer, position: int) -> dict[str, dict[str, int]]:
    return one.allocations(position)


def test_an_answer_is_found_by_the_allocations_of_any_of_its_candidates() -> None:
    recent, given = RecentAnswers(), answer(1, slots=3)
    recent.remember(given)
    assert recent.recall(allocations(given, 7)) == (given, 7)
    assert recent.recall(allocations(answer(2, slots=3), 7)) is None


def test_the_later_of_two_answers_with_the_same_candidates_is_recalled() -> None:
    recent = RecentAnswers()
    first, second = answer(1), answer(1)
    recent.remember(first)
    recent.remember(second)
    for number in range(2, MOST_CANDIDATES // 10):
        recent.remember(answer(number))
    recalled = recent.recall(allocations(second, 0))
    assert recalled is not None
    assert recalled[0] is second


def test_the_oldest_answers_are_forgotten_first() -> None:
    recent = RecentAnswers()
    for number in range(1000):
        recent.remember(answer(number))
    assert recent.recall(allocations(answer(0), 0)) is None
    assert recent.recall(allocations(answer(999), 9)) is not None


def test_large_answers_take_no_more_memory_than_small_ones() -> None:
    """A query of a hundred groups leaves a hundred kilobytes behind; hundreds of them do not add
    up."""
    recent = RecentAnswers()
    tracemalloc.start()
    try:
        for number in range(400):
            recent.remember(answer(number, slots=100))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert recent.recall(allocations(answer(399, slots=100), 0)) is not None
    assert held < 1.5 * MOST_BYTES
