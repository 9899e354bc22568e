"""The part of CEL that device selectors need behaves as Kubernetes': values, errors, positions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.devices.classes.cel import (
    BadCel,
    CelDevice,
    CelError,
    Quantity,
    Semver,
    matches,
    parse,
)
from dovetail.devices.classes.cel.syntax import Literal
from dovetail.devices.classes.cel.tokens import LONGEST, quote

DEVICE = CelDevice(
    driver="dra.example.com",
    attributes={
        "dra.example.com": {
            "ok": True,
            "cores": 8,
            "model": "fish",
            "driver": Semver((1, 10, 0), True, ()),
        }
    },
    capacity={"dra.example.com": {"memory": Quantity.of("40Gi")}},
)
A = 'device.attributes["dra.example.com"]'
C = 'device.capacity["dra.example.com"]'


def evaluated(text: str) -> bool:
    return matches(parse(text), DEVICE)


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "!false",
        "!!true",
        'device.driver == "dra.example.com"',
        "device.driver == 'dra.example.com'",
        f"{A}.ok",
        f'{A}["ok"]',
        f"{A}.cores > 7 && {A}.cores >= 8 && {A}.cores < 9 && {A}.cores <= 8",
        f"{A}.cores != 9 && -1 < {A}.cores && 0x08 == {A}.cores",
        f'{A}.model in ["cat", "fish"]',
        f'{A}.model < "fisi"',
        f"has({A}.model) && !has({A}.colour)",
        f'"model" in {A} && !("colour" in {A})',
        '"dra.example.com" in device.attributes && !("x" in device.attributes)',
        '!("any" in device.attributes["no.such.domain"])',
        f'{C}.memory.compareTo(quantity("40Gi")) == 0',
        f'{C}.memory.compareTo(quantity("41Gi")) == -1',
        f'{C}.memory.compareTo(quantity("1")) == 1',
        f'{C}.memory.isGreaterThan(quantity("40G"))',
        f'{C}.memory.isLessThan(quantity("1Ti"))',
        f'{C}.memory == quantity("40960Mi")',
        f'{A}.driver.compareTo(semver("1.9.0")) > 0',
        f'{A}.driver.isGreaterThan(semver("1.10.0-rc.1"))',
        'semver("1.0.0-alpha.2").isLessThan(semver("1.0.0-alpha.10"))',
        'semver("1.0.0-alpha").isLessThan(semver("1.0.0-alpha.1"))',
        'isQuantity("1Ki") && !isQuantity("1K") && isSemver("1.2.3") && !isSemver("1.2")',
        "// a comment\n true // another",
        'r"a\\b" == "a\\\\b" && "\\x41\\u0042\\103" == "ABC"',
        "(false || true) && !(true && false)",
    ],
)
def test_true(text: str) -> None:
    assert evaluated(text)


@pytest.mark.parametrize(
    "text", [f'{A}.cores == "8"', f"{A}.ok == 1", f'{A}.model == quantity("1")', f"1 in [{A}.ok]"]
)
def test_what_differs_in_type_is_not_equal(text: str) -> None:
    assert not evaluated(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{A}.colour == 1", "no such key: colour"),
        ('device.attributes["no"].x', "no such key: x"),
        (f"{A}.cores", "neither true nor false"),
        (f"!{A}.cores", "true or false is expected"),
        (f"{A}.cores > {A}.model", "> does not compare these"),
        (f"{A}.ok > false", "> does not compare these"),
        (f'{A}.cores.compareTo(quantity("1")) > 0', "there is no compareTo for these"),
        (f'{C}.memory.compareTo(semver("1.0.0")) > 0', "there is no compareTo for these"),
        (f'{C}.memory.plus(quantity("1"))', "there is no plus for these"),
        ('quantity("1K") == quantity("1k")', "this is no quantity"),
        ("device.name", "a device has no name"),
        ("pod.ok", "there is no pod"),
        ('matches("a", "b")', "there is no matches of 2 values"),
        (f'has({A}["ok"])', "has() takes a field"),
        ("1 in 2", "`in` looks into lists and maps"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(CelError, match=r"at character \d+") as caught:
        evaluated(text)
    assert message in str(caught.value)


def test_an_error_is_outweighed_by_a_side_that_decides() -> None:
    error = f"{A}.colour"
    assert evaluated(f"{error} || true")
    assert evaluated(f"true || {error}")
    assert not evaluated(f"{error} && false")
    for text in (f"{error} && true", f"false || {error}"):
        with pytest.raises(CelError, match="no such key: colour"):
            evaluated(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at character 1: expected a value, got the end"),
        ("?!", "at character 1: '?' is not expected here"),
        ("true &&", "at character 8: expected a value, got the end"),
        ("true true", "at character 6: expected an operator or the end, got 'true'"),
        ("(true", "at character 6: expected `)`, got the end"),
        ("a.in", "at character 3: expected a field's name, got 'in'"),
        ("[1 2]", "at character 4: expected `,`, got 2"),
        ("1.5 > 1", "at character 1: a number with a point or an exponent is not understood"),
        ("1u == 1", "at character 1: an unsigned number is not understood"),
        ('b"a" == 1', "at character 1: bytes is not understood"),
        ('"""a"""', "at character 1: text in three quotes is not understood"),
        (r'"\q"', r"at character 2: '\\q' stands for nothing"),
        (r'"\ud800"', "is no character"),
        ("1 < 2 < 3", "at character 7: a comparison of a comparison is not understood"),
        ("true ? 1 : 2", "at character 6: '?' is not expected here"),
        ("a + b", "at character 3: '+' is not expected here"),
        ("- true", "at character 3: expected a number, got 'true'"),
        ("(" * 70 + "true" + ")" * 70, "brackets go deeper than 64 levels"),
        ("!" * 70 + "true", "more than 64 negations in a row"),
        ("a" + ".b" * 70, "more than 64 fields in a row"),
        ("a" * (LONGEST + 1), f"Kubernetes takes at most {LONGEST} characters"),
    ],
)
def test_what_is_not_understood_is_told_with_its_place(text: str, message: str) -> None:
    with pytest.raises(BadCel) as caught:
        parse(text)
    assert message in str(caught.value)


def test_long_chains_are_no_deep_ones() -> None:
    assert evaluated(" || ".join(["false"] * 1000 + ["true"]))


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_text_survives_being_quoted(text: str) -> None:
    assert parse(quote(text)) == Literal(text, 0)


@settings(deadline=None)
@given(st.text(alphabet='adev.[]()"!&|=<> in01,\\', max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        node = parse(text)
    except BadCel as error:
        # One past the end is where something is missing.
        at = error.at
    else:
        at = node.at
    assert 0 <= at <= len(text)
