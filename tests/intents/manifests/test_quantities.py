"""Amounts of intents: numbers with units, and Kubernetes' own quantities."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.quantity import parse
from dovetail.intents.manifests.quantities import (
    BYTE_UNITS,
    BadAmount,
    WrittenAmount,
    amount_of,
)


@pytest.mark.parametrize(
    ("resource", "written", "units", "expected"),
    [
        ("cpu", 4, "", "4"),
        ("cpu", "4", "", "4"),
        ("cpu", 1.5, "", "1500m"),
        ("cpu", 0.1, "", "100m"),
        ("cpu", "500m", "", "500m"),
        ("cpu", 2, "cores", "2"),
        ("cpu", 250, "m", "250m"),
        ("memory", 1000, "", "1000M"),
        ("memory", "1000", "", "1000M"),
        ("memory", 1000, "MB", "1000M"),
        ("memory", 2, "GB", "2000M"),
        ("memory", 2, "GiB", "2Gi"),
        ("memory", 2, "Gi", "2Gi"),
        ("memory", 1.5, "GiB", "1536Mi"),
        ("memory", 3, "kB", "3k"),
        ("memory", 3, "KB", "3k"),
        ("memory", 3, "KiB", "3Ki"),
        ("memory", 1, "TB", "1T"),
        ("memory", 1, "TiB", "1Ti"),
        ("memory", 7, "B", "7"),
        ("memory", "512Mi", "", "512Mi"),
        ("memory", "1e3", "", "1G"),
        ("hugepages-2Mi", "64Mi", "", "64Mi"),
        ("hugepages-2Mi", 64, "MiB", "64Mi"),
        ("ephemeral-storage", 4, "GB", "4G"),
        ("nvidia.com/gpu", 2, "", "2"),
        ("nvidia.com/gpu", "2", "", "2"),
        ("nvidia.com/gpu", 2.0, "", "2"),
    ],
)
def test_amounts(resource: str, written: WrittenAmount, units: str, expected: str) -> None:
    assert amount_of(resource, written, units) == parse(expected)


@pytest.mark.parametrize(
    ("resource", "written", "units", "words"),
    [
        ("memory", 2, "gb", r"units: 'gb' is no unit of memory: one of B, kB, MB"),
        ("memory", 2, "parsecs", r"units: 'parsecs' is no unit of memory"),
        ("cpu", 2, "MB", r"units: 'MB' is no unit of cpu: one of core, cores, cpu, cpus, m"),
        ("nvidia.com/gpu", 2, "MB", r"units: 'MB': nvidia.com/gpu is counted in pieces"),
        ("memory", "2Gi", "MB", r"requests: '2Gi' has a unit of its own, and units 'MB' besides"),
        ("memory", "lots", "", r"requests: 'lots' is no quantity"),
        ("memory", "500m", "", r"requests: 500m is less than one byte"),
        ("cpu", 0, "", r"requests: 0: more than nothing is expected"),
        ("cpu", -1, "", r"requests: -1: more than nothing"),
        ("cpu", "-500m", "", r"requests: -500m: more than nothing"),
        ("cpu", True, "", r"requests: True: a number is expected"),
        ("cpu", float("nan"), "", r"requests: nan: a number is expected"),
        ("cpu", float("inf"), "", r"requests: inf: a number is expected"),
        ("cpu", 10**30, "", r"more than \d+ nobody has"),
        ("cpu", "1e999", "", r"more than \d+ nobody has"),
        ("cpu", "9" * 10_000, "", r"is no quantity"),
        ("nvidia.com/gpu", 0.5, "", r"0.5: nvidia.com/gpu is handed out in whole pieces"),
    ],
)
def test_what_is_no_amount_is_told_with_its_field(
    resource: str, written: WrittenAmount, units: str, words: str
) -> None:
    with pytest.raises(BadAmount, match=words):
        amount_of(resource, written, units)


def test_the_field_is_the_callers() -> None:
    with pytest.raises(BadAmount) as refused:
        amount_of("cpu", "x", field="spec.resource.limits")
    assert refused.value.field == "spec.resource.limits"
    with pytest.raises(BadAmount) as refused:
        amount_of("cpu", 1, "x", units_field="spec.resource.units")
    assert refused.value.field == "spec.resource.units"


@given(
    st.integers(min_value=1, max_value=10**6),
    st.sampled_from([each for each in BYTE_UNITS if each != "B"]),
)
def test_a_unit_beside_the_number_is_the_suffix_on_it(number: int, unit: str) -> None:
    suffix = {"KB": "k"}.get(unit, unit.removesuffix("B"))
    if number * BYTE_UNITS[unit] < 2**63:
        assert amount_of("memory", number, unit) == parse(f"{number}{suffix}")


@given(st.text(max_size=30), st.text(max_size=5))
def test_any_text_is_an_amount_or_a_bad_one(written: str, units: str) -> None:
    with suppress(BadAmount):
        assert amount_of("memory", written, units) >= Fraction(1)
