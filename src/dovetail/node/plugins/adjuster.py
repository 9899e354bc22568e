"""Resizes a pool by its load, at the expense of another: the dynamic story of the specification.

It grows at once and shrinks with patience: who serves people must not wait, who works in the
background may. It does not shrink to where it would have to grow again. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dovetail.node.plugins.roles import Adjuster, Pool


class Load(NamedTuple):
    use: float
    """Of the pool's CPU time, from 0 to 1."""
    pressure: float
    """Percent of time in which something on the node waited for a CPU."""


class Decision(NamedTuple):
    sizes: Mapping[str, int]
    """Those that change."""
    quiet: int
    """Looks in a row at which the pool had more than it needs."""


def adjust(
    rule: Adjuster, pools: Mapping[str, Pool], sizes: Mapping[str, int], load: Load, quiet: int
) -> Decision:
    size = sizes[rule.pool]
    strained = load.pressure > rule.pressure_above and load.use >= rule.shrink_below
    if load.use > rule.grow_above or strained:
        return Decision(_shifted(rule, pools, sizes, rule.step), 0)
    if load.use >= rule.shrink_below or size <= rule.step:
        return Decision({}, 0)
    if load.use * size / (size - rule.step) > rule.grow_above:
        return Decision({}, 0)
    if quiet + 1 < rule.patience:
        return Decision({}, quiet + 1)
    return Decision(_shifted(rule, pools, sizes, -rule.step), 0)


def _shifted(
    rule: Adjuster, pools: Mapping[str, Pool], sizes: Mapping[str, int], by: int
) -> dict[str, int]:
    """As much of that as the bounds of both allow."""
    up, down = (rule.pool, rule.donor) if by > 0 else (rule.donor, rule.pool)
    largest = pools[up].max
    room = abs(by) if largest is None else largest - sizes[up]
    count = min(abs(by), room, sizes[down] - pools[down].min)
    return {up: sizes[up] + count, down: sizes[down] - count} if count > 0 else {}
