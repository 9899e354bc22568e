"""The distributed order once more: every way written out and scored, whatever it takes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from math import ceil, sqrt

from dovetail.node.common.cpus import CpuSet
from dovetail.node.plugins.cpu.assign.packed import take_packed
from dovetail.node.topology import Machine

Counts = dict[int, int]
"""CPUs by node."""


def distributed(
    machine: Machine, free: CpuSet, wanted: int, group: int, *, by_socket: bool = False
) -> CpuSet:
    count = {node: len(there & free) for node, there in machine.by_numa.items() if there & free}
    nodes = in_order(machine, free, count)
    groups = wanted // group
    per_node = ceil(ceil(len(machine.cpus) / group) / len(machine.by_numa))
    for size in range(ceil(groups / per_node), min(groups, len(nodes)) + 1):
        ways = [
            way
            for chosen in combinations(nodes, size)
            for way in shares(count, chosen, wanted, group, capped=by_socket)
        ]
        if ways:
            best = min(
                ways,
                key=lambda way: (
                    by_socket and len(machine.sockets_of(way)) > 1,
                    score(count, way),
                ),
            )
            share = even_share(count, tuple(best), wanted, group, capped=by_socket)
            return taken(machine, free, best, share, group)
    return take_packed(machine, free, wanted)


def in_order(machine: Machine, free: CpuSet, count: Counts) -> list[int]:
    """Fuller sockets first, in these fuller nodes; of a machine with nodes within sockets."""
    socket = {node: min(machine.sockets_of([node])) for node in count}
    size = {each: len(there & free) for each, there in machine.by_socket.items()}
    if len(machine.by_socket) == len(machine.by_numa):
        return sorted(count, key=lambda node: (count[node], node))
    return sorted(count, key=lambda node: (size[socket[node]], socket[node], count[node], node))


def even_share(
    count: Counts, chosen: tuple[int, ...], wanted: int, group: int, *, capped: bool
) -> int:
    """`capped`: what the node with the fewest can give, if that is less."""
    share = wanted // len(chosen) // group * group
    fewest = min(count[node] // group * group for node in chosen)
    return min(share, fewest) if capped else share


def shares(
    count: Counts, chosen: tuple[int, ...], wanted: int, group: int, *, capped: bool = False
) -> Iterator[Counts]:
    """An equal share for each, and the rest dealt to some: to more of them first."""
    share = even_share(count, chosen, wanted, group, capped=capped)
    rest = wanted - share * len(chosen)
    if any(count[node] < share for node in chosen):
        return
    picks = sorted(product((True, False), repeat=len(chosen)), key=lambda pick: -sum(pick))
    for pick in picks:
        lucky = [node for node, picked in zip(chosen, pick, strict=True) if picked]
        if bool(lucky) != bool(rest) or any(count[node] - share < group for node in lucky):
            continue
        counts, left = dict.fromkeys(chosen, share), rest
        for node in lucky * (rest // group + 1):
            if left and count[node] - counts[node] >= group:
                counts[node] += group
                left -= group
        if not left:
            yield counts


def score(count: Counts, way: Counts) -> float:
    left = [count[node] - way.get(node, 0) for node in count]
    mean = round(sum(left) / len(left) + 1e-9, 3)
    return round(sqrt(sum((each - mean) ** 2 for each in left) / len(left)) + 1e-9, 3)


def taken(machine: Machine, free: CpuSet, way: Counts, share: int, group: int) -> CpuSet:
    found = CpuSet()
    for node, amount in way.items():
        there = machine.by_numa[node] & free
        part = take_packed(machine, there, share)
        for _ in range((amount - share) // group):
            part |= take_packed(machine, there - part, group)
        found |= part
    return found
