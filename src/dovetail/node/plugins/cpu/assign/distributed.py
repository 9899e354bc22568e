"""The distributed order: an even share from each of as few NUMA nodes as possible.

CPUs come in groups (of a core's threads, or of one). What does not divide evenly is dealt out group
by group to some of the nodes, such that what stays free is as even over the machine as it can be.
Where sockets count (`by_socket`), nodes of one socket come before any others, and an even share is
no more than each of them has.

As in the kubelet this tries all sets of so many nodes, and of nodes for the remainder: exponential
in NUMA nodes, of which machines have few. It ends at the first number of nodes that will do, or
falls back to the packed order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations, cycle
from math import floor, sqrt
from typing import NamedTuple

from dovetail.node.common.cpus import CpuSet
from dovetail.node.plugins.cpu.assign.packed import NotEnough, numa_order, take_packed
from dovetail.node.topology import Machine

Take = Callable[[Machine, CpuSet, int], CpuSet]


class Distribution(NamedTuple):
    balance: float
    """How uneven the free CPUs would be over the nodes."""
    nodes: tuple[int, ...]
    share: int
    """Of each node."""
    extra: tuple[int, ...]
    """Those of the nodes that give the remainder."""
    remainder: int = 0


def take_distributed(
    machine: Machine,
    free: CpuSet,
    wanted: int,
    group: int = 1,
    *,
    by_socket: bool = False,
    take: Take = take_packed,
) -> CpuSet:
    """`take`: how CPUs of one node are picked."""
    if wanted > len(free):
        raise NotEnough(wanted, free)
    if wanted == 0 or wanted % group:
        return take(machine, free, wanted)
    per_node = {node: cpus & free for node, cpus in machine.by_numa.items() if cpus & free}
    sizes = {node: len(cpus) for node, cpus in per_node.items()}
    order = numa_order(machine, free)

    def rank(plan: Distribution) -> tuple[bool, float]:
        return by_socket and len(machine.sockets_of(plan.nodes)) > 1, plan.balance

    for count in _counts(machine, len(order), wanted // group, group):
        plans = [
            plan
            for nodes in combinations(order, count)
            for plan in _plans(sizes, nodes, wanted, group, capped=by_socket)
        ]
        if plans:
            # The first of those that are equally even.
            return _taken(machine, per_node, min(plans, key=rank), group, take)
    return take(machine, free, wanted)


def _counts(machine: Machine, usable: int, groups: int, group: int) -> range:
    """How many nodes it may take: from what whole ones would give to one group from each."""
    nodes = sum(1 for cpus in machine.by_numa.values() if cpus)
    per_node = _up(_up(len(machine.cpus), group), nodes)
    return range(_up(groups, per_node), min(groups, usable) + 1)


def _plans(
    sizes: Mapping[int, int], nodes: tuple[int, ...], wanted: int, group: int, *, capped: bool
) -> Iterator[Distribution]:
    share = wanted // len(nodes) // group * group
    fewest = min(sizes[node] for node in nodes)
    if capped:
        share = min(share, fewest // group * group)
    if fewest < share:
        return
    remainder = wanted - share * len(nodes)
    left = {node: size - share * (node in nodes) for node, size in sizes.items()}
    if not remainder:
        yield Distribution(_unevenness(left.values()), nodes, share, ())
        return
    able = [node for node in nodes if left[node] >= group]
    for count in range(len(able), 0, -1):
        for extra in combinations(able, count):
            if sum(left[node] // group for node in extra) * group >= remainder:
                after = dict(left)
                for node in _dealt(after, extra, remainder, group):
                    after[node] -= group
                yield Distribution(_unevenness(after.values()), nodes, share, extra, remainder)


def _dealt(
    left: Mapping[int, int], extra: Sequence[int], remainder: int, group: int
) -> Iterator[int]:
    """The nodes in turn, each as long as it has a group left. `left` is looked at as it goes."""
    for node in cycle(extra):
        if not remainder:
            return
        if left[node] >= group:
            remainder -= group
            yield node


def _taken(
    machine: Machine,
    free: Mapping[int, CpuSet],
    plan: Distribution,
    group: int,
    take: Take,
) -> CpuSet:
    left = dict(free)
    taken = CpuSet()
    for node in plan.nodes:
        found = take(machine, left[node], plan.share)
        left[node], taken = left[node] - found, taken | found
    sizes = {node: len(cpus) for node, cpus in left.items()}
    for node in _dealt(sizes, plan.extra, plan.remainder, group):
        found = take(machine, left[node], group)
        left[node], taken = left[node] - found, taken | found
        sizes[node] -= group
    return taken


def _unevenness(numbers: Collection[int]) -> float:
    """The standard deviation. Rounded, so that what is equal but for rounding is equal."""
    mean = _rounded(sum(numbers) / len(numbers))
    return _rounded(sqrt(sum((each - mean) ** 2 for each in numbers) / len(numbers)))


def _rounded(value: float) -> float:
    """To three decimals, halves up."""
    return floor(value * 1000 + 0.5) / 1000


def _up(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)
