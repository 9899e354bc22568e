"""First fit decreasing, on groups of nodes that are alike: the solver's quick yes.

Kinds come in turn, each as many on a node as it takes. Nodes that the fewest other kinds want come
first, and of these the fullest. Each kind splits a group into three at most (nodes that took all
they can, one that took the rest, nodes that took none), so the work is kinds times groups, however
many pods and nodes there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from dovetail.podfit.packing.solver.patterns import NodePatterns
from dovetail.podfit.packing.solver.problem import Counts, Packing, PackingProblem


class NodeGroup(msgspec.Struct, gc=False):
    """Nodes of a class that have the same pattern."""

    node_class: int
    size: int
    free: Sequence[int]
    pattern: Counts


def first_fit(
    problem: PackingProblem, patterns: Sequence[NodePatterns], order: Iterable[int]
) -> tuple[Packing, Counts]:
    """Pods placed kind by kind, in this order, and how many are left of each."""
    groups = [
        NodeGroup(at, each.size, each.free, (0,) * len(problem.counts))
        for at, each in enumerate(problem.classes)
    ]
    left = list(problem.counts)
    for kind in order:
        left[kind] = _place(kind, left[kind], groups, patterns)
    found: list[list[tuple[Counts, int]]] = [[] for _ in problem.classes]
    for group in groups:
        if any(group.pattern):
            found[group.node_class].append((group.pattern, group.size))
    return tuple(map(tuple, found)), tuple(left)


def _place(kind: int, count: int, groups: list[NodeGroup], patterns: Sequence[NodePatterns]) -> int:
    """Put so many of a kind on nodes; how many are left."""
    usable = []
    for group in groups:
        of = patterns[group.node_class]
        if of.caps[kind]:
            room = of.room(kind, group.free, of.present(group.pattern))
            if room:
                usable.append((len(of.of.kinds), not any(group.pattern), room, group))
    usable.sort(key=lambda each: each[:3])
    for _, _, room, group in usable:
        if not count:
            break
        of = patterns[group.node_class]
        full = min(count // room, group.size)
        part = count % room if full < group.size and count < (full + 1) * room else 0
        count -= full * room + part
        for nodes, added in ((full, room), (1, part)):
            if nodes and added:
                pattern = list(group.pattern)
                pattern[kind] += added
                free = of.less(group.free, kind, added)
                groups.append(NodeGroup(group.node_class, nodes, free, tuple(pattern)))
                group.size -= nodes
    groups[:] = [group for group in groups if group.size]
    return count
