"""Needs: what a request asks of single rows. Demand and pressure break requests up into them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from dovetail.core.columns import Mask
from dovetail.core.request import Request
from dovetail.engine.feasible import trait_mask
from dovetail.engine.snapshot import Snapshot


class NeedKind(msgspec.Struct, frozen=True):
    """What one row has to give."""

    resources: tuple[tuple[str, int], ...]
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    alone: bool = False
    """Each time by another row."""


def needs_of(request: Request) -> Counter[NeedKind]:
    """How many of each kind a request needs."""
    found: Counter[NeedKind] = Counter()
    for group in request.groups:
        resources = tuple(sorted(group.resources.items()))
        if group.suffix:
            alone = group.suffix in request.isolated
            found[NeedKind(resources, group.required, group.forbidden, alone)] += 1
        else:
            for amount in resources:
                found[NeedKind((amount,), (), group.forbidden)] += 1
            for alternatives in group.required:
                found[NeedKind((), (alternatives,))] += 1
    for kind in found:
        if not kind.resources and not kind.alone:
            # Whoever gives nothing can be there for any number of groups.
            found[kind] = 1
    return found


def is_plain(kind: NeedKind, times: int) -> bool:
    """Whether the most that a row has free tells if the need is met."""
    return times == 1 and len(kind.resources) == 1 and not kind.required and not kind.forbidden


def amounts_taken(wanted: Counter[NeedKind]) -> Counter[str]:
    """By class, what all needs of a request take together."""
    found: Counter[str] = Counter()
    for kind, times in wanted.items():
        for name, amount in kind.resources:
            found[name] += times * amount
    return found


def classes_of(kind: NeedKind) -> tuple[str, ...]:
    return tuple(name for name, _ in kind.resources)


def trait_masks(snapshot: Snapshot, kinds: Iterable[NeedKind]) -> list[Mask]:
    """For each kind, by trait set whether it is as wanted; many kinds want the same."""
    known: dict[tuple[tuple[frozenset[str], ...], frozenset[str]], Mask] = {}
    found = []
    for kind in kinds:
        wish = kind.required, kind.forbidden
        if wish not in known:
            known[wish] = trait_mask(snapshot, *wish)
        found.append(known[wish])
    return found
