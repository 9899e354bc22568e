"""Explains why resources were, or were not, admitted together on NUMA nodes.

The gate asks when it refuses a pod; `dovetail agent explain` shows it. What is counted are sets of
NUMA nodes: those that are left after the hints of each resource, and those that the policy allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from dovetail.core.explanation import (
    Counted,
    Explanation,
    Finding,
    PlaceFindings,
    Reason,
    Stage,
    Verdict,
)
from dovetail.core.explanation_text import listed
from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints.hint import Hint, Hints, mask_of
from dovetail.node.hints.merge import (
    Distances,
    MergedHint,
    agreed,
    by_size,
    explicit,
    is_on_one_node,
    merge,
    narrowing,
)
from dovetail.node.hints.policy import TopologyOptions, TopologyPolicy

SHOWN = 4
"""Sets of nodes that are listed for a resource."""


class OfferedNodes(msgspec.Struct, frozen=True, kw_only=True):
    """Where a resource could be: lists of nodes as 0-1, the fewest nodes first."""

    preferred: tuple[str, ...] = ()
    possible: tuple[str, ...] = ()
    """Not preferred."""
    anywhere: bool = False
    """Any node would do as well."""

    @property
    def nowhere(self) -> bool:
        return not (self.preferred or self.possible or self.anywhere)


def explain(
    policy: TopologyPolicy,
    options: TopologyOptions,
    hints: Mapping[str, Hints],
    nodes: CpuSet,
    distances: Distances,
) -> Explanation:
    """What `merge` answers to the same question, and why.

    Hints say what is free now: that something can never be, nobody knows here. Findings that are
    not met are those of resources that cannot be admitted together: without any one of them, the
    others could.
    """
    merged = merge(policy, options, hints, nodes, distances)
    offers = {resource: _offered(hints[resource]) for resource in sorted(hints)}
    conflict: tuple[str, ...] = ()
    cause = merged.why
    if merged.admitted:
        summary = _given(merged)
    else:
        conflict = _conflict(policy, options, hints, nodes, distances)
        narrowed = {resource: hints[resource] for resource in conflict}
        cause = merge(policy, options, narrowed, nodes, distances).why
        summary = _refusal(conflict, offers, cause)
    funnel = tuple(_funnel(policy, merged, hints, offers, mask_of(nodes)))
    return Explanation(
        verdict=Verdict.FITS if merged.admitted else Verdict.NOT_NOW,
        summary=summary,
        of=Counted.NUMA_NODE_SETS,
        total=2 ** len(nodes) - 1,
        fitting=funnel[-1].left,
        funnel=funnel,
        nearest=(
            PlaceFindings(
                name=None,
                uuid=None,
                fits=merged.admitted,
                findings=tuple(
                    _finding(resource, offered, cause, met=resource not in conflict)
                    for resource, offered in offers.items()
                ),
            ),
        ),
        relaxations=(),
    )


def _finding(resource: str, offered: OfferedNodes, cause: Reason, *, met: bool) -> Finding:
    return Finding(
        reason=Reason.NUMA_HINT if met else cause,
        group=None,
        constraint=resource,
        met=met,
        ever=True,
        provider=None if offered.nowhere else _or(offered.preferred + offered.possible),
        provider_uuid=None,
        words=f"{resource} {_asks(offered, Reason.NUMA_HINT if met else cause)}",
    )


def _funnel(
    policy: TopologyPolicy,
    merged: MergedHint,
    hints: Mapping[str, Hints],
    offers: Mapping[str, OfferedNodes],
    everywhere: int,
) -> Iterator[Stage]:
    """The sets of nodes left after each resource; then those that the policy allows."""
    lists = [explicit(hints[resource]) for resource in offers]
    left = 2 ** everywhere.bit_count() - 1
    if policy is not TopologyPolicy.NONE:
        possible = True
        for (resource, offered), masks in zip(
            offers.items(), narrowing(lists, everywhere), strict=True
        ):
            possible = possible and not offered.nowhere
            left = len(masks - {0}) if possible else 0
            yield Stage(
                reason=Reason.NUMA_HINT,
                group=None,
                constraint=resource,
                left=left,
                words=f"{resource} {_asks(offered, Reason.NUMA_HINT)}",
            )
    yield Stage(
        reason=Reason.NUMA_POLICY,
        group=None,
        constraint=policy.value,
        left=_allowed(policy, merged, lists, everywhere, left),
        words=f"the policy {policy}",
    )


def _allowed(
    policy: TopologyPolicy,
    merged: MergedHint,
    lists: Sequence[Sequence[Hint]],
    everywhere: int,
    left: int,
) -> int:
    """How many sets of nodes the policy could have chosen from."""
    if not merged.admitted:
        return 0
    match policy:
        case TopologyPolicy.NONE:
            return left
        case TopologyPolicy.RESTRICTED:
            return len(agreed(lists, everywhere))
        case TopologyPolicy.SINGLE_NUMA_NODE:
            single = [[each for each in one if is_on_one_node(each)] for one in lists]
            return len(agreed(single, everywhere))
        case _:
            # Best effort takes what there is; numeric chooses for each resource.
            return max(left, 1)


def _refusal(conflict: Sequence[str], offers: Mapping[str, OfferedNodes], cause: Reason) -> str:
    if len(conflict) == 1:
        (resource,) = conflict
        return _single(resource, offers[resource], cause)
    asked = "; ".join(f"{each} {_asks(offers[each], cause)}" for each in conflict)
    return f"{asked}: {TOGETHER[cause].format(_and(conflict))}"


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
    Reason.NO_COMMON_NODE: "no NUMA node serves {}",
    Reason.NOT_PREFERRED: "there are no NUMA nodes that {} prefer",
    Reason.NO_SINGLE_NODE: "no single NUMA node serves {}",
    Reason.NOT_NESTED: "no choice of NUMA nodes aligns {}",
}


def _single(resource: str, offered: OfferedNodes, cause: Reason) -> str:
    if cause is Reason.IMPOSSIBLE:
        return f"{resource} fits on no set of NUMA nodes: too little of it is free"
    places = _or(offered.preferred + offered.possible)
    if cause is Reason.NO_SINGLE_NODE and not offered.anywhere:
        return f"{resource} fits on no single NUMA node with preference: it could be on {places}"
    return (
        f"{resource} could be on {places}, but prefers none of that: a busy machine would have it "
        "spread over more NUMA nodes than it needs"
    )


def _asks(offered: OfferedNodes, cause: Reason) -> str:
    """What the policy looks at."""
    if offered.nowhere:
        return "fits on no set of NUMA nodes"
    if cause is Reason.NO_SINGLE_NODE:
        return f"prefers {_or([each for each in offered.preferred if each.isdecimal()])}"
    if cause is Reason.NOT_PREFERRED:
        return f"prefers {_or(offered.preferred)}"
    return f"fits on {_or(offered.preferred + offered.possible)}"


def _given(merged: MergedHint) -> str:
    if merged.why is Reason.NOT_ASKED:
        return "nobody was asked: the policy is none"
    where = _or([] if merged.hint.nodes is None else [str(merged.hint.nodes)])
    if merged.why is Reason.UNALIGNED:
        return f"{where}, though not all resources prefer that: the policy is best-effort"
    return f"within {where}, each on its own" if merged.own else f"{where}, as all prefer"


def _offered(hints: Hints) -> OfferedNodes:
    if hints is None:
        return OfferedNodes(anywhere=True)
    ascending = sorted(
        {each for each in hints if each.mask}, key=lambda each: by_size(each.mask or 0)
    )
    return OfferedNodes(
        preferred=tuple(str(each.nodes) for each in ascending if each.preferred),
        possible=tuple(str(each.nodes) for each in ascending if not each.preferred),
        anywhere=any(each.mask is None for each in hints),
    )


def _or(sets: Sequence[str]) -> str:
    if not sets:
        return "any node"
    text = listed(sets, SHOWN, " or ", " or ")
    return f"node {text}" if all(each.isdecimal() for each in sets) else f"nodes {text}"


def _and(names: Sequence[str]) -> str:
    return "both" if len(names) == 2 else "all of them"
