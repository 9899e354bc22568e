"""Amounts of bytes as Kubernetes writes them: 500Mi, 2G, 1.5Gi."""

from __future__ import annotations

import re
from fractions import Fraction

from dovetail.core.errors import DovetailError

UNITS = {
    "": 1,
    **{unit: 1000**at for at, unit in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{unit: 1024**at for at, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}
FORM = re.compile(r"(\d+(?:\.\d+)?)([A-Za-z]*)", re.ASCII)


class BadQuantity(DovetailError):
    """No amount of bytes."""


def parse_bytes(value: object) -> int:
    found = FORM.fullmatch(str(value).strip()) if isinstance(value, str | int) else None
    if isinstance(value, bool) or not found or found[2] not in UNITS:
        raise BadQuantity(f"{value!r} is no amount of bytes such as 500Mi or 2G")
    amount = Fraction(found[1]) * UNITS[found[2]]
    if amount.denominator != 1:
        raise BadQuantity(f"{value!r} is no whole number of bytes")
    return int(amount)


def shown_bytes(amount: int) -> str:
    """The shortest exact form with binary units: 2Mi, 1Gi, 500."""
    unit = next(
        unit
        for unit in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki", "")
        if amount % UNITS[unit] == 0 and (amount or not unit)
    )
    return f"{amount // UNITS[unit]}{unit}"


def pages(resource: str) -> bool:
    """Whether a resource is huge pages of some size."""
    return resource.startswith("hugepages-")
