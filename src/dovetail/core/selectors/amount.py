"""Amounts in values of attributes: "30G", "40GBPS", "8", "v1.10", read once, compared as integers.

What has different dimensions is never compared: neither is more. Text that is no amount has no
order.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

import msgspec

from dovetail.core.quantity import LONGEST, BadQuantity, _scaled_value, nanos


class Dimension(StrEnum):
    """The values are how messages name them."""

    SIZE = "an amount with a unit"
    RATE = "a rate"
    NUMBER = "a bare number"
    VERSION = "a version"


class Amount(msgspec.Struct, frozen=True):
    dimension: Dimension
    size: int | tuple[int, ...]
    """Billionths, of bits per second for rates; the fields of versions."""

    @property
    def has_unit(self) -> bool:
        return self.dimension in (Dimension.SIZE, Dimension.RATE)


NUMBER = r"([+-]?)(\d*)(?:\.(\d*))?"
BYTES = re.compile(NUMBER + r"([KMGTPE]i|[kMGTPE]?)B", re.ASCII)
BITS_PER_SECOND = re.compile(NUMBER + r"([kmgt]?)bps", re.ASCII | re.IGNORECASE)
BYTES_PER_SECOND = re.compile(NUMBER + r"([kMGT]?)B/s", re.ASCII)
VERSION = re.compile(r"v(\d+(?:\.\d+)*)|(\d+(?:\.\d+){2,})", re.ASCII)

PREFIXES = {"k": "k", "m": "M", "g": "G", "t": "T", "": ""}
"""Of rates, which may be written in any case: no link carries thousandths of a bit."""

FORMS = "30G, 512Mi or 80GB; 40Gbps or 5GB/s; 8 or 0.5; v1.10 or 535.104.5"


def read(text: str) -> Amount | None:
    """None: just text."""
    # Long text is not even remembered: it may be very long.
    return _read(text) if 0 < len(text) <= LONGEST else None


@lru_cache(maxsize=1 << 16)
def _read(text: str) -> Amount | None:
    if found := VERSION.fullmatch(text):
        return Amount(Dimension.VERSION, _fields(found[1] or found[2]))
    if (speed := _rate(text)) is not None:
        return Amount(Dimension.RATE, speed)
    if (found := BYTES.fullmatch(text)) and (found[2] or found[3]):
        return Amount(Dimension.SIZE, _signed_size(found, found[4]))
    try:
        size = nanos(text)
    except BadQuantity:
        return None
    # "1e3" ends in a digit too: an exponent is no unit.
    bare = text[-1].isdigit() or text[-1] == "."
    return Amount(Dimension.NUMBER if bare else Dimension.SIZE, size)


def _fields(dotted: str) -> tuple[int, ...]:
    """1.2 and 1.2.0 are the same version."""
    fields = [int(field) for field in dotted.split(".")]
    while len(fields) > 1 and not fields[-1]:
        fields.pop()
    return tuple(fields)


def _rate(text: str) -> int | None:
    if (found := BITS_PER_SECOND.fullmatch(text)) and (found[2] or found[3]):
        return _signed_size(found, PREFIXES[found[4].lower()])
    if (found := BYTES_PER_SECOND.fullmatch(text)) and (found[2] or found[3]):
        return 8 * _signed_size(found, found[4])
    return None


def _signed_size(found: re.Match[str], suffix: str) -> int:
    size = _scaled_value(found[2], found[3], suffix)
    return -size if found[1] == "-" else size
