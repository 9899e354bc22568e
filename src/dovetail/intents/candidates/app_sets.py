"""Families of app sets: which apps of a group one cluster takes together, as bit masks.

`admissible` makes one family for every distinct kind of cluster, of what controllers say. An app is
a bit, in the order of the group; a family is down-closed (a cluster that takes some apps takes any
of them), so its largest sets tell all of it. Families of several controllers are intersected, apps
that must not meet are taken apart, and apps without those that they require are taken out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

AppMask = int
"""A set of apps: bit n is the n-th app of the group."""

AppFamily = tuple[AppMask, ...]
"""The largest sets of a family, those that serve the apps listed first before others."""

MOST_SETS = 2_000
"""Of a family. Twenty apps have no more than 1,458 largest sets without denied pairs."""


def apps_of(mask: AppMask) -> Iterator[int]:
    """Their numbers, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def largest(sets: Iterable[AppMask]) -> list[AppMask]:
    """Those that are in no other."""
    found: list[AppMask] = []
    for mask in sorted(set(sets), key=int.bit_count, reverse=True):
        if not any(mask & other == mask for other in found):
            found.append(mask)
    return found


def in_order(sets: Iterable[AppMask]) -> AppFamily:
    """The set that has the first app before one that has not, and so on."""

    def reversed_bits(mask: AppMask) -> str:
        return f"{mask:b}"[::-1]

    return tuple(sorted(sets, key=reversed_bits, reverse=True))


def intersection(left: Iterable[AppMask], right: Sequence[AppMask]) -> list[AppMask]:
    """The family of sets that are in both families."""
    return largest(one & other for one in left for other in right)


def without_pairs(sets: Iterable[AppMask], denied: Sequence[AppMask]) -> tuple[list[AppMask], bool]:
    """The largest subsets without denied pairs, and whether these are all. `denied`: by app, those
    that it must not meet.

    A set with a denied pair is split: without one app of it, or without all that this app must not
    meet. Each split removes an app, so it ends; there may be 3^(n/3) such subsets of n apps, and
    no more than MOST_SETS are looked for.
    """
    found: list[AppMask] = []
    open_sets = list(dict.fromkeys(sets))[::-1]
    while open_sets and len(found) < MOST_SETS:
        mask = open_sets.pop()
        app = next((app for app in apps_of(mask) if denied[app] & mask), None)
        if app is None:
            found.append(mask)
        else:
            open_sets.append(mask & ~(1 << app))
            open_sets.append(mask & ~denied[app])
    return largest(found), not open_sets


def closed(mask: AppMask, required: Sequence[AppMask]) -> AppMask:
    """The largest subset in which each app has all that it requires, by closure of each app."""
    for app in apps_of(mask):
        if required[app] & ~mask:
            # What requires this app requires, by closure, what it lacks: one look at each will do.
            mask &= ~(1 << app)
    return mask


def place_of(family: AppFamily, mask: AppMask) -> int | None:
    """Which of its sets is the first that has all these apps; None: they are not together."""
    return next((place for place, each in enumerate(family) if mask & ~each == 0), None)
