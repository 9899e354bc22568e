"""A verdict for every host on a request: whether it fits there now, would without others, or never.

Fit tests of the whole fleet, as it is and as it would be with nothing in use, within a budget of
time; what was not decided in time stays unknown. The view of verdicts on the map calls it.
"""

from __future__ import annotations

import numpy as np

from dovetail.core.columns import Numbers
from dovetail.core.request import Request
from dovetail.engine import Snapshot
from dovetail.engine.explain import Work, fitting
from dovetail.service.time_budget import OutOfTime, TimeBudget
from dovetail.telemetry.phases import phase

FITS, NOT_NOW, NEVER, UNKNOWN = range(4)


async def verdicts(snapshot: Snapshot, request: Request, seconds: float) -> tuple[Numbers, bool]:
    """By tree, and whether all were decided; the snapshot has to be held meanwhile."""
    found = np.full(snapshot.tree_size.size, UNKNOWN, np.int32)
    budget = TimeBudget(seconds)
    try:
        with phase("explain"):
            await budget.run(decide(snapshot, request, found, FITS))
            await budget.run(decide(snapshot.without_usage(), request, found, NOT_NOW))
    except OutOfTime:
        return found, False
    found[found == UNKNOWN] = NEVER
    return found, True


def decide(snapshot: Snapshot, request: Request, found: Numbers, verdict: int) -> Work[None]:
    """Give the verdict to those trees without one that the request fits."""
    for some in fitting(snapshot, request):
        if some is None:
            yield
        else:
            found[some[found.take(some) == UNKNOWN]] = verdict
