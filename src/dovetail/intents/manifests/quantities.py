"""Quantities as intents write them: a number with `units`, or a quantity as Kubernetes has it.

The readers of documents call it. A bare number is in the default unit of its resource: cores of
`cpu`, megabytes (10^6 bytes) of `memory`, else what the resource is counted in. A number with a
suffix of its own (`500m`, `2Gi`) needs no unit, and may not have one besides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from math import isfinite

from dovetail.core.errors import Malformed
from dovetail.core.quantity import BINARY, DECIMAL, LARGEST, BadQuantity, parse
from dovetail.podfit.pod_sum import CPU, HUGE_PAGES, MEMORY, STORAGE

WrittenAmount = int | float | str

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)

BYTE_UNITS: Mapping[str, Fraction] = {
    "B": Fraction(1),
    **{f"{suffix}B": Fraction(10**power) for suffix, power in DECIMAL.items() if power > 0},
    "KB": Fraction(1000),
    **{f"{suffix}B": Fraction(2**power) for suffix, power in BINARY.items()},
    **{suffix: Fraction(10**power) for suffix, power in DECIMAL.items() if power > 0},
    **{suffix: Fraction(2**power) for suffix, power in BINARY.items()},
}
CPU_UNITS: Mapping[str, Fraction] = {
    **dict.fromkeys(("core", "cores", "cpu", "cpus"), Fraction(1)),
    "m": Fraction(1, 1000),
}
PIECE_UNITS: Mapping[str, Fraction] = {}
DEFAULT_UNITS: Mapping[str, Fraction] = {MEMORY: Fraction(10**6)}
"""Of bare numbers; one, of all other resources."""


class BadAmount(Malformed):
    """An amount that cannot be had, with the field that it stands in."""

    def __init__(self, field: str, message: str) -> None:
        self.field, self.message = field, message
        super().__init__(f"{field}: {message}")


def amount_of(
    resource: str,
    written: WrittenAmount,
    units: str = "",
    *,
    field: str = "requests",
    units_field: str = "units",
) -> Fraction:
    """In cores, bytes or pieces; more than nothing. Raises BadAmount with `field` (or
    `units_field`, if it is the unit that is wrong)."""
    scale = _scale(resource, units, units_field)
    number = _number(written, field)
    if number is not None:
        amount = number * scale
    elif units:
        raise BadAmount(field, f"{written!r} has a unit of its own, and units {units!r} besides")
    else:
        amount = _quantity(str(written), field)
    return _possible(resource, amount, written, field)


def has_bytes(resource: str) -> bool:
    return resource in (MEMORY, STORAGE) or resource.startswith(HUGE_PAGES)


def known_units(resource: str) -> Mapping[str, Fraction]:
    if resource == CPU:
        return CPU_UNITS
    return BYTE_UNITS if has_bytes(resource) else PIECE_UNITS


def _scale(resource: str, units: str, field: str) -> Fraction:
    if not units:
        return DEFAULT_UNITS.get(resource, Fraction(1))
    known = known_units(resource)
    if units in known:
        return known[units]
    if not known:
        raise BadAmount(field, f"{units!r}: {resource} is counted in pieces, without a unit")
    raise BadAmount(field, f"{units!r} is no unit of {resource}: one of {', '.join(known)}")


def _number(written: WrittenAmount, field: str) -> Fraction | None:
    """None: it has a suffix."""
    if isinstance(written, bool):
        raise BadAmount(field, f"{written}: a number is expected")
    if isinstance(written, int):
        return Fraction(written)
    if isinstance(written, float):
        if not isfinite(written):
            raise BadAmount(field, f"{written}: a number is expected")
        return Fraction(repr(written))
    text = written.strip()
    return Fraction(text) if len(text) <= 100 and NUMBER.fullmatch(text) else None


def _quantity(written: str, field: str) -> Fraction:
    try:
        return parse(written.strip())
    except BadQuantity as error:
        raise BadAmount(field, str(error)) from error


def _possible(resource: str, amount: Fraction, written: WrittenAmount, field: str) -> Fraction:
    if amount <= 0:
        raise BadAmount(field, f"{written}: more than nothing is expected")
    if amount > LARGEST:
        raise BadAmount(field, f"{written}: more than {LARGEST} nobody has")
    if resource == CPU:
        return amount
    if amount < 1 and has_bytes(resource):
        raise BadAmount(field, f"{written} is less than one byte")
    if amount.denominator != 1 and not has_bytes(resource):
        raise BadAmount(field, f"{written}: {resource} is handed out in whole pieces")
    return amount
