"""Semantic checks of a role file: what contradicts itself, or does not suit this machine."""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.node.common.cpus import CpuSet
from dovetail.node.plugins.common.cpu_policy_options import conflict, unsuited
from dovetail.node.plugins.common.roles import SHARED, AdjusterRule, CpuPool, PodRole, RoleBook
from dovetail.node.topology import Machine


class RoleFault(Exception):
    """Where, as a path of keys, and what."""

    def __init__(self, where: tuple[str, ...], what: str) -> None:
        super().__init__(what)
        self.where, self.what = where, what


def faults(book: RoleBook) -> Iterator[RoleFault]:
    """What no machine could make right."""
    for name, pool in book.pools.items():
        yield from (RoleFault(("pools", name), what) for what in _of_pool(name, pool))
    for name, role in book.roles.items():
        yield from _of_role(book, name, role)
    if book.adjuster:
        yield from _of_adjuster(book, book.adjuster)


def _of_pool(name: str, pool: CpuPool) -> Iterator[str]:
    if name == SHARED:
        yield f"{SHARED} is what no pool has; it has no table of its own"
    if (pool.cpus is None) == (pool.size is None):
        yield 'needs either cpus = "0-3" or size = 4'
        return
    if pool.cpus is not None:
        if not pool.cpus:
            yield "has no CPUs"
        if pool.max is not None or pool.ramp is not None or pool.min != 1:
            yield "min, max and ramp are for pools with a size"
        return
    if pool.min < 1:
        yield f"min is {pool.min}; containers cannot run on no CPU, so it is at least 1"
    if pool.max is not None and pool.max < pool.min:
        yield f"max is {pool.max}, below min, which is {pool.min}"
    if pool.size is not None and (words := out_of_bounds(pool, pool.size)):
        yield words
    if pool.ramp is not None and pool.ramp < 1:
        yield f"ramp is {pool.ramp}; it is at least 1"


def out_of_bounds(pool: CpuPool, size: int) -> str | None:
    """Why the pool cannot have this size; nothing if it can."""
    if pool.size is None:
        return "its CPUs are listed in the file of roles, so it has no other size"
    if size < pool.min:
        return f"size is {size}, below min, which is {pool.min}"
    if pool.max is not None and size > pool.max:
        return f"size is {size}, above max, which is {pool.max}"
    return None


def _of_role(book: RoleBook, name: str, role: PodRole) -> Iterator[RoleFault]:
    where = ("roles", name)
    if role.cpu.pool != SHARED and role.cpu.pool not in book.pools:
        known = ", ".join([SHARED, *book.pools])
        yield RoleFault(
            (*where, "cpu", "pool"), f"there is no pool {role.cpu.pool!r}; there are {known}"
        )
    for other in role.anti_affinity:
        if other not in book.roles:
            known = ", ".join(book.roles)
            yield RoleFault(
                (*where, "anti_affinity"), f"there is no role {other!r}; there are {known}"
            )
    words = conflict(role.cpu.options, single_numa=role.cpu.numa == "single")
    if words:
        yield RoleFault((*where, "cpu", "options"), words)


def _of_adjuster(book: RoleBook, adjuster: AdjusterRule) -> Iterator[RoleFault]:
    for key in ("pool", "donor"):
        pool = book.pools.get(getattr(adjuster, key))
        if pool is None or pool.size is None:
            yield RoleFault(
                ("adjuster", key), f"{getattr(adjuster, key)!r} is no pool that has a size"
            )
    if adjuster.pool == adjuster.donor:
        yield RoleFault(("adjuster", "donor"), "is the pool itself")
    if not 0 <= adjuster.shrink_below < adjuster.grow_above <= 1:
        yield RoleFault(
            ("adjuster", "shrink_below"),
            f"{adjuster.shrink_below} must be at least 0 and below grow_above, which is "
            f"{adjuster.grow_above} and at most 1",
        )
    for key in ("step", "patience"):
        if getattr(adjuster, key) < 1:
            yield RoleFault(("adjuster", key), "is at least 1")


def misfits(book: RoleBook, machine: Machine) -> Iterator[RoleFault]:
    """What this machine has not."""
    yield from _reserved(book, machine)
    yield from _divided(book, machine)
    for name, role in book.roles.items():
        words = unsuited(role.cpu.options, machine)
        if words:
            yield RoleFault(("roles", name, "cpu", "options"), words)
    for name, nic in book.nics.items():
        if nic.numa is not None and nic.numa not in machine.node_ids:
            yield RoleFault(("nics", name, "numa"), _no_node(nic.numa, machine))


def _reserved(book: RoleBook, machine: Machine) -> Iterator[RoleFault]:
    missing = book.reserved.cpus - machine.online
    if missing:
        yield RoleFault(("reserved", "cpus"), f"CPUs {missing} are not online")
    for node, amount in book.reserved.memory.items():
        where = ("reserved", "memory", str(node))
        if node not in machine.node_ids:
            yield RoleFault(where, _no_node(node, machine))
        elif amount > machine.node(node).memory:
            yield RoleFault(where, f"is {amount}, but node {node} has {machine.node(node).memory}")


def _divided(book: RoleBook, machine: Machine) -> Iterator[RoleFault]:
    """Each CPU in one pool, and enough of them."""
    taken = book.reserved.cpus
    for name, pool in book.pools.items():
        where = ("pools", name, "cpus")
        listed = pool.cpus or CpuSet()
        if listed - machine.online:
            yield RoleFault(where, f"CPUs {listed - machine.online} are not online")
        if listed & taken:
            yield RoleFault(where, f"CPUs {listed & taken} are reserved or in another pool already")
        taken |= listed
    sized = sum(pool.size or 0 for pool in book.pools.values())
    left = len(machine.online - machine.isolated - taken)
    if sized > left:
        yield RoleFault(("pools",), f"their sizes add up to {sized} CPUs; {left} are left for them")


def _no_node(node: int, machine: Machine) -> str:
    return f"there is no NUMA node {node}; there are {machine.node_ids}"
