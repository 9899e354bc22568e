"""The merge of hints: 3 resources that could be on any set of nodes, and the literal rules."""

from collections.abc import Mapping
from itertools import islice
from random import Random
from typing import NamedTuple

from tests.node.hints import literal

from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints import Hint, TopologyOptions, TopologyPolicy, merge

from .times import Times

RESOURCES = ("cpu", "memory", "NIC")
ALL = 8
FEW = 5
"""Nodes for which every combination can be tried: 31 sets to the third."""


class Merging(NamedTuple):
    policy: TopologyPolicy
    nodes: int
    fast: Times
    literal: Times | None = None
    """Nothing: it would take minutes."""


def measure(repeats: int = 20) -> list[Merging]:
    found = []
    for policy in (TopologyPolicy.BEST_EFFORT, TopologyPolicy.RESTRICTED, TopologyPolicy.NUMERIC):
        found.append(Merging(policy, FEW, *both(policy, FEW, repeats)))
        found.append(Merging(policy, ALL, fast(policy, ALL, repeats)))
    return found


def fast(policy: TopologyPolicy, count: int, repeats: int) -> Times:
    times = Times()
    nodes, hints, distances = question(count)
    for _ in range(repeats):
        with times.one():
            merge(policy, TopologyOptions(), hints, nodes, distances)
    return times


def both(policy: TopologyPolicy, count: int, repeats: int) -> tuple[Times, Times]:
    nodes, hints, distances = question(count)
    times = Times()
    for _ in range(3):
        with times.one():
            admitted, given = literal.merge(policy, TopologyOptions(), hints, nodes, distances)
    found = merge(policy, TopologyOptions(), hints, nodes, distances)
    assert (admitted, given) == (found.admitted, {each: found.of(each) for each in RESOURCES})
    return fast(policy, count, repeats), times


def question(
    count: int,
) -> tuple[CpuSet, Mapping[str, tuple[Hint, ...]], Mapping[int, Mapping[int, int]]]:
    """Every set of nodes for every resource. No two prefer the same one: that is the slow way."""
    nodes = CpuSet(range(count))
    masks = list(range(1, 1 << count))
    Random(1).shuffle(masks)
    third = len(masks) // len(RESOURCES)
    hints = {
        name: tuple(
            Hint(mask, preferred=mask in set(islice(masks, at * third, (at + 1) * third)))
            for mask in sorted(masks)
        )
        for at, name in enumerate(RESOURCES)
    }
    distances = {one: {other: 10 + 10 * (one != other) for other in nodes} for one in nodes}
    return nodes, hints, distances
