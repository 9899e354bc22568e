"""Amounts in values of attributes: rows 18 to 22 of the resource classes' ambiguities."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core.quantity import ONE
from dovetail.core.selectors.amount import Amount, Dimension, read

SIZES = {
    "30G": 30 * 10**9,
    "30GB": 30 * 10**9,
    "30Gi": 30 * 2**30,
    "30GiB": 30 * 2**30,
    "1k": 1000,
    "1kB": 1000,
    "512B": 512,
    "1.5Mi": 3 * 2**19,
    ".5kB": 500,
    "-2M": -2 * 10**6,
    "-2MB": -2 * 10**6,
    "0Ki": 0,
}


@pytest.mark.parametrize(("text", "size"), SIZES.items())
def test_row_20_bytes_are_written_as_kubernetes_does_with_or_without_b(
    text: str, size: int
) -> None:
    assert read(text) == Amount(Dimension.SIZE, size * ONE)


def test_row_20_30g_is_30gb_and_less_than_30gi() -> None:
    small, same, large = read("30G"), read("30GB"), read("30Gi")
    assert small == same
    assert small is not None
    assert large is not None
    assert small.size < large.size  # type: ignore[operator]


@pytest.mark.parametrize("text", ["40GBPS", "40Gbps", "40gbps", "40gBpS", "40000mbps", "5GB/s"])
def test_row_21_40gbps_in_every_spelling(text: str) -> None:
    assert read(text) == Amount(Dimension.RATE, 40 * 10**9 * ONE)


@pytest.mark.parametrize(
    ("text", "bits"),
    [("1bps", 1), ("1Kbps", 10**3), ("1.5Tbps", 15 * 10**11), ("1kB/s", 8000), ("2B/s", 16)],
)
def test_row_21_prefixes_are_powers_of_ten(text: str, bits: int) -> None:
    assert read(text) == Amount(Dimension.RATE, bits * ONE)


@pytest.mark.parametrize("text", ["40Gb/s", "40gb/s", "40gB/s", "40GiB/s", "40Gibps", "40Pbps"])
def test_row_21_no_other_spelling_is_guessed_at(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    ("text", "size"), [("8", 8 * ONE), ("0.5", ONE // 2), ("-1", -ONE), ("1e3", 1000 * ONE)]
)
def test_row_19_bare_numbers_are_a_dimension_of_their_own(text: str, size: int) -> None:
    assert read(text) == Amount(Dimension.NUMBER, size)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("v1", (1,)),
        ("v1.10", (1, 10)),
        ("1.2.3", (1, 2, 3)),
        ("535.104.05", (535, 104, 5)),
        ("1.2.3.4", (1, 2, 3, 4)),
        ("v2.0.0", (2,)),
        ("0.0.0", (0,)),
    ],
)
def test_row_19_versions_have_three_fields_or_a_v(text: str, fields: tuple[int, ...]) -> None:
    assert read(text) == Amount(Dimension.VERSION, fields)


def test_row_19_two_fields_are_a_number() -> None:
    assert read("1.10") == read("1.1") == Amount(Dimension.NUMBER, 11 * ONE // 10)


def test_row_22_finer_than_a_billionth_is_rounded_away_from_zero() -> None:
    assert read("0.1n") == Amount(Dimension.SIZE, 1)
    assert read("-0.1n") == Amount(Dimension.SIZE, -1)
    assert read("0.0000000001bps") == Amount(Dimension.RATE, 1)


def test_row_22_only_binary_forms_are_capped() -> None:
    largest = (2**63 - 1) * ONE
    assert read("9Ei") == read("9EiB") == Amount(Dimension.SIZE, largest)
    assert read("10E") == read("10EB") == Amount(Dimension.SIZE, 10**19 * ONE)


@pytest.mark.parametrize(
    "text",
    [
        *("", "abc", "G", "B", "bps", "B/s", "v", "1.2.3-rc1", "v1.", "1..2", "30 G", " 8", "1K"),
        *("1KB", "1mB", "0x10", "٣", "v٣", "NaN", "1" * 101),
    ],
)
def test_anything_else_is_just_text(text: str) -> None:
    assert read(text) is None


@settings(deadline=None)
@given(st.text(max_size=20))
def test_any_text_can_be_read(text: str) -> None:
    found = read(text)
    assert found is None or isinstance(found.size, int | tuple)


@settings(deadline=None)
@given(st.lists(st.integers(0, 99), min_size=3, max_size=5), st.integers(0, 3))
def test_trailing_zeros_make_no_other_version(fields: list[int], zeros: int) -> None:
    assert read(".".join(map(str, fields))) == read(".".join(map(str, fields + [0] * zeros)))
