"""Sets of attributes: a selector selects the same of them as it does one by one, whenever asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.selectors import selector as selectors
from dovetail.core.selectors.selector import (
    Condition,
    Expression,
    Operator,
    Selector,
    compile_selector,
)
from dovetail.engine import interned_sets
from dovetail.engine.interned_sets import AttributeSets, InternedSets

keys = st.sampled_from("abc")
values = st.sampled_from(["1", "2", "30G", "30000M", "x", ""])
sets = st.lists(st.dictionaries(keys, values), max_size=12)
expressions = st.one_of(
    st.builds(Expression, st.sampled_from("abcz"), st.sampled_from(sorted(selectors.PRESENCE))),
    st.builds(
        Expression,
        st.sampled_from("abcz"),
        st.sampled_from(sorted(selectors.SETS)),
        st.lists(values, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(Expression, keys, st.just(Operator.EQ), st.tuples(values)),
    st.builds(
        Expression,
        keys,
        st.sampled_from(sorted(selectors.ORDERED)),
        st.sampled_from([("1",), ("30G",), ("2",)]),
    ),
)
branches = st.lists(expressions, max_size=3).map(tuple)
wanted = st.lists(branches, max_size=3).map(tuple)


def one_by_one(known: AttributeSets, selector: Selector) -> list[bool]:
    return [compile_selector(selector)(dict(known.members(number))) for number in range(len(known))]


@given(sets, sets, wanted)
def test_what_came_later_is_selected_as_what_was_there(
    first: list[dict[str, str]], later: list[dict[str, str]], selector: Selector
) -> None:
    known = AttributeSets()
    for batch in (first, later):
        numbers = [known.number_of(each.items()) for each in batch]
        found = known.selected_by(selector).tolist()
        assert found == one_by_one(known, selector)
        assert [found[number] for number in numbers] == [*map(compile_selector(selector), batch)]
        assert [dict(known.members(number)) for number in numbers] == batch


@given(sets, sets, wanted)
def test_a_copy_goes_its_own_way(
    first: list[dict[str, str]], later: list[dict[str, str]], selector: Selector
) -> None:
    known = AttributeSets()
    for each in first:
        known.number_of(each.items())
    before = known.selected_by(selector).tolist()
    twin = known.copy()
    for each in later:
        twin.number_of(each.items())
    assert twin.selected_by(selector).tolist() == one_by_one(twin, selector)
    assert known.selected_by(selector).tolist() == before
    assert len(known) == len(before)


def test_a_condition_is_decided_once_for_each_value_of_its_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thousands of devices have a serial number of their own, and are of a few kinds."""
    asked: list[str | None] = []

    def counting(expression: Expression) -> Condition:
        met = selectors.condition(expression)
        return lambda value: asked.append(value) or met(value)  # type: ignore[func-returns-value]

    monkeypatch.setattr(interned_sets, "condition", counting)
    known = AttributeSets()
    for number in range(1000):
        known.number_of([("Kind", f"kind{number % 3}"), ("serial", str(number))])
    selector = ((Expression("Kind", Operator.IN, ("kind1",)),),)
    assert known.selected_by(selector).sum() == 333
    assert len(asked) == 4, "three kinds, and none at all"
    known.number_of([("Kind", "kind1"), ("serial", "new")])
    assert known.selected_by(selector).sum() == 334
    assert len(asked) == 6


def test_only_so_many_selectors_are_remembered() -> None:
    known = AttributeSets()
    for number in range(interned_sets.MOST_SELECTORS + 10):
        known.selected_by(((Expression(str(number), Operator.EXISTS),),))
    assert len(known._decided) == interned_sets.MOST_SELECTORS


def test_conditions_that_clients_make_up_are_not_kept_for_ever() -> None:
    """A client that names other aggregates each time must not fill the memory with them."""
    sets: InternedSets[str] = InternedSets()
    there = sets.number_of({"rack"})
    for number in range(3 * interned_sets.MOST_CONDITIONS):
        made_up = [f"aggregate {number} {each}" for each in range(100)]
        assert not sets.meeting([made_up]).any()
        assert len(sets._answers) <= interned_sets.MOST_CONDITIONS
    twin = sets.copy()
    for number in range(3 * interned_sets.MOST_CONDITIONS):
        assert twin.meeting([["rack", str(number)]]).nonzero()[0].tolist() == [there]
    assert len(twin._answers) <= interned_sets.MOST_CONDITIONS
