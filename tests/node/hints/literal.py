"""The rules of the policies, followed to the letter: every combination of hints is tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from itertools import pairwise, product

from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints import Distances, Hint, Hints, TopologyOptions, TopologyPolicy

Answer = tuple[bool, Mapping[str, Hint]]
"""Whether it is admitted, and what each resource gets."""


def merge(
    policy: TopologyPolicy,
    options: TopologyOptions,
    hints: Mapping[str, Hints],
    nodes: CpuSet,
    distances: Distances,
) -> Answer:
    lists = {name: explicit(each) for name, each in hints.items()}
    closest = options.prefer_closest_numa_nodes and policy is not TopologyPolicy.SINGLE_NUMA_NODE
    if policy is TopologyPolicy.NONE:
        return True, dict.fromkeys(hints, Hint(None, preferred=True))
    if policy is TopologyPolicy.NUMERIC:
        return numeric(options, hints, nodes, distances)
    if policy is TopologyPolicy.SINGLE_NUMA_NODE:
        lists = {
            name: [
                hint
                for hint in each
                if hint.preferred and (hint.mask is None or hint.mask.bit_count() == 1)
            ]
            for name, each in lists.items()
        }
    best = folded(list(lists.values()), nodes, distances if closest else None)
    if policy is TopologyPolicy.SINGLE_NUMA_NODE and best.mask == nodes.mask:
        best = Hint(None, preferred=best.preferred)
    return policy is TopologyPolicy.BEST_EFFORT or best.preferred, dict.fromkeys(hints, best)


def explicit(hints: Hints) -> Sequence[Hint]:
    if hints is None:
        return [Hint(None, preferred=True)]
    return hints or [Hint(None, preferred=False)]


def folded(lists: Sequence[Sequence[Hint]], nodes: CpuSet, distances: Distances | None) -> Hint:
    sizes = [[hint.mask.bit_count() for hint in each if hint.mask is not None] for each in lists]
    asked = max((min(each) for each in sizes if each), default=0)
    best: Hint | None = None
    for combination in product(*lists):
        masks = [hint.mask for hint in combination if hint.mask is not None]
        candidate = Hint(
            reduce(int.__and__, masks, nodes.mask),
            preferred=all(hint.preferred for hint in combination) and len(set(masks)) <= 1,
        )
        if candidate.mask and (best is None or replaces(candidate, best, asked, distances)):
            best = candidate
    return best or Hint(nodes.mask, preferred=False)


def replaces(candidate: Hint, best: Hint, asked: int, distances: Distances | None) -> bool:
    assert candidate.mask is not None
    assert best.mask is not None
    is_fitter = partial(fitter, candidate.mask, best.mask, distances)
    if candidate.preferred != best.preferred:
        return candidate.preferred
    if candidate.preferred:
        return is_fitter()
    size, held = candidate.mask.bit_count(), best.mask.bit_count()
    if held > asked:
        return is_fitter()
    if held == asked:
        return size == asked and is_fitter()
    if size > asked:
        return False
    if size == asked or size > held:
        return True
    return size == held and is_fitter()


def fitter(one: int, other: int, distances: Distances | None) -> bool:
    if one.bit_count() != other.bit_count():
        return one.bit_count() < other.bit_count()
    if distances is not None and mean(one, distances) != mean(other, distances):
        return mean(one, distances) < mean(other, distances)
    return one < other


def mean(mask: int, distances: Distances) -> float:
    nodes = CpuSet.of_mask(mask)
    return sum(distances[a][b] for a in nodes for b in nodes) / len(nodes) ** 2


def numeric(
    options: TopologyOptions, hints: Mapping[str, Hints], nodes: CpuSet, distances: Distances
) -> Answer:
    names = sorted(hints)
    beside = [name for name in names if name not in options.align]
    allowed = [
        dict(zip(names, combination, strict=True))
        for combination in product(*(explicit(hints[name]) for name in names))
    ]
    allowed = [each for each in allowed if aligned(each, options.align) and nested(each)]
    if not allowed or any(each is not None and not each for each in hints.values()):
        return False, dict.fromkeys(hints, Hint(nodes.mask, preferred=False))

    def key(given: Mapping[str, Hint]) -> object:
        widest = max((hint.mask or 0 for hint in given.values()), key=int.bit_count, default=0)
        near = mean(widest, distances) if options.prefer_closest_numa_nodes and widest else 0
        return (
            -sum(given[name].preferred for name in beside),
            (widest.bit_count(), near, widest),
            [
                (
                    not given[name].preferred,
                    (given[name].mask or 0).bit_count(),
                    given[name].mask or 0,
                )
                for name in names
            ],
        )

    return True, min(allowed, key=key)  # type: ignore[arg-type]


def aligned(given: Mapping[str, Hint], align: Sequence[str]) -> bool:
    hints = [given[name] for name in align if name in given]
    if any(hint.mask is None and not hint.preferred for hint in hints):
        return False
    masks = {hint.mask for hint in hints if hint.mask is not None}
    return len(masks) <= 1 and (not hints or any(hint.preferred for hint in hints))


def nested(given: Mapping[str, Hint]) -> bool:
    masks = sorted((hint.mask for hint in given.values() if hint.mask), key=int.bit_count)
    return all(small & large == small for small, large in pairwise(masks))
