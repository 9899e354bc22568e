"""Quantities as Kubernetes writes them: "1500m", "40Gi", "1e3". Exact: no floats."""

from __future__ import annotations

import re
from fractions import Fraction
from math import ceil

from dovetail.core.errors import Malformed

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

SMALLEST = Fraction(1, 10**9)
LARGEST = Fraction(2**63 - 1)
"""Kubernetes rounds away from zero to the smallest, and caps at the largest."""

LONGEST = 100
"""Characters. Nobody needs more, and a number of a million digits takes long to read."""

FORM = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>\d*)(?P<point>\.?)(?P<part>\d*)"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE]?)|[eE](?P<exponent>[+-]?\d+))",
    re.ASCII,
)


class BadQuantity(Malformed):
    """Text that is no quantity."""


def parse(text: str) -> Fraction:
    found = FORM.fullmatch(text) if len(text) <= LONGEST else None
    if not found or not (found["whole"] or found["part"]):
        shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
        raise BadQuantity(
            f"{shown!r} is no quantity: a number is expected, with one of"
            f" {' '.join(filter(None, DECIMAL))} {' '.join(BINARY)} or an exponent after it"
        )
    digits = int(found["whole"] + found["part"] or "0")
    size = _scaled(digits, -len(found["part"]), found["suffix"], found["exponent"])
    size = min(LARGEST, ceil(size / SMALLEST) * SMALLEST)
    return -size if found["sign"] == "-" else size


def _scaled(digits: int, places: int, suffix: str | None, exponent: str | None) -> Fraction:
    if suffix in BINARY:
        return digits * ten_to(places) * (1 << BINARY[suffix])
    power = int(exponent) if exponent else DECIMAL[suffix or ""]
    # What is beyond the bounds in any case need not be worked out.
    power = max(-2 * LONGEST, min(2 * LONGEST, power))
    return digits * ten_to(places + power)


def ten_to(power: int) -> Fraction:
    return Fraction(10**power) if power >= 0 else Fraction(1, 10**-power)


def format(value: Fraction, *, binary: bool = False) -> str:  # noqa: A001
    """The shortest whole number with a suffix; `binary` for bytes: 1Gi, not 1073741824."""
    if binary and value.denominator == 1 and value:
        for suffix, power in reversed(BINARY.items()):
            if value.numerator % 2**power == 0:
                return f"{value.numerator >> power}{suffix}"
    if not value:
        return "0"
    for suffix, power in reversed(DECIMAL.items()):
        scaled = value / ten_to(power)
        if scaled.denominator == 1:
            return f"{scaled.numerator}{suffix}"
    return format(Fraction(ceil(value / SMALLEST)) * SMALLEST)
