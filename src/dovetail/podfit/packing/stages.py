"""Stages: in which order kinds of pods are placed, and which of them have to take turns.

The search over regions goes from stage to stage, which leaves away orders that gain nothing. A kind
looks at another if it wants to be near it or is spread with it. Where a pod is only helped by what
it looks at, that comes first, all of it. Where it may also be hindered, the two are of one stage
and take turns: pods that count against a spread, pods after which one is no more the first of its
group. So are kinds that look at each other in a ring. Sorted by stage, any order in which filters
accept the pods is still one: each pod sees the same of its own stage, all of what can only help,
and nothing less that it looks at.
"""

from __future__ import annotations

from dovetail.podfit.packing.relations import Relations


def stages_of(relations: Relations) -> list[tuple[int, ...]]:
    """The kinds that have relations, in stages."""
    kinds = relations.kinds()
    after = {kind: {kind} for kind in kinds}
    """By kind, what comes before it or with it."""
    for near in relations.near:
        after[near.kind].update(near.wanted)
        if near.is_of_itself:
            for kind in near.wanted:
                after[kind].add(near.kind)
    for spread in relations.spread:
        after[spread.kind].update(spread.counted)
        for kind in spread.counted:
            after[kind].add(spread.kind)
    for middle in kinds:
        for first in kinds:
            if middle in after[first]:
                after[first] |= after[middle]
    # Kinds of a ring come after the same; those that something comes after have fewer before them.
    stages = {
        frozenset(other for other in before if kind in after[other]): len(before)
        for kind, before in after.items()
    }
    ordered = sorted(stages, key=lambda stage: (stages[stage], min(stage)))
    return [tuple(sorted(stage)) for stage in ordered]
