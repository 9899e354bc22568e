"""Quantities as Kubernetes writes them ("1500m", "40Gi", "1e3"), read and written. No floats."""

from __future__ import annotations

import re
from fractions import Fraction
from math import ceil

from dovetail.core.errors import Malformed

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

ONE = 10**9
"""One, in billionths: nothing finer is kept, and what is finer is rounded away from zero."""

SCALES: dict[str, int] = {suffix: 10 ** (9 + power) for suffix, power in DECIMAL.items()} | {
    suffix: ONE << power for suffix, power in BINARY.items()
}
"""What each suffix stands for, in billionths."""

LARGEST = 2**63 - 1
"""Kubernetes caps quantities with a binary suffix here; the others may be larger."""

LONGEST = 100
"""Characters. Nobody needs more, and a number of a million digits takes long to read."""

FARTHEST = 2 * LONGEST
"""Exponents beyond are taken as this: larger, or finer, than anything that is ever compared."""

FORM = re.compile(
    r"([+-]?)(\d*)(?:\.(\d*))?(?:([KMGTPE]i|[numkMGTPE]?)|[eE]([+-]?\d+))",
    re.ASCII,
)


class BadQuantity(Malformed):
    """Text that is no quantity."""


def parse(text: str) -> Fraction:
    return Fraction(nanos(text), ONE)


def nanos(text: str) -> int:
    """The quantity in billionths."""
    found = FORM.fullmatch(text) if len(text) <= LONGEST else None
    if found is None:
        raise BadQuantity(_refusal(text))
    sign, whole, part, suffix, exponent = found.groups()
    if not whole and not part:
        raise BadQuantity(_refusal(text))
    size = (
        _exponential(whole, part or "", exponent)
        if exponent
        else _scaled_value(whole, part, suffix)
    )
    return -size if sign == "-" else size


def _scaled_value(whole: str, part: str | None, suffix: str) -> int:
    """The digits before and after the point, times what the suffix stands for."""
    size: int = int(whole + (part or "")) * SCALES[suffix]
    if part:
        size = -(-size // ten_to(len(part)))
    return min(size, LARGEST * ONE) if suffix in BINARY else size


def _exponential(whole: str, part: str, exponent: str) -> int:
    power = max(-FARTHEST, min(FARTHEST, int(exponent))) + 9 - len(part)
    digits = int(whole + part)
    return digits * ten_to(power) if power >= 0 else -(-digits // ten_to(-power))


def ten_to(power: int) -> int:
    return int(10**power)


def _refusal(text: str) -> str:
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    return (
        f"{shown!r} is no quantity: a number is expected, with one of"
        f" {' '.join(filter(None, DECIMAL))} {' '.join(BINARY)} or an exponent after it"
    )


def format(value: Fraction, *, binary: bool = False) -> str:  # noqa: A001
    """The shortest whole number with a suffix; `binary` for bytes: 1Gi, not 1073741824."""
    if binary and value.denominator == 1 and value:
        for suffix, power in reversed(BINARY.items()):
            if value.numerator % 2**power == 0:
                return f"{value.numerator >> power}{suffix}"
    if not value:
        return "0"
    for suffix in reversed(DECIMAL):
        scale = value * ONE / SCALES[suffix]
        if scale.denominator == 1:
            return f"{scale.numerator}{suffix}"
    return format(Fraction(ceil(value * ONE), ONE))
