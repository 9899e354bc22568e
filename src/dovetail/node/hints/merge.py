"""The merge of the kubelet's topology manager: from each resource's hints to the nodes for all.

The kubelet tries every combination of one hint per resource, and keeps the best: up to (2^n)^r for
r resources on n NUMA nodes. Its order of combinations does not depend on the sequence in which they
are met, so it is enough to know which sets of nodes can come out (`common`), and which of these are
preferred by all (`agreed`). There are at most 2^n sets; resources are folded in one after the
other, each by pairs or, where pairs are too many, by a transform over all sets in n * 2^n steps. So
a merge takes at most r * n * 2^n steps and ends after r folds; `policy.check` bounds n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import msgspec

from dovetail.core.explanation import Reason
from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints import numeric
from dovetail.node.hints.hint import ANYWHERE, Hint, Hints, mask_of
from dovetail.node.hints.policy import TopologyOptions, TopologyPolicy

Distances = Mapping[int, Mapping[int, int]]
Order = Callable[[int], tuple[int, ...]]
"""Tells for a mask how it compares with others: the lowest is the fittest."""


class MergedHint(msgspec.Struct, frozen=True, kw_only=True):
    hint: Hint
    admitted: bool
    why: Reason
    """Why it came out so: one of the tokens of NUMA hints."""
    own: Mapping[str, Hint] = {}
    """By resource, where the policy does not give all resources the same."""

    def of(self, resource: str) -> Hint:
        return self.own.get(resource, self.hint)


def merge(
    policy: TopologyPolicy,
    options: TopologyOptions,
    hints: Mapping[str, Hints],
    nodes: CpuSet,
    distances: Distances,
) -> MergedHint:
    """`hints` by resource; `distances` as a machine tells them, between all of its `nodes`."""
    if policy is TopologyPolicy.NONE:
        return MergedHint(hint=ANYWHERE, admitted=True, why=Reason.NOT_ASKED)
    order = by_distance(distances) if options.prefer_closest_numa_nodes else by_size
    if policy is TopologyPolicy.NUMERIC:
        return _numeric(options, hints, nodes, order)
    lists = [explicit(each) for each in hints.values()]
    if policy is TopologyPolicy.SINGLE_NUMA_NODE:
        lists = [[each for each in one if is_on_one_node(each)] for one in lists]
    best = fittest(lists, mask_of(nodes), order)
    return _judged(policy, best, hints, mask_of(nodes))


def _judged(
    policy: TopologyPolicy, best: Hint | None, hints: Mapping[str, Hints], everywhere: int
) -> MergedHint:
    hint = best or Hint(everywhere, preferred=False)
    if policy is TopologyPolicy.SINGLE_NUMA_NODE and hint.mask == everywhere:
        # Nobody asked for certain nodes.
        hint = Hint(None, preferred=hint.preferred)
    if hint.preferred:
        return MergedHint(hint=hint, admitted=True, why=Reason.ALIGNED)
    if policy is TopologyPolicy.BEST_EFFORT:
        return MergedHint(hint=hint, admitted=True, why=Reason.UNALIGNED)
    if _impossible(hints):
        why = Reason.IMPOSSIBLE
    elif policy is TopologyPolicy.SINGLE_NUMA_NODE:
        why = Reason.NO_SINGLE_NODE
    else:
        why = Reason.NOT_PREFERRED if best else Reason.NO_COMMON_NODE
    return MergedHint(hint=hint, admitted=False, why=why)


def _numeric(
    options: TopologyOptions, hints: Mapping[str, Hints], nodes: CpuSet, order: Order
) -> MergedHint:
    everywhere = Hint(mask_of(nodes), preferred=False)
    if _impossible(hints):
        return MergedHint(hint=everywhere, admitted=False, why=Reason.IMPOSSIBLE)
    lists = {resource: explicit(each) for resource, each in hints.items()}
    own = numeric.best(lists, frozenset(options.align), nodes, order)
    if own is None:
        return MergedHint(hint=everywhere, admitted=False, why=Reason.NOT_NESTED)
    # Masks that are given form a chain, so all of them together are the widest.
    widest = reduce(int.__or__, (each.mask or 0 for each in own.values()), 0)
    together = Hint(widest or None, preferred=all(each.preferred for each in own.values()))
    return MergedHint(hint=together, admitted=True, why=Reason.ALIGNED, own=own)


def explicit(hints: Hints) -> Sequence[Hint]:
    """The hints of a resource, one that says so where it has none."""
    if hints is None:
        return [ANYWHERE]
    # Placed anywhere but never with approval: best-effort lets it pass, the others do not.
    return hints or [Hint(None, preferred=False)]


def _impossible(hints: Mapping[str, Hints]) -> bool:
    return any(each is not None and not each for each in hints.values())


def is_on_one_node(hint: Hint) -> bool:
    return hint.preferred and (hint.mask is None or hint.mask.bit_count() == 1)


def fittest(lists: Sequence[Sequence[Hint]], everywhere: int, order: Order) -> Hint | None:
    """The best that a combination of one hint from each list gives; None if none has a node."""
    if preferred := agreed(lists, everywhere):
        return Hint(min(preferred, key=order), preferred=True)
    possible = common(lists, everywhere)
    if not possible:
        return None
    asked = max((narrowest(each) for each in lists), default=0)

    def away(mask: int) -> tuple[Any, ...]:
        """As many nodes as the greediest resource needs; else rather less, but not much less."""
        size = mask.bit_count()
        return size > asked, abs(size - asked), order(mask)

    return Hint(min(possible, key=away), preferred=False)


def agreed(lists: Sequence[Sequence[Hint]], everywhere: int) -> set[int]:
    """The sets of nodes that every resource prefers, or does not care about."""
    preferred = [{each.mask for each in hints if each.preferred} for hints in lists]
    named = {mask for masks in preferred for mask in masks if mask}
    found = {mask for mask in named if all(mask in one or None in one for one in preferred)}
    return found | {everywhere} if all(None in one for one in preferred) else found


def common(lists: Iterable[Sequence[Hint]], everywhere: int) -> set[int]:
    """The sets of nodes that are left where a hint of each resource overlap."""
    found = {everywhere}
    for left in narrowing(lists, everywhere):
        found = left
    return found - {0}


def narrowing(lists: Iterable[Sequence[Hint]], everywhere: int) -> Iterator[set[int]]:
    """What is left after each resource; the empty set of nodes is among it where some do not
    overlap."""
    found = {everywhere}
    for hints in lists:
        masks = {everywhere if each.mask is None else each.mask for each in hints}
        found = overlaps(found, masks, everywhere)
        yield found


def overlaps(some: set[int], others: set[int], everywhere: int) -> set[int]:
    """What any of some has in common with any of the others."""
    width = everywhere.bit_length()
    if len(some) * len(others) <= width << width:
        return {one & other for one in some for other in others}
    # Where pairs are too many: how many pairs contain a set, less those that contain more.
    pairs = [
        one * other for one, other in zip(_above(some, width), _above(others, width), strict=True)
    ]
    for bit in range(width):
        for mask in range(1 << width):
            if not mask >> bit & 1:
                pairs[mask] -= pairs[mask | 1 << bit]
    return {mask for mask, count in enumerate(pairs) if count}


def _above(masks: set[int], width: int) -> list[int]:
    """For every mask, how many of these contain it."""
    counts = [int(mask in masks) for mask in range(1 << width)]
    for bit in range(width):
        for mask in range(1 << width):
            if not mask >> bit & 1:
                counts[mask] += counts[mask | 1 << bit]
    return counts


def narrowest(hints: Iterable[Hint]) -> int:
    """The fewest nodes that a hint names."""
    return min((each.mask.bit_count() for each in hints if each.mask is not None), default=0)


def by_size(mask: int) -> tuple[int, ...]:
    return mask.bit_count(), mask


def by_distance(distances: Distances) -> Order:
    def order(mask: int) -> tuple[int, ...]:
        nodes = CpuSet.of_mask(mask)
        # Of sets of equal size the sums compare like the means.
        return len(nodes), sum(distances[a][b] for a in nodes for b in nodes), mask

    return order
