"""Why resources were not admitted together, for a person who can do something about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints.hint import Hints
from dovetail.node.hints.merge import Cause, Distances, MergedHint, by_size, merge
from dovetail.node.hints.policy import TopologyOptions, TopologyPolicy

SHOWN = 4
"""Sets of nodes that are listed for a resource; whoever wants all finds them in `wishes`."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a resource asked for: lists of nodes as 0-1, the fewest nodes first."""

    preferred: tuple[str, ...] = ()
    possible: tuple[str, ...] = ()
    """Not preferred."""
    anywhere: bool = False
    """Any node would do as well."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    cause: Cause
    words: str
    conflict: tuple[str, ...] = ()
    """Resources that cannot be admitted together: without any one of them, the others could."""
    wishes: Mapping[str, Wish] = {}


def explain(
    policy: TopologyPolicy,
    options: TopologyOptions,
    hints: Mapping[str, Hints],
    nodes: CpuSet,
    distances: Distances,
) -> Explanation:
    """What `merge` answers to the same question, and why."""
    merged = merge(policy, options, hints, nodes, distances)
    wishes = {resource: _wish(hints[resource]) for resource in sorted(hints)}
    if merged.admitted:
        return Explanation(cause=merged.why, words=_given(merged), wishes=wishes)
    conflict = _conflict(policy, options, hints, nodes, distances)
    narrowed = {resource: hints[resource] for resource in conflict}
    cause = merge(policy, options, narrowed, nodes, distances).why
    if len(conflict) == 1:
        (resource,) = conflict
        words = _single(resource, wishes[resource], cause)
    else:
        asked = "; ".join(f"{each} {_asks(wishes[each], cause)}" for each in conflict)
        words = f"{asked}: {TOGETHER[cause].format(_and(conflict))}"
    return Explanation(cause=cause, words=words, conflict=conflict, wishes=wishes)


def _conflict(
    policy: TopologyPolicy,
    options: TopologyOptions,
    hints: Mapping[str, Hints],
    nodes: CpuSet,
    distances: Distances,
) -> tuple[str, ...]:
    """A smallest part of the resources that is refused by itself."""
    left = dict(sorted(hints.items()))
    for resource in tuple(left):
        others = {name: each for name, each in left.items() if name != resource}
        if not merge(policy, options, others, nodes, distances).admitted:
            left = others
    return tuple(left)


TOGETHER = {
    Cause.NO_COMMON_NODE: "no NUMA node serves {}",
    Cause.NOT_PREFERRED: "there are no NUMA nodes that {} prefer",
    Cause.NO_SINGLE_NODE: "no single NUMA node serves {}",
    Cause.NOT_NESTED: "no choice of NUMA nodes aligns {}",
}


def _single(resource: str, wish: Wish, cause: Cause) -> str:
    if cause is Cause.IMPOSSIBLE:
        return f"{resource} fits on no set of NUMA nodes: too little of it is free"
    places = _or(wish.preferred + wish.possible)
    if cause is Cause.NO_SINGLE_NODE and not wish.anywhere:
        return f"{resource} fits on no single NUMA node with preference: it could be on {places}"
    return (
        f"{resource} could be on {places}, but prefers none of that: a busy machine would have it "
        "spread over more NUMA nodes than it needs"
    )


def _asks(wish: Wish, cause: Cause) -> str:
    """What the policy looks at."""
    if cause is Cause.NO_SINGLE_NODE:
        return f"prefers {_or([each for each in wish.preferred if each.isdecimal()])}"
    if cause is Cause.NOT_PREFERRED:
        return f"prefers {_or(wish.preferred)}"
    return f"fits on {_or(wish.preferred + wish.possible)}"


def _given(merged: MergedHint) -> str:
    if merged.why is Cause.NOT_ASKED:
        return "nobody was asked: the policy is none"
    where = _or([] if merged.hint.nodes is None else [str(merged.hint.nodes)])
    if merged.why is Cause.UNALIGNED:
        return f"{where}, though not all resources prefer that: the policy is best-effort"
    return f"within {where}, each on its own" if merged.own else f"{where}, as all prefer"


def _wish(hints: Hints) -> Wish:
    if hints is None:
        return Wish(anywhere=True)
    ascending = sorted(
        {each for each in hints if each.mask}, key=lambda each: by_size(each.mask or 0)
    )
    return Wish(
        preferred=tuple(str(each.nodes) for each in ascending if each.preferred),
        possible=tuple(str(each.nodes) for each in ascending if not each.preferred),
        anywhere=any(each.mask is None for each in hints),
    )


def _or(sets: Sequence[str]) -> str:
    if not sets:
        return "any node"
    more = len(sets) - SHOWN
    listed = " or ".join([*sets[:SHOWN], *([f"{more} more"] if more > 0 else [])])
    return f"node {listed}" if all(each.isdecimal() for each in sets) else f"nodes {listed}"


def _and(names: Sequence[str]) -> str:
    return "both" if len(names) == 2 else "all of them"
