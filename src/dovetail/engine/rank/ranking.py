"""Ranking, the value: policies with weights, and the requests that the fleet is there for."""

from __future__ import annotations

import msgspec

from dovetail.engine.rank.pressure.watch import PressureWatch
from dovetail.engine.rank.typical import NOTHING_TYPICAL, Typical

FIRST_FIT = "first-fit"


class Ranking(msgspec.Struct, frozen=True, eq=False):
    terms: tuple[tuple[str, int], ...] = ((FIRST_FIT, 1),)
    """Names of policies, each with its weight."""
    typical: Typical = NOTHING_TYPICAL
    watch: PressureWatch | None = None
    """Who keeps the pressure on the fleet; without one it is measured for every request."""

    @property
    def is_plain(self) -> bool:
        """Whether the order is that of the search itself."""
        return all(name == FIRST_FIT for name, _ in self.terms)
