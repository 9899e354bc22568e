"""Resizes a pool by its load, at the expense of another: the dynamic story of the specification.

It grows at once and shrinks with patience: who serves people must not wait, who works in the
background may. It does not shrink to where it would have to grow again. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dovetail.node.plugins.common.roles import Adjuster, Pool


class Load(NamedTuple):
    use: float
    """Of the time of the CPUs that the pool's containers share, from 0 to 1."""
    cpus: int
    """How many these are."""
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
    """`sizes`: those that the pools have now."""
    if _short(rule, load):
        return Decision(_shifted(rule, pools, sizes, rule.step), 0)
    if load.use >= rule.shrink_below or load.cpus <= rule.step:
        return Decision({}, 0)
    fewer = load.cpus - rule.step
    if _short(rule, Load(load.use * load.cpus / fewer, fewer, load.pressure)):
        return Decision({}, 0)
    if quiet + 1 < rule.patience:
        return Decision({}, quiet + 1)
    return Decision(_shifted(rule, pools, sizes, -rule.step), 0)


def _short(rule: Adjuster, load: Load) -> bool:
    """Pressure is that of the whole node: a pool that is idle is not what causes it."""
    strained = load.pressure > rule.pressure_above and load.use >= rule.shrink_below
    return load.use > rule.grow_above or strained


def _shifted(
    rule: Adjuster, pools: Mapping[str, Pool], sizes: Mapping[str, int], by: int
) -> dict[str, int]:
    """As much of that as the bounds of both allow."""
    up, down = (rule.pool, rule.donor) if by > 0 else (rule.donor, rule.pool)
    largest = pools[up].max
    room = abs(by) if largest is None else largest - sizes[up]
    count = min(abs(by), room, sizes[down] - pools[down].min)
    return {up: sizes[up] + count, down: sizes[down] - count} if count > 0 else {}
