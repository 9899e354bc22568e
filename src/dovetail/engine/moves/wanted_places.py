"""What a consumer that has to move needs of its new place.

`destinations` asks for each consumer. Where the request is on record with which it was placed, that
is what it needs, but for the tree it named: it is to leave that. Of others only what they hold is
known, and their place is taken as the witness of what they need (`like_place`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from dovetail.core.request import Affinity, Group, Request
from dovetail.engine.moves.holders import Holder
from dovetail.engine.sharing import SHARES
from dovetail.engine.snapshot import Snapshot

TOP = "_TOP"

Requests = Mapping[str, Request]
"""By consumer: what it asked for when it got what it holds."""


class WantedPlace(msgspec.Struct, frozen=True):
    request: Request
    above: Sequence[tuple[str, str]] = ()
    """Pairs of groups: the provider of the first is above that of the second."""

    def is_kept_by(self, snapshot: Snapshot, rows: Mapping[str, int]) -> bool:
        """`rows`: by group. Affinity alone does not say which of two is above the other."""
        return all(rows[upper] in path(snapshot, rows[lower]) for upper, lower in self.above)


def wanted_place(snapshot: Snapshot, holder: Holder, requests: Requests) -> WantedPlace:
    asked = requests.get(holder.consumer)
    if asked is None:
        return like_place(snapshot, holder)
    groups = tuple(msgspec.structs.replace(group, in_tree=None) for group in asked.groups)
    return WantedPlace(msgspec.structs.replace(asked, groups=groups, rank=(), limit=None))


def like_place(snapshot: Snapshot, holder: Holder) -> WantedPlace:
    """Providers with at least the traits of those that serve it, one each, lying as they do."""
    rows = sorted({row for row, _ in holder.held})
    suffixes = {row: f"_{at}" for at, row in enumerate(rows)}
    groups = [
        Group(
            suffix=suffixes[row],
            resources={name: amount for (own, name), amount in holder.held.items() if own == row},
            required=traits_of(snapshot, row),
        )
        for row in rows
    ]
    above = [
        (suffixes[upper], suffixes[row])
        for row in rows
        for upper in path(snapshot, row)[1:]
        if upper in suffixes
    ]
    affinities = [Affinity(frozenset(pair)) for pair in above]
    for alike in by_tree(snapshot, rows):
        top = lowest_common(snapshot, alike)
        if len(alike) > 1 and top not in suffixes and snapshot.parent.values[top] >= 0:
            suffix = f"{TOP}{top}"
            groups.append(Group(suffix=suffix, required=traits_of(snapshot, top)))
            affinities.append(Affinity(frozenset((suffix, *(suffixes[row] for row in alike)))))
            above += [(suffix, suffixes[row]) for row in alike]
    isolated = frozenset(suffixes.values())
    request = Request(groups=tuple(groups), isolated=isolated, affinities=tuple(affinities))
    return WantedPlace(request, above)


def by_tree(snapshot: Snapshot, rows: Sequence[int]) -> list[list[int]]:
    found: dict[int, list[int]] = {}
    for row in rows:
        found.setdefault(int(snapshot.tree.values[row]), []).append(row)
    return list(found.values())


def lowest_common(snapshot: Snapshot, rows: Sequence[int]) -> int:
    """The lowest provider that all of these are below, or are."""
    common = path(snapshot, rows[0])
    for row in rows[1:]:
        above = path(snapshot, row)
        common = [one for one in common if one in above]
    return common[0]


def path(snapshot: Snapshot, row: int) -> list[int]:
    """The row, its parent and so on up to its root."""
    found = [row]
    while (up := int(snapshot.parent.values[found[-1]])) >= 0:
        found.append(up)
    return found


def traits_of(snapshot: Snapshot, row: int) -> tuple[frozenset[str], ...]:
    numbers = snapshot.trait_sets.members(int(snapshot.traits.values[row]))
    names = sorted(snapshot.trait_names[number] for number in numbers)
    return tuple(frozenset([name]) for name in names if name != SHARES)
