"""Budget of an HPA answer: how much may be tried, counted and not timed, so that it can be
repeated."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


def go_on() -> None:
    """Nobody wants to stop."""


class HpaBudget(msgspec.Struct, frozen=True, kw_only=True):
    """Where it ends, answers say so: `undecided` clusters are refused, scores and sets of apps are
    marked as not the best, or not all, that there may be."""

    steps: int = 20_000
    """Of the packing solver, for one question: whether these pods fit."""
    all_steps: int = 300_000
    """For all shapes of a fleet together, shared out evenly: what one does not need is for those
    after it. Whether an app fits alone is asked all the same, with `least_steps`; beyond
    that, no more sets of apps and of options are looked at."""
    least_steps: int = 1_000
    questions: int = 2_000
    """For one shape of clusters: which sets of apps fit."""
    option_questions: int = 400
    """For one set of apps on one shape: which of their options fit."""
    sets: int = 64
    """Of apps that fit together, for one contended cluster."""
    check: Callable[[], None] = go_on
    """Called before each question; raises if the answer is not wanted any more."""
