"""Divides CPUs among pools, and divides them anew with as little movement as possible. Pure.

A pool that is too large gives, one that is too small is given; what nobody wants is shared. Of the
ways to do that, whole cores go together, and a pool that is spread evenly over NUMA nodes stays so.
CPUs wander to a later pool from the upper end and to an earlier one from the lower end, so pools
stay in the order of the file and what is done can be undone. Greedy, core by core: each step moves
at least one CPU that is to move, so there are at most as many steps as CPUs that move.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dovetail.node.common.cpus import CpuSet
from dovetail.node.plugins.common.roles import SHARED, CpuPool
from dovetail.node.topology import Machine

Division = Mapping[str, CpuSet]
"""The CPUs of each pool, of the shared one too. Each CPU that is not reserved is in one."""


class CpuMove(NamedTuple):
    giver: str
    receiver: str
    cpus: CpuSet


def divide(
    machine: Machine,
    pools: Mapping[str, CpuPool],
    sizes: Mapping[str, int],
    before: Division,
    *,
    allocatable: CpuSet,
    held: CpuSet,
) -> Division:
    """The pools with these sizes. `held` CPUs are somebody's own: others are moved first."""
    dividing = PoolDivider(machine, pools, _listed(allocatable, pools, before), held)
    now = dividing.now
    for receiver in [name for name in sizes if len(now[name]) < sizes[name]]:
        for giver in [*(name for name in sizes if len(now[name]) > sizes[name]), SHARED]:
            spare = len(now[giver]) - sizes.get(giver, 0)
            dividing.give(giver, receiver, min(spare, sizes[receiver] - len(now[receiver])))
    for giver in sizes:
        dividing.give(giver, SHARED, len(now[giver]) - sizes[giver])
    return now


def moves(before: Division, after: Division) -> list[CpuMove]:
    """Who gives what to whom, in the order of the pools."""
    found = (
        CpuMove(giver, receiver, before[giver] & after[receiver])
        for giver in before
        for receiver in after
        if giver != receiver
    )
    return [move for move in found if move.cpus]


def stepped(
    pools: Mapping[str, CpuPool], now: Mapping[str, int], wanted: Mapping[str, int], spare: int
) -> dict[str, int]:
    """Sizes on the way to what is wanted: no pool changes by more than its ramp.

    `spare`: CPUs that no sized pool has.
    """
    sizes = {}
    for name, size in wanted.items():
        ramp = pools[name].ramp or abs(size - now[name])
        sizes[name] = min(max(size, now[name] - ramp), now[name] + ramp)
    spare += sum(now[name] - size for name, size in sizes.items() if size < now[name])
    for name, size in sizes.items():
        if size > now[name]:
            sizes[name] = now[name] + min(size - now[name], spare)
            spare -= sizes[name] - now[name]
    return sizes


def _listed(
    allocatable: CpuSet, pools: Mapping[str, CpuPool], before: Division
) -> dict[str, CpuSet]:
    """Pools whose CPUs are listed have them; the others, what is left of what they had."""
    taken = CpuSet(cpu for pool in pools.values() for cpu in pool.cpus or ())
    now = {
        name: pool.cpus
        if pool.cpus is not None
        else (before.get(name, CpuSet()) - taken) & allocatable
        for name, pool in pools.items()
    }
    now[SHARED] = allocatable - {cpu for cpus in now.values() for cpu in cpus}
    return now


class PoolDivider:
    """Pools on the way from one division to the next."""

    def __init__(
        self, machine: Machine, pools: Mapping[str, CpuPool], now: dict[str, CpuSet], held: CpuSet
    ) -> None:
        self.machine, self.pools, self.now, self.held = machine, pools, now, held
        self.order = [*pools, SHARED]

    def give(self, giver: str, receiver: str, count: int) -> None:
        """Let so many CPUs go from one to the other, core by core."""
        sign = 1 if self.order.index(receiver) < self.order.index(giver) else -1
        while count > 0:
            core = min(
                self.machine.cores_of(self.now[giver]),
                key=lambda core: (
                    *self.cost(giver, receiver, core, count),
                    self.imbalance(giver, receiver, core),
                    sign * core,
                ),
            )
            threads = sorted(
                self.machine.by_core[core] & self.now[giver],
                key=lambda cpu: (cpu in self.held, sign * cpu),
            )
            given = CpuSet(threads[:count])
            self.now[giver] -= given
            self.now[receiver] |= given
            count -= len(given)

    def cost(self, giver: str, receiver: str, core: int, count: int) -> tuple[int, bool, bool, int]:
        """What speaks against this core: that it is held, or would be split, or stays split."""
        whole = self.machine.by_core[core]
        threads = whole & self.now[giver]
        fits = len(threads) <= count
        heals = fits and threads < whole and whole <= threads | self.now[receiver]
        return (
            len(threads & self.held),
            not fits,
            not heals,
            -len(threads) if fits else len(threads),
        )

    def imbalance(self, giver: str, receiver: str, core: int) -> int:
        """How little it suits the spread of both to move something from the core's NUMA node."""
        node = self.machine.by_numa[self.machine.cpu(core).numa]
        return self.weight(receiver, node) - self.weight(giver, node)

    def weight(self, name: str, node: CpuSet) -> int:
        if name == SHARED:
            return 0
        count = len(self.now[name] & node)
        return count if self.pools[name].spread == "even" else -count
