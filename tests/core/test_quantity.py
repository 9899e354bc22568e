"""Quantities are read as Kubernetes reads them, and written so that it reads the same."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core import quantity
from dovetail.core.quantity import LARGEST, ONE, BadQuantity, nanos, parse

SMALLEST = Fraction(1, ONE)

MEANINGS = {
    "0": Fraction(0),
    "1": Fraction(1),
    "1.5": Fraction(3, 2),
    ".5": Fraction(1, 2),
    "5.": Fraction(5),
    "+3": Fraction(3),
    "-2": Fraction(-2),
    "100m": Fraction(1, 10),
    "0.1": Fraction(1, 10),
    "250u": Fraction(250, 10**6),
    "3n": Fraction(3, 10**9),
    "2k": Fraction(2000),
    "2M": Fraction(2 * 10**6),
    "2G": Fraction(2 * 10**9),
    "2T": Fraction(2 * 10**12),
    "2P": Fraction(2 * 10**15),
    "2E": Fraction(2 * 10**18),
    "1Ki": Fraction(2**10),
    "1.5Mi": Fraction(3 * 2**19),
    "40Gi": Fraction(40 * 2**30),
    "1Ti": Fraction(2**40),
    "1Pi": Fraction(2**50),
    "1Ei": Fraction(2**60),
    "1e3": Fraction(1000),
    "1E3": Fraction(1000),
    "1.5e-1": Fraction(3, 20),
    "12e+2": Fraction(1200),
    "237182648320": Fraction(237182648320),
}


@pytest.mark.parametrize(("text", "meaning"), MEANINGS.items())
def test_each_form(text: str, meaning: Fraction) -> None:
    assert parse(text) == meaning


@pytest.mark.parametrize(
    "text",
    [
        *("", "-", ".", "m", "Gi", "1 ", " 1", "1K", "1ki", "1mi", "1GI", "1e", "1e1.5", "1..5"),
        *("--1", "1_000", "0x10", "\u0661", "1Gi2", "1e3m", "NaN", "inf", "1" * 101),
    ],
)
def test_anything_else_is_refused_and_said(text: str) -> None:
    with pytest.raises(BadQuantity, match=r"is no quantity: a number is expected, with one of n u"):
        parse(text)


def test_what_is_finer_than_a_billionth_is_rounded_away_from_zero() -> None:
    assert parse("0.1n") == SMALLEST
    assert parse("-0.1n") == -SMALLEST
    assert parse(".0000000001Ki") == Fraction(103, ONE)
    assert parse("1.0000000001") == 1 + SMALLEST
    assert parse("1e-999999999") == SMALLEST


def test_binary_forms_are_capped_where_kubernetes_caps_them() -> None:
    assert parse("8Ei") == parse("999999Ei") == LARGEST
    assert parse("-8Ei") == -LARGEST
    assert parse("7.9Ei") < LARGEST


def test_decimal_forms_are_not_capped() -> None:
    assert parse("10E") == 10**19 > LARGEST
    assert parse("99999999999999999999") == 99999999999999999999
    assert parse("1e30") == 10**30


def test_exponents_without_end_are_read_at_once() -> None:
    assert parse("9e999999999") > parse("1e100")
    assert parse("-9e999999999") < parse("-1e100")
    assert parse("0e999999999") == 0


def test_billionths_are_whole_numbers() -> None:
    assert nanos("1.5") == 15 * 10**8
    assert nanos("1n") == 1
    assert nanos("1.0001Ki") == 1024102400000


def test_written_with_the_largest_suffix_that_leaves_a_whole_number() -> None:
    assert quantity.format(Fraction(3, 2)) == "1500m"
    assert quantity.format(Fraction(1000)) == "1k"
    assert quantity.format(Fraction(1024)) == "1024"
    assert quantity.format(Fraction(1024), binary=True) == "1Ki"
    assert quantity.format(Fraction(3 * 2**29), binary=True) == "1536Mi"
    assert quantity.format(Fraction(1000), binary=True) == "1k"
    assert quantity.format(Fraction(0)) == quantity.format(Fraction(0), binary=True) == "0"


@settings(deadline=None)
@given(st.integers(-(10**18), 10**18), st.sampled_from([1, 10**3, 10**6, 10**9]), st.booleans())
def test_what_is_written_is_read_as_the_same(number: int, part: int, binary: bool) -> None:
    value = Fraction(number, part)
    assert parse(quantity.format(value, binary=binary)) == value


@settings(deadline=None)
@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=0, max_value=10**9))
def test_thousandths_survive_exactly(value: object) -> None:
    assert parse(str(value)) == Fraction(str(value))
