"""App demands: on how many clusters of which sets an app goes, by all controllers together.

`combining` makes them, one app at a time. An answer with one part limits every cluster of the app,
and may say how many there are; the largest number said wins. An answer with several parts says
more: that disjoint choices of the parts are among the clusters of the app. Clusters that are wanted
beyond the parts may come from any of them.

Two answers that both have several parts do not make one list of parts: a cluster serves a part of
each. How many clusters serve which two parts is a contingency table, whose rows and columns sum up
to what the parts count; each table makes a list of parts, and all tables together say exactly what
both answers say. There are few, as hardly more than one controller has several parts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations, islice

import msgspec

from dovetail.intents.candidates.cluster_set import EVERYWHERE, ClusterSet
from dovetail.intents.candidates.partitions import AppClusters, Part
from dovetail.intents.names import ClusterName

Parts = tuple[Part, ...]

MOST_TABLES = 64
"""Of one app."""
MOST_PARTS_IN_HALL = 8
"""Parts that are looked at in all combinations: 2^n."""


class AppDemand(msgspec.Struct, frozen=True, kw_only=True):
    """Where one app goes, by all controllers."""

    count: int
    tables: tuple[Parts, ...]
    """The clusters of the app serve the parts of one of these; mostly there is one."""
    preference: tuple[tuple[ClusterSet, ...], ...] = ()
    """Of each controller that prefers any: earlier sets first. Their ranks add up."""
    is_complete: bool = True

    def domain(self) -> ClusterSet:
        """Clusters that serve any part."""
        return union(part.clusters for parts in self.tables for part in parts)


def demand_of(answers: Sequence[AppClusters]) -> AppDemand:
    """The order of the answers does not matter but for the order of the tables."""
    count = max((part_count(each) for each in answers if is_counting(each)), default=1)
    domain = EVERYWHERE
    for each in answers:
        domain &= union(part.clusters for part in each.parts)
    several = list(dict.fromkeys(each.parts for each in answers if len(each.parts) > 1))
    tables: list[Parts] = [(Part(count, domain),)]
    is_complete = True
    for parts in several:
        filled = _filled(parts, count, domain)
        tables, are_all = _some(table for before in tables for table in _both(before, filled))
        is_complete &= are_all
    return AppDemand(
        count=count,
        tables=tuple(tables),
        preference=tuple(each.preference for each in answers if each.preference),
        is_complete=is_complete,
    )


def is_counting(answer: AppClusters) -> bool:
    """Several parts say how many, whatever they say about it."""
    return answer.is_counted or len(answer.parts) > 1


def part_count(answer: AppClusters) -> int:
    return sum(part.count for part in answer.parts)


def union(sets: Iterable[ClusterSet]) -> ClusterSet:
    found = ClusterSet.allow(())
    for each in sets:
        found |= each
    return found


def shortage_of(parts: Parts, clusters: Collection[ClusterName]) -> str:
    """Why the parts cannot be served, however alone the app is; empty if they can.

    Hall's condition: any parts together have as many clusters as they count. Of many parts, each
    alone and all together are looked at; the pick finds the rest.
    """
    few = len(parts) <= MOST_PARTS_IN_HALL
    for size in range(1, len(parts) + 1) if few else (1, len(parts)):
        for some in combinations(parts, size):
            wanted = sum(part.count for part in some)
            there = union(part.clusters for part in some).size(clusters)
            if wanted > there:
                return f"count {wanted} > {there} clusters"
    return ""


def merged_tables(demands: Sequence[AppDemand]) -> tuple[list[Parts], bool]:
    """Of apps that go to the very same clusters, so that all their demands are met; and whether
    these are all."""
    tables = list(demands[0].tables)
    is_complete = True
    for demand in demands[1:]:
        tables, are_all = _some(
            table for before in tables for parts in demand.tables for table in _both(before, parts)
        )
        is_complete &= are_all
    return tables, is_complete


def _some(tables: Iterator[Parts]) -> tuple[list[Parts], bool]:
    """The first of them, and whether they are all."""
    found = list(islice(tables, MOST_TABLES))
    return list(dict.fromkeys(found)), next(tables, None) is None


def _filled(parts: Parts, count: int, domain: ClusterSet) -> Parts:
    """With a part more, if more clusters are wanted than the parts say."""
    merged: dict[ClusterSet, int] = {}
    whole: set[ClusterName] = set()
    for part in parts:
        names = part.clusters.names
        if not part.clusters.denies and part.count == len(names) and whole.isdisjoint(names):
            # Every cluster of it: together with others of the kind that is one part.
            whole |= names
        else:
            clusters = part.clusters & domain
            merged[clusters] = merged.get(clusters, 0) + part.count
    if whole:
        clusters = ClusterSet.allow(whole) & domain
        merged[clusters] = merged.get(clusters, 0) + len(whole)
    more = count - sum(merged.values())
    if more:
        merged[domain] = merged.get(domain, 0) + more
    return tuple(Part(number, clusters) for clusters, number in merged.items())


def _both(left: Parts, right: Parts) -> Iterator[Parts]:
    """One list of parts for each contingency table of the two."""
    if len(left) == 1 or len(right) == 1:
        limit, parts = (left[0], right) if len(left) == 1 else (right[0], left)
        yield tuple(Part(part.count, part.clusters & limit.clusters) for part in parts)
        return
    rows = [part.count for part in left]
    columns = [part.count for part in right]
    for table in contingency_tables(rows, columns):
        yield tuple(
            Part(number, one.clusters & other.clusters)
            for one, numbers in zip(left, table, strict=True)
            for other, number in zip(right, numbers, strict=True)
            if number
        )


def contingency_tables(
    rows: Sequence[int], columns: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """All tables with these sums of rows and columns, lazily; there may be very many."""
    if not rows:
        yield ()
        return
    for first in _spreads(rows[0], columns):
        left = [free - number for free, number in zip(columns, first, strict=True)]
        for rest in contingency_tables(rows[1:], left):
            yield (first, *rest)


def _spreads(total: int, limits: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All ways to spread a number over places with limits."""
    if not limits:
        yield ()
        return
    most, room = min(total, limits[0]), sum(limits[1:])
    for number in range(most, max(0, total - room) - 1, -1):
        for rest in _spreads(total - number, limits[1:]):
            yield (number, *rest)
