"""A controller of pool sizes by load, with hysteresis; `PoolWatch` asks it at every look.

It grows at once and shrinks with patience: who serves people must not wait, who works in the
background may. It does not shrink to where it would have to grow again. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dovetail.node.plugins.common.roles import AdjusterRule, CpuPool


class PoolLoad(NamedTuple):
    use: float
    """Of the time of the CPUs that the pool's containers share, from 0 to 1."""
    cpus: int
    """How many these are."""
    pressure: float
    """Percent of time in which something on the node waited for a CPU."""


class PoolAdjustment(NamedTuple):
    sizes: Mapping[str, int]
    """Those that change."""
    quiet: int
    """Looks in a row at which the pool had more than it needs."""


def adjust(
    rule: AdjusterRule,
    pools: Mapping[str, CpuPool],
    sizes: Mapping[str, int],
    load: PoolLoad,
    quiet: int,
) -> PoolAdjustment:
    """`sizes`: those that the pools have now."""
    if _short(rule, load):
        return PoolAdjustment(_shifted(rule, pools, sizes, rule.step), 0)
    if load.use >= rule.shrink_below or load.cpus <= rule.step:
        return PoolAdjustment({}, 0)
    fewer = load.cpus - rule.step
    if _short(rule, PoolLoad(load.use * load.cpus / fewer, fewer, load.pressure)):
        return PoolAdjustment({}, 0)
    if quiet + 1 < rule.patience:
        return PoolAdjustment({}, quiet + 1)
    return PoolAdjustment(_shifted(rule, pools, sizes, -rule.step), 0)


def _short(rule: AdjusterRule, load: PoolLoad) -> bool:
    """Pressure is that of the whole node: a pool that is idle is not what causes it."""
    strained = load.pressure > rule.pressure_above and load.use >= rule.shrink_below
    return load.use > rule.grow_above or strained


def _shifted(
    rule: AdjusterRule, pools: Mapping[str, CpuPool], sizes: Mapping[str, int], by: int
) -> dict[str, int]:
    """As much of that as the bounds of both allow."""
    up, down = (rule.pool, rule.donor) if by > 0 else (rule.donor, rule.pool)
    largest = pools[up].max
    room = abs(by) if largest is None else largest - sizes[up]
    count = min(abs(by), room, sizes[down] - pools[down].min)
    return {up: sizes[up] + count, down: sizes[down] - count} if count > 0 else {}
