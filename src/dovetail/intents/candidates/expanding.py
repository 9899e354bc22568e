"""Expanding: candidates one by one out of their factors, and all of it as a document.

A plan shows the document. A candidate has lists of clusters for each app such that any choice from
them is good, as long as apps are with those that they require. Where clusters are contended, each
of their largest sets of apps makes other candidates: with k such clusters there may be 2^k, so they
are made as they are asked for, and the rest is counted.

Order. The first candidate gives every contended cluster to the apps listed first. Then those follow
that depart from it the least, a departure being a step to the next set of a cluster; of those that
depart as much, the ones that do so on clusters whose names come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, compress, islice, product
from math import log10, prod
from typing import Any

import msgspec
import numpy as np

from dovetail.core.columns import Mask
from dovetail.intents.candidates.admissible import AdmissibleSets, mask_of
from dovetail.intents.candidates.app_demand import Parts, shortage_of
from dovetail.intents.candidates.app_sets import AppFamily, AppMask, apps_of, in_order
from dovetail.intents.candidates.cluster_set import ClusterSet
from dovetail.intents.candidates.combining import CombinedCandidates
from dovetail.intents.candidates.partitions import Part

MOST_SHOWN = 8
"""Candidates of a document."""
MOST_TRIED = 200
"""Of which some have too few clusters for an app: these are no candidates."""
MOST_NAMES = 1_000
"""Of clusters in all candidates of a document."""
MOST_EXACT = 2**53 - 1
"""Numbers above it are not exact everywhere JSON is read."""

MaskTable = Sequence[tuple[int, Mask]]
"""Parts as counts, with clusters by place."""

Candidate = Mapping[str, Parts]
"""By app. Its parts get different clusters."""


class ExpandedCandidates(msgspec.Struct, frozen=True):
    candidates: tuple[Candidate, ...]
    more: int
    """That are not among these; of very many, some may have too few clusters for an app."""


def expanded(combined: CombinedCandidates, most: int = MOST_SHOWN) -> ExpandedCandidates:
    """The first `most` of them."""
    alternatives = admissible_alternatives(combined)
    found = tuple(islice(candidates_of(alternatives), most))
    return ExpandedCandidates(found, number_of_candidates(alternatives) - len(found))


def admissible_alternatives(combined: CombinedCandidates) -> list[AdmissibleSets]:
    if combined.refusals:
        return []
    return [AdmissibleSets(combined, demands) for demands in combined.alternatives()]


def number_of_candidates(alternatives: Sequence[AdmissibleSets]) -> int:
    """Exact where there are few; of many, those that have too few clusters for an app included."""
    choices = sum(
        prod(len(each.family(cluster)) for cluster in each.contended.tolist())
        * prod(len(demand.tables) for demand in each.demands)
        for each in alternatives
    )
    return choices if choices > MOST_TRIED else sum(1 for _ in candidates_of(alternatives))


def candidates_of(
    alternatives: Sequence[AdmissibleSets], tries: int = MOST_TRIED
) -> Iterator[Candidate]:
    """Lazily; no more than `tries` choices of sets are looked at for each alternative."""
    for sets in alternatives:
        lists = _Lists(sets)
        for steps in islice(departures([len(each) for each in lists.families]), tries):
            yield from lists.candidates(steps)


def departures(sizes: Sequence[int]) -> Iterator[tuple[tuple[int, int], ...]]:
    """All choices of one of so many sets each, the first of each being the rule: the exceptions,
    as (which, set), fewest steps first, and then in order."""
    most = [size - 1 for size in sizes]
    left = [0, *accumulate(reversed(most))][::-1]
    for total in range(left[0] + 1):
        yield from _departures(most, left, 0, total)


def _departures(
    most: Sequence[int], left: Sequence[int], begin: int, total: int
) -> Iterator[tuple[tuple[int, int], ...]]:
    """Of these many steps, from `begin` on; `left`: what it and all behind it can take."""
    if not total:
        yield ()
        return
    for which in range(begin, len(most)):
        if left[which] < total:
            return
        fewest = max(total - left[which + 1], 1)
        for number in range(min(total, most[which]), fewest - 1, -1):
            for rest in _departures(most, left, which + 1, total - number):
                yield ((which, number), *rest)


class _Lists:
    """The lists of one alternative, by app and cluster."""

    def __init__(self, sets: AdmissibleSets) -> None:
        self._clusters, self._apps = sets.combined.clusters, sets.combined.apps
        self._contended = sets.contended.tolist()
        self.families: list[AppFamily] = [sets.family(each) for each in self._contended]
        self._tables = [
            [
                [(part.count, mask_of(part.clusters, self._clusters)) for part in parts]
                for parts in demand.tables
            ]
            for demand in sets.demands
        ]
        self._first: Mask = sets.allowed.copy()
        for cluster, family in zip(self._contended, self.families, strict=True):
            self._give(self._first, cluster, family[0])

    def candidates(self, steps: Sequence[tuple[int, int]]) -> Iterator[Candidate]:
        """One, mostly: a demand of several tables makes one of each. None, if an app has too few
        clusters."""
        allowed = self._first.copy()
        for which, number in steps:
            self._give(allowed, self._contended[which], self.families[which][number])
        masks = [
            [limited for table in tables if (limited := _limited(table, row))]
            for tables, row in zip(self._tables, allowed, strict=True)
        ]
        if all(masks):
            lists = [[parts for table in of if (parts := self._parts(table))] for of in masks]
            for choice in product(*lists):
                yield dict(zip(self._apps, choice, strict=True))

    def _give(self, allowed: Mask, cluster: int, apps: AppMask) -> None:
        allowed[:, cluster] = False
        allowed[list(apps_of(apps)), cluster] = True

    def _parts(self, table: MaskTable) -> Parts | None:
        found = tuple(Part(count, cluster_set(mask, self._clusters)) for count, mask in table)
        return None if len(found) > 1 and shortage_of(found, self._clusters) else found


def _limited(table: MaskTable, allowed: Mask) -> MaskTable | None:
    """None: a part has too few clusters."""
    found = [(count, mask & allowed) for count, mask in table]
    is_short = any(int(np.count_nonzero(mask)) < count for count, mask in found)
    return None if is_short else found


def cluster_set(mask: Mask, clusters: Mapping[str, int]) -> ClusterSet:
    """In the shorter form; of two as short, the allow list."""
    denies = 2 * int(np.count_nonzero(mask)) > len(mask)
    chosen = ~mask if denies else mask
    return ClusterSet(frozenset(compress(clusters, chosen.tolist())), denies)


def candidates_document(combined: CombinedCandidates, most: int = MOST_SHOWN) -> dict[str, Any]:
    """Canonical: apps in the order of the group, everything else sorted.

    `apps`, `contended`, `deny` and `require` say all of it, in little room; candidates are there
    for people, as long as they are short.
    """
    alternatives = admissible_alternatives(combined)
    shown: list[dict[str, Any]] = []
    names = 0
    for candidate in islice(candidates_of(alternatives), most):
        names += sum(len(part.clusters.names) for of in candidate.values() for part in of)
        if names > MOST_NAMES:
            break
        shown.append(candidate_document(candidate))
    more = number_of_candidates(alternatives) - len(shown)
    relations = combined.relations
    document: dict[str, Any] = {
        "apps": [lists_document(each) for each in alternatives],
        "contended": contended_document(combined),
        "deny": _related(combined.apps, relations.denied),
        "require": _related(combined.apps, relations.required),
        "candidates": shown,
        "more": more if more <= MOST_EXACT else f"about 10^{int(log10(more))}",
    }
    if not combined.is_complete:
        document["isComplete"] = False
    return {key: value for key, value in document.items() if value != {}}


def lists_document(sets: AdmissibleSets) -> dict[str, Any]:
    """Of one alternative: where apps can go, as if they were not in each other's way."""
    clusters = sets.combined.clusters
    return candidate_document(
        {
            app: tuple(
                Part(part.count, cluster_set(mask_of(part.clusters, clusters) & row, clusters))
                for part in demand.tables[0]
            )
            for app, demand, row in zip(sets.combined.apps, sets.demands, sets.allowed, strict=True)
        }
    )


def candidate_document(candidate: Candidate) -> dict[str, Any]:
    return {
        app: part_document(parts[0])
        if len(parts) == 1
        else {"count": sum(part.count for part in parts), "parts": list(map(part_document, parts))}
        for app, parts in candidate.items()
    }


def part_document(part: Part) -> dict[str, Any]:
    form = "deny" if part.clusters.denies else "allow"
    return {"count": part.count, form: sorted(part.clusters.names)}


def contended_document(combined: CombinedCandidates) -> list[dict[str, Any]]:
    """Clusters with the same sets of apps, and for the same reason, together; in the order of the
    first of them."""
    places: dict[tuple[AppFamily, str], list[int]] = {}
    for name in sorted(combined.families):
        key = (in_order(combined.families[name]), combined.contention.get(name, ""))
        places.setdefault(key, []).append(combined.clusters[name])
    found = []
    for (family, why), of in places.items():
        mask: Mask = np.zeros(len(combined.clusters), np.bool_)
        mask[of] = True
        chosen = cluster_set(mask, combined.clusters)
        form = "deny" if chosen.denies else "allow"
        apps = [[combined.apps[app] for app in apps_of(each)] for each in family]
        document = {form: sorted(chosen.names), "sets": apps}
        found.append(document | {"why": why} if why else document)
    return found


def _related(apps: Sequence[str], masks: Sequence[AppMask]) -> dict[str, list[str]]:
    """By app that has any: the others."""
    found = {
        app: [apps[other] for other in apps_of(mask) if other != number]
        for number, (app, mask) in enumerate(zip(apps, masks, strict=True))
    }
    return {app: others for app, others in found.items() if others}
