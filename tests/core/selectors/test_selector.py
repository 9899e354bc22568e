"""Selectors: all nine operators, rows 16 to 19 of the resource classes' ambiguities, invariants."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core.selectors.selector import (
    BadExpression,
    Expression,
    Operator,
    Selector,
    compile_selector,
    mismatches,
    problems_of,
)
from tests.devices.selectors import attribute_sets, expressions, selectors


def met(key: str, operator: str, /, *values: str, **attributes: str) -> bool:
    return compile_selector(((Expression(key, Operator(operator), values),),))(attributes)


@pytest.mark.parametrize(
    ("operator", "value", "yes", "no"),
    [
        ("Gt", "30G", "31G", "30G"),
        ("GtEq", "30G", "30000M", "29999M"),
        ("Lt", "30G", "29G", "30GB"),
        ("LtEq", "30G", "30GB", "30Gi"),
        ("GtEq", "40GBPS", "5GB/s", "10Gbps"),
        ("Gt", "8", "9", "8.0"),
        ("Lt", "10", "9", "11"),
        ("Gt", "v1.9", "v1.10", "v1.8"),
        ("GtEq", "535.104.5", "550.54.14", "535.98.100"),
        ("Eq", "30G", "30000M", "30Gi"),
        ("Eq", "fast", "fast", "Fast"),
    ],
)
def test_operators_with_one_value(operator: str, value: str, yes: str, no: str) -> None:
    assert met("key", operator, value, key=yes)
    assert not met("key", operator, value, key=no)


def test_operators_with_lists_and_without_values() -> None:
    assert met("key", "In", "a", "b", key="b")
    assert not met("key", "In", "a", "b", key="c")
    assert met("key", "NotIn", "a", "b", key="c")
    assert not met("key", "NotIn", "a", "b", key="a")
    assert met("key", "Exists", key="")
    assert not met("key", "DoesNotExist", key="")


@pytest.mark.parametrize("operator", list(Operator))
def test_row_16_a_missing_key_meets_not_in_and_does_not_exist_only(operator: Operator) -> None:
    values = () if operator in ("Exists", "DoesNotExist") else ("1",)
    assert met("key", operator, *values) is (operator in ("NotIn", "DoesNotExist"))


@pytest.mark.parametrize(
    ("operator", "good", "bad"),
    [
        ("In", ["a", "ab"], [""]),
        ("NotIn", ["a", "ab"], [""]),
        ("Eq", ["a"], ["", "ab"]),
        ("Gt", ["1"], ["", "12"]),
        ("GtEq", ["1"], ["", "12"]),
        ("Lt", ["1"], ["", "12"]),
        ("LtEq", ["1"], ["", "12"]),
        ("Exists", [""], ["a"]),
        ("DoesNotExist", [""], ["a"]),
    ],
)
def test_row_17_value_counts(operator: str, good: list[str], bad: list[str]) -> None:
    for values in good:
        assert not problems_of(Expression("key", Operator(operator), tuple(values)))
    for values in bad:
        (fault,) = problems_of(Expression("key", Operator(operator), tuple(values)))
        assert fault.index is None
        assert fault.message.startswith(f"{operator} takes ")


def test_row_17_a_key_may_repeat_to_make_a_range() -> None:
    between = compile_selector(
        (
            (
                Expression("memory", Operator.GT_EQ, ("16G",)),
                Expression("memory", Operator.LT, ("80G",)),
            ),
        )
    )
    assert [between({"memory": each}) for each in ("8G", "16G", "79G", "80G")] == [
        *(False, True, True, False)
    ]


def test_row_18_lists_compare_text_and_eq_compares_amounts_with_units() -> None:
    assert met("memory", "Eq", "30G", memory="30000M")
    assert not met("memory", "In", "30G", memory="30000M")
    assert met("memory", "NotIn", "30G", memory="30000M")
    assert met("speed", "Eq", "40Gbps", speed="5GB/s")


def test_row_18_what_has_no_unit_is_equal_as_text() -> None:
    assert not met("version", "Eq", "1.1", version="1.10")
    assert not met("version", "Eq", "v1.2.0", version="v1.2")
    assert not met("memory", "Eq", "30G", memory="30000000000")


@pytest.mark.parametrize("seen", ["30000000000", "40GBPS", "1.2.3", "plenty", ""])
@pytest.mark.parametrize("operator", ["Gt", "GtEq", "Lt", "LtEq"])
def test_row_19_another_dimension_does_not_match_and_is_told(operator: str, seen: str) -> None:
    expression = Expression("memory", Operator(operator), ("30G",))
    assert not met("memory", operator, "30G", memory=seen)
    (found,) = mismatches(((expression,),), {"memory": seen})
    assert found.expression == expression
    assert str(found).startswith(f"memory is {seen!r}, ")
    assert str(found).endswith("not comparable with '30G', an amount with a unit")


def test_row_19_eq_of_amounts_that_cannot_be_equal_is_told_and_of_text_is_not() -> None:
    equal = ((Expression("memory", Operator.EQ, ("30G",)),),)
    assert mismatches(equal, {"memory": "30"})
    assert not mismatches(equal, {"memory": "much"})
    assert not mismatches(equal, {"memory": "31G"})
    assert not mismatches(equal, {})


def test_a_mismatch_on_a_device_that_is_not_meant_is_not_told() -> None:
    nics = (
        (Expression("Kind", Operator.IN, ("nic",)), Expression("speed", Operator.GT, ("1Gbps",))),
    )
    assert mismatches(nics, {"Kind": "nic", "speed": "7200"})
    assert not mismatches(nics, {"Kind": "disk", "speed": "7200"})


def test_ordered_operators_need_an_amount() -> None:
    (fault,) = problems_of(Expression("memory", Operator.GT, ("lots",)))
    assert fault.index == 0
    assert "'lots' has no order: an amount such as 30G" in fault.message
    with pytest.raises(BadExpression, match="memory Gt lots: 'lots' has no order"):
        compile_selector(((Expression("memory", Operator.GT, ("lots",)),),))


@pytest.mark.parametrize("selector", [(), ((),), ((), ())])
def test_an_empty_selector_meets_nothing(selector: Selector) -> None:
    assert not compile_selector(selector)({})
    assert not compile_selector(selector)({"Kind": "gpu"})


@settings(deadline=None)
@given(selectors(), selectors(), attribute_sets())
def test_or_is_union(one: Selector, other: Selector, attributes: dict[str, str]) -> None:
    either = compile_selector(one)(attributes) or compile_selector(other)(attributes)
    assert compile_selector(one + other)(attributes) is either


@settings(deadline=None)
@given(selectors(), st.data(), attribute_sets())
def test_widening_never_narrows(
    selector: Selector, data: st.DataObject, attributes: dict[str, str]
) -> None:
    """An expression less, or a selector more, selects no less."""
    index = data.draw(st.integers(0, len(selector) - 1))
    branch = selector[index]
    at = data.draw(st.integers(0, len(branch) - 1))
    shorter = branch[:at] + branch[at + 1 :]
    if not compile_selector(selector)(attributes):
        return
    if shorter:
        assert compile_selector((*selector[:index], shorter, *selector[index + 1 :]))(attributes)
    assert compile_selector((*selector, (data.draw(expressions()),)))(attributes)


@settings(deadline=None)
@given(expressions(), attribute_sets())
def test_gt_and_lt_eq_split_what_is_comparable(
    expression: Expression, attributes: dict[str, str]
) -> None:
    opposite = {Operator.GT: Operator.LT_EQ, Operator.LT: Operator.GT_EQ}.get(expression.operator)
    if opposite is None:
        return
    counter = Expression(expression.key, opposite, expression.values)
    comparable = expression.key in attributes and not mismatches(((expression,),), attributes)
    both = [compile_selector(((each,),))(attributes) for each in (expression, counter)]
    assert sum(both) == comparable
