"""The question that packing is asked, and its three answers."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dovetail.core.explanation import Explanation
from dovetail.podfit.pod_request import PodRequest

Assignment = tuple[Mapping[str, int], ...]
"""By kind of pod, in the order in which they were asked for: how many on which node."""


class PodsToPack(msgspec.Struct, frozen=True):
    """Pods of one kind, and how many of them."""

    request: PodRequest
    count: int


class Packed(msgspec.Struct, frozen=True):
    """All pods fit."""

    assignment: Assignment


class Unpackable(msgspec.Struct, frozen=True):
    """They do not all fit, whatever is tried: a proof, not a failed attempt."""

    kind: int
    """The first that does not fit beside all pods of the kinds before it, by its place."""
    wanted: int
    fitting: int
    """So many of the kind fit beside those."""
    assignment: Assignment
    """Where these could be: the kinds before in full, so many of this, none of those behind."""
    explanation: Explanation
    """Why not one more, with those in place; the nearest node first."""
    is_most: bool = True
    """False: perhaps more fit than `fitting`, to say so would have taken too long."""

    @property
    def node(self) -> str | None:
        """The blocking node: the one that comes nearest. None: there is no node at all."""
        nearest = self.explanation.nearest
        return nearest[0].name if nearest else None

    @property
    def words(self) -> str:
        """For people: how many fit, and what the blocking node is short of."""
        text = f"{'' if self.is_most else 'at least '}{self.fitting} of {self.wanted} fit"
        if not self.explanation.nearest:
            return f"{text}: there is no node"
        nearest = self.explanation.nearest[0]
        lacks = "; ".join(finding.words for finding in nearest.findings)
        return f"{text}; node {nearest.name} comes nearest to one more: {lacks}"


class Undecided(msgspec.Struct, frozen=True):
    """To say whether they fit would take longer than was allowed."""

    steps: int
    """Spent."""


class MostThatFit(msgspec.Struct, frozen=True):
    """How many pods of a kind fit: `at_least` surely, `at_most` perhaps."""

    at_least: int
    at_most: int

    @property
    def is_exact(self) -> bool:
        return self.at_least == self.at_most
