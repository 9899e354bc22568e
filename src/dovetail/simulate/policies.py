"""Policies as they are written on the command line: `fragmentation`, `best-fit:3,spread:1`."""

from __future__ import annotations

from dovetail.engine.rank import POLICIES
from dovetail.simulate.errors import BadPlan

Terms = tuple[tuple[str, int], ...]


def terms_of(text: str) -> Terms:
    terms = tuple(term_of(part.strip()) for part in text.split(","))
    if len({name for name, _ in terms}) < len(terms):
        raise BadPlan(f"policy {text!r}: each policy may stand there only once")
    return terms


def term_of(text: str) -> tuple[str, int]:
    name, colon, weight = text.partition(":")
    if name not in POLICIES:
        raise BadPlan(f"no such policy: {name!r}; there are {', '.join(POLICIES)}")
    if not colon:
        return name, 1
    if not (weight.isascii() and weight.isdecimal() and 1 <= int(weight[:6]) <= 1000):
        raise BadPlan(f"policy {text!r}: a weight is a whole number from 1 to 1000")
    return name, int(weight[:6])
