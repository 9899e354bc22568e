"""The numeric policy: every resource gets a hint of its own.

A combination of one hint per resource will do if

* the resources to align name the same nodes, and one of them at least prefers these; one that does
  not care goes along;
* of all sets of nodes that are named, the larger contain the smaller.

Of those, the one wins that most of the other resources prefer; then the one whose largest set is
the fittest; then, resource by resource in the order of names, a preferred hint and a smaller set.
(Katalyst goes through combinations in an order that differs from run to run, and lets a smaller
set win over more preferences or not depending on it.)

Sets that contain each other form a chain. So the combinations are built from the inside outwards:
the best for some resources within a set of nodes is what one of them gets there, and the best for
the rest of them within it. That is dynamic programming over the groups of resources placed so far
and the sets of n nodes: for g groups 2^g tables of 2^n entries, each filled once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints.hint import Hint


class HintPick(NamedTuple):
    """A hint of a resource; a lower one is better for the same resource."""

    resource: str
    unwelcome: bool
    size: int
    mask: int
    """Nothing for any node: it is contained in every set."""


class NestedHints(NamedTuple):
    """What some resources get; a lower one is better for the same resources."""

    disliked: int
    """How many of the resources not to align would prefer something else."""
    picks: tuple[HintPick, ...]

    def with_(self, other: NestedHints) -> NestedHints:
        return NestedHints(self.disliked + other.disliked, tuple(sorted(self.picks + other.picks)))


Group = Mapping[int, NestedHints]
"""Resources that are placed together: what they get, by the nodes."""


def best(
    hints: Mapping[str, Sequence[Hint]],
    align: frozenset[str],
    nodes: CpuSet,
    order: Callable[[int], tuple[int, ...]],
) -> Mapping[str, Hint] | None:
    picks = {name: [_pick(name, each) for each in hints[name]] for name in sorted(hints)}
    groups = [_alone(picks[name]) for name in picks if name not in align]
    if together := [picks[name] for name in picks if name in align]:
        groups.append(_aligned(together))
    plans = _outermost(groups, nodes)
    if not plans:
        return None
    top = min(plans, key=lambda mask: (plans[mask].disliked, order(mask), plans[mask].picks))
    return {
        pick.resource: Hint(pick.mask or None, preferred=not pick.unwelcome)
        for pick in plans[top].picks
    }


def _pick(resource: str, hint: Hint) -> HintPick:
    mask = hint.mask or 0
    return HintPick(resource, not hint.preferred, mask.bit_count(), mask)


def _alone(picks: Sequence[HintPick]) -> Group:
    return {
        mask: NestedHints(int(pick.unwelcome), (pick,)) for mask, pick in _by_mask(picks).items()
    }


def _aligned(members: Sequence[Sequence[HintPick]]) -> Group:
    """The sets of nodes that all of them accept and one prefers."""
    given = [_by_mask([each for each in one if each.mask or not each.unwelcome]) for one in members]
    found = {}
    for mask in sorted(set().union(*given)):
        choices = [[each[one] for one in (0, mask) if one in each] for each in given]
        if all(choices):
            picks = tuple(map(min, choices))
            if not all(pick.unwelcome for pick in picks):
                found[mask] = NestedHints(0, picks)
    return found


def _by_mask(picks: Sequence[HintPick]) -> Mapping[int, HintPick]:
    # In the order that leaves the best.
    return {pick.mask: pick for pick in sorted(picks, reverse=True)}


def _outermost(groups: Sequence[Group], nodes: CpuSet) -> Mapping[int, NestedHints]:
    """The best plan for all groups, by the largest set of nodes in it."""
    inner: dict[tuple[int, ...], Mapping[int, NestedHints]] = {
        (): _spread({0: NestedHints(0, ())}, nodes)
    }
    members = range(len(groups))
    found: Mapping[int, NestedHints] = {0: NestedHints(0, ())}
    for size in members:
        for chosen in combinations(members, size + 1):
            found = _added(groups, chosen, inner)
            inner[chosen] = _spread(found, nodes)
    return found


def _added(
    groups: Sequence[Group],
    chosen: tuple[int, ...],
    inner: Mapping[tuple[int, ...], Mapping[int, NestedHints]],
) -> Mapping[int, NestedHints]:
    """Some groups together, one of them on the largest set."""
    found: dict[int, NestedHints] = {}
    for last in chosen:
        rest = inner[tuple(each for each in chosen if each != last)]
        for mask, plan in groups[last].items():
            if mask in rest:
                both = plan.with_(rest[mask])
                found[mask] = min(both, found.get(mask, both))
    return found


def _spread(plans: Mapping[int, NestedHints], nodes: CpuSet) -> Mapping[int, NestedHints]:
    """For every set of nodes, the best plan within it."""
    found = dict(plans)
    masks = [0]
    for node in sorted(nodes):
        masks += [mask | 1 << node for mask in masks]
    for node in nodes:
        for mask in masks:
            less = found.get(mask & ~(1 << node))
            if less is not None and mask >> node & 1:
                found[mask] = min(less, found.get(mask, less))
    return found
