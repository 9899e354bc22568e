"""Which sizes pools should have: from the file of roles, or from who set them since. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dovetail.node.plugins.common.role_checks import out_of_bounds
from dovetail.node.plugins.common.roles import CpuPool
from dovetail.node.plugins.cpu.pools import stepped
from dovetail.node.plugins.cpu.state import Cpus, CpuState


def remembered(cpus: Cpus, state: CpuState) -> CpuState:
    """What was set since stays, unless the file says something else than it did, or forbids it."""
    pools = cpus.book.pools
    declared = {name: pool.size for name, pool in pools.items() if pool.size is not None}
    wanted = {
        name: size
        if size != state.declared.get(name) or name not in state.wanted
        else bounded(pools[name], state.wanted[name])
        for name, size in declared.items()
    }
    if sum(wanted.values()) > available(cpus):
        wanted = declared
    return msgspec.structs.replace(state, declared=declared, wanted=wanted)


def bounded(pool: CpuPool, size: int) -> int:
    return max(pool.min, size if pool.max is None else min(size, pool.max))


def next_sizes(cpus: Cpus, state: CpuState) -> Mapping[str, int]:
    """Those of the next step. A pool that is new starts as it should be."""
    now = {name: len(state.pools.get(name, ())) or size for name, size in state.wanted.items()}
    return stepped(cpus.book.pools, now, state.wanted, available(cpus) - sum(now.values()))


def available(cpus: Cpus) -> int:
    """How many CPUs there are for pools that have a size."""
    return len(cpus.allocatable) - sum(len(pool.cpus or ()) for pool in cpus.book.pools.values())


def faults(cpus: Cpus, wanted: Mapping[str, int]) -> list[str]:
    """What speaks against these sizes."""
    pools = cpus.book.pools
    found = []
    for name, size in wanted.items():
        if name not in pools:
            found.append(f"there is no pool {name!r}; there are {', '.join(pools) or 'none'}")
        elif words := out_of_bounds(pools[name], size):
            found.append(f"pool {name}: {words}")
    if not found and sum(wanted.values()) > available(cpus):
        total = sum(wanted.values())
        found.append(f"the sizes add up to {total} CPUs; there are {available(cpus)}")
    return found
