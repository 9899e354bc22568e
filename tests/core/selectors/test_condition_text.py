"""Conditions on attributes, as query strings have them: read, written, and refused in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.selectors.condition_text import BadCondition, read, write
from dovetail.core.selectors.selector import ORDERED, PRESENCE, SETS, Expression, Operator


@pytest.mark.parametrize(
    ("text", "key", "operator", "values"),
    [
        ("Kind=nvidia-gpu", "Kind", Operator.EQ, ("nvidia-gpu",)),
        ("Kind==nvidia-gpu", "Kind", Operator.EQ, ("nvidia-gpu",)),
        ("memory>=30G", "memory", Operator.GT_EQ, ("30G",)),
        ("memory > 30G", "memory", Operator.GT, ("30G",)),
        ("speed<40Gbps", "speed", Operator.LT, ("40Gbps",)),
        ("driver<=v1.10", "driver", Operator.LT_EQ, ("v1.10",)),
        ("ecc", "ecc", Operator.EXISTS, ()),
        ("!mig", "mig", Operator.DOES_NOT_EXIST, ()),
        ("Family in (Pascal,Volta)", "Family", Operator.IN, ("Pascal", "Volta")),
        ("Family notin ( Pascal )", "Family", Operator.NOT_IN, ("Pascal",)),
        ("Family!=Pascal", "Family", Operator.NOT_IN, ("Pascal",)),
        ('Vendor="A, \\"B\\" & Co"', "Vendor", Operator.EQ, ('A, "B" & Co',)),
        ('Vendor=""', "Vendor", Operator.EQ, ("",)),
        ("example.com/numa=0", "example.com/numa", Operator.EQ, ("0",)),
        ("in in (in)", "in", Operator.IN, ("in",)),
    ],
)
def test_each_form(text: str, key: str, operator: Operator, values: tuple[str, ...]) -> None:
    assert read(text) == (Expression(key, operator, values),)


def test_several_are_all_wanted_and_only_commas_outside_parentheses_part_them() -> None:
    found = read("memory>=30G,Kind=nvidia-gpu,ecc,!mig,Family in (Pascal,Volta)")
    assert [each.key for each in found] == ["memory", "Kind", "ecc", "mig", "Family"]


anything = st.text(max_size=12)
expressions = st.one_of(
    st.builds(Expression, anything, st.sampled_from(sorted(PRESENCE))),
    st.builds(
        Expression,
        anything,
        st.sampled_from(sorted(SETS)),
        st.lists(anything, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(Expression, anything, st.just(Operator.EQ), st.tuples(anything)),
    st.builds(
        Expression,
        anything,
        st.sampled_from(sorted(ORDERED)),
        st.sampled_from(["30G", "-1", "40Gbps", "v1.2"]).map(lambda value: (value,)),
    ),
)


@given(st.lists(expressions, min_size=1, max_size=4).map(tuple))
def test_what_is_written_reads_as_the_same(found: tuple[Expression, ...]) -> None:
    assert read(write(found)) == found


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "at character 1: expected a key, got the end"),
        ("ecc,", "at character 5: expected a key, got the end"),
        ("=x", "at character 1: expected a key, got '=x'"),
        ("memory>=", "at character 9: expected a value, got the end"),
        ("memory>=30G ecc", "at character 13: expected a comma or the end, got 'ecc'"),
        ("Family in Pascal", "at character 11: expected `(`, got 'Pascal'"),
        ("Family in ()", "at character 12: expected a value"),
        ("Family in (Pascal", "at character 18: expected `)`, got the end"),
        ("ecc,memory>=much", "at character 5: memory>=much: 'much' has no order"),
        ('Vendor="open', "at character 8: expected a key, a value or a mark"),
        ("!!mig", "at character 2: expected a key"),
        ("ecc===on", "at character 6: expected a value, got '=on'"),
        (
            f"ecc,{'k' * 256}",
            "at character 5: a key of 256 characters; attributes have at most 255",
        ),
        (f"a in (b,{'v' * 1025})", "at character 1: a value of 1025 characters"),
        (f"a>{'9' * 1025}", "at character 1: a value of 1025 characters"),
    ],
)
def test_a_slip_is_told_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(BadCondition) as refused:
        read(text)
    assert str(refused.value).startswith(complaint)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = read(text)
    except BadCondition:
        return
    assert read(write(found)) == found
