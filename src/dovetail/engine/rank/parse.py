"""Parser of rankings as people write them: `fragmentation`, `best-fit:3,spread:1`.

Queries of REST and options of the command line go through it.
"""

from __future__ import annotations

from dovetail.core.errors import Malformed
from dovetail.engine.rank.policies.registry import POLICIES

Terms = tuple[tuple[str, int], ...]
"""Policies with their weights."""

MOST_WEIGHT = 1000


class BadRanking(Malformed):
    """A ranking that names no policy, or gives it no weight."""


def parse_ranking(text: str) -> Terms:
    terms = tuple(_parse_term(part.strip()) for part in text.split(","))
    if len({name for name, _ in terms}) < len(terms):
        raise BadRanking(f"Each policy may stand in a ranking only once: {text}")
    return terms


def _parse_term(text: str) -> tuple[str, int]:
    name, colon, weight = text.partition(":")
    if name not in POLICIES:
        raise BadRanking(f"No such policy: {name!r}. There are: {', '.join(POLICIES)}.")
    if not colon:
        return name, 1
    if not (weight.isascii() and weight.isdecimal() and 1 <= int(weight[:6]) <= MOST_WEIGHT):
        raise BadRanking(
            f"The weight of a policy is a whole number from 1 to {MOST_WEIGHT}, "
            f"as in `{name}:3`. Got: {text}. Policies: {', '.join(POLICIES)}."
        )
    return name, int(weight[:6])
