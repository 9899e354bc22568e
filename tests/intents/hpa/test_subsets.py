"""Best and largest subsets, beside all subsets there are."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from dovetail.intents.hpa.subsets import (
    BestSubset,
    MonotoneFamily,
    ScarceResource,
    best_subset,
    largest_sets,
    smallest_failing,
)

ITEMS = 5
masks = st.integers(0, 2**ITEMS - 1)


def family(tops: list[int], questions: int = 10_000) -> MonotoneFamily:
    """All that is within any of these sets fits, and so does nothing."""
    return MonotoneFamily(lambda mask: any(not mask & ~top for top in (0, *tops)), questions)


def is_in(mask: int, tops: list[int]) -> bool:
    return any(not mask & ~top for top in (0, *tops))


@given(st.lists(masks, max_size=6), st.lists(st.integers(1, 10), min_size=ITEMS, max_size=ITEMS))
def test_the_best_subset_is_the_heaviest(tops: list[int], weights: list[int]) -> None:
    found = best_subset(weights, family(tops))
    heaviest = max(weight(mask, weights) for mask in range(2**ITEMS) if is_in(mask, tops))
    assert is_in(found.members, tops)
    assert found.weight == weight(found.members, weights) == heaviest
    assert found.is_proven


def weight(mask: int, weights: list[int]) -> int:
    return sum(each for at, each in enumerate(weights) if mask >> at & 1)


@given(
    st.lists(st.tuples(st.integers(1, 10), st.integers(0, 4)), min_size=ITEMS, max_size=ITEMS),
    st.integers(0, 10),
)
def test_bounds_by_resources_lose_nothing(items: list[tuple[int, int]], free: int) -> None:
    weights, amounts = [each for each, _ in items], tuple(each for _, each in items)

    def fits(mask: int) -> bool:
        return sum(each for at, each in enumerate(amounts) if mask >> at & 1) <= free

    found = best_subset(weights, MonotoneFamily(fits, 10_000), [ScarceResource(free, amounts)])
    assert found.weight == max(weight(mask, weights) for mask in range(2**ITEMS) if fits(mask))


def test_of_equal_weight_the_first_is_taken() -> None:
    assert best_subset([3, 3, 3], family([0b010, 0b001, 0b100])).members == 0b001


def test_one_unit_for_many_is_proved_by_counting() -> None:
    """Twenty want what there is one of: without the bound, every pair would be asked about."""
    wanted = MonotoneFamily(lambda mask: mask.bit_count() <= 1, 45)
    found = best_subset([9] * 20, wanted, [ScarceResource(1, (1,) * 20)])
    assert found == BestSubset(1, 9, True)


def test_a_search_that_is_cut_says_so() -> None:
    found = best_subset([1] * 12, MonotoneFamily(lambda mask: mask.bit_count() <= 6, 30))
    assert found.weight == 6
    assert not found.is_proven


def test_what_is_undecided_is_not_granted_and_told() -> None:
    found = best_subset([2, 1], MonotoneFamily(lambda mask: None if mask & 1 else True, 100))
    assert (found.members, found.is_proven) == (0b10, False)


@given(st.lists(masks, max_size=6))
def test_the_largest_sets_are_all_of_them(tops: list[int]) -> None:
    tops += [1 << at for at in range(ITEMS)]
    found = largest_sets(ITEMS, family(tops), 100)
    largest = {one for one in tops if not any(one != other and not one & ~other for other in tops)}
    assert set(found.sets) == largest
    assert len(found.sets) == len(largest)
    assert found.is_complete
    order = [[not one >> at & 1 for at in range(ITEMS)] for one in found.sets]
    assert order == sorted(order)


@given(st.lists(masks, max_size=6), st.integers(0, 3), st.integers(0, 12))
def test_sets_that_are_cut_fit_and_leave_out_nobody(
    tops: list[int], most: int, questions: int
) -> None:
    tops += [1 << at for at in range(ITEMS)]
    found = largest_sets(ITEMS, family(tops, questions), most)
    assert all(is_in(one, tops) for one in found.sets)
    everyone = 0
    for one in found.sets:
        everyone |= one
    assert everyone == 2**ITEMS - 1


@given(st.lists(masks, max_size=6))
def test_items_that_fail_together_and_not_without_any(tops: list[int]) -> None:
    tops = [top for top in tops if top != 2**ITEMS - 1]

    def fails(items: Sequence[int]) -> bool:
        return not is_in(sum(1 << at for at in items), tops)

    found = smallest_failing(range(ITEMS), fails)
    assert fails(found)
    assert not any(fails([one for one in found if one != each]) for each in found)


def test_what_there_is_not_enough_of_for_one_is_never_asked_about() -> None:
    asked: list[int] = []

    def fits(mask: int) -> bool:
        asked.append(mask)
        return True

    scarce = [ScarceResource(0, (1, 0, 0)), ScarceResource(-1, (0, 0, 2))]
    found = best_subset([9, 1, 9], MonotoneFamily(fits, 10), scarce)
    assert found == BestSubset(0b010, 1, True)
    assert asked == [0b010]


def test_of_very_many_the_heaviest_are_looked_at() -> None:
    """No deeper than can be gone; that others may be missing is told."""
    count, lone = 5_000, 0
    weights = [2 if at == lone else 1 for at in range(count)]
    others = (1 << count) - 1 & ~(1 << lone)
    found = best_subset(weights, family([1 << lone, others]))
    assert not found.is_proven
    assert is_in(found.members, [1 << lone, others])
    assert found.weight == weight(found.members, weights) > weights[lone]
