"""Admissible sets: which apps each cluster of a fleet takes together, for all clusters at once.

`expanding` and the pick's solver read them of one alternative. A cluster is decided by who may go
there at all and by its family on contended clusters; both are brought to one key, and each distinct
key is decided once: families, pairs that must not meet, apps that require others. So the cost is
vector operations over the fleet and a decision for each distinct kind of cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dovetail.core.columns import Amounts, Mask, Numbers
from dovetail.intents.candidates.app_demand import AppDemand
from dovetail.intents.candidates.app_relations import AppRelations
from dovetail.intents.candidates.app_sets import (
    AppFamily,
    AppMask,
    apps_of,
    closed,
    in_order,
    intersection,
    largest,
    place_of,
    without_pairs,
)
from dovetail.intents.candidates.cluster_set import ClusterSet
from dovetail.intents.candidates.combining import CombinedCandidates
from dovetail.intents.names import ClusterName


class AdmissibleSets:
    """Of one alternative."""

    def __init__(self, combined: CombinedCandidates, demands: Sequence[AppDemand]) -> None:
        self.combined, self.demands = combined, demands
        clusters = combined.clusters
        wanted = [mask_of(demand.domain(), clusters) for demand in demands]
        keys, self.kinds = _kinds(wanted, _family_numbers(combined))
        """`kinds`: by cluster, the number of its kind."""
        known = [(), *dict.fromkeys(combined.families.values())]
        families = [_family(known[number], mask, combined.relations) for number, mask in keys]
        self.families: list[AppFamily] = [family for family, _ in families]
        """By kind."""
        self.is_complete = all(is_complete for _, is_complete in families)
        """Whether the families have all of their sets."""
        self.contended: Numbers = np.flatnonzero(
            np.array([len(each) > 1 for each in self.families], np.bool_)[self.kinds]
        ).astype(np.int32)
        """Clusters that have several largest sets."""
        self._places = _app_places(self.families, len(demands))
        self.allowed: Mask = np.ascontiguousarray((self._places >= 0)[:, self.kinds])
        """By app and cluster: whether the app can be there, alone or with what it requires."""

    def family(self, cluster: int) -> AppFamily:
        found: AppFamily = self.families[int(self.kinds[cluster])]
        return found

    def places(self, apps: AppMask) -> Amounts:
        """By kind: the first largest set that has all of them; -1 if none has."""
        found: Amounts = self._places[apps.bit_length() - 1]
        if apps & (apps - 1):
            places = (place_of(family, apps) for family in self.families)
            found = np.array([-1 if place is None else place for place in places], np.int64)
        return found


def mask_of(wanted: ClusterSet, clusters: Mapping[ClusterName, int]) -> Mask:
    """By place."""
    found: Mask = np.full(len(clusters), wanted.denies)
    places = [place for name in wanted.names if (place := clusters.get(name)) is not None]
    found[places] = not wanted.denies
    return found


def _app_places(families: Sequence[AppFamily], apps: int) -> Amounts:
    """By app and kind: the first largest set that has the app; -1 if none has."""
    width = (apps + 7) // 8
    firsts = b"".join(each[0].to_bytes(width, "little") for each in families)
    packed = np.frombuffer(firsts, np.uint8).reshape(len(families), width)
    bits = np.unpackbits(packed, axis=1, count=apps, bitorder="little")
    found: Amounts = np.ascontiguousarray(bits.T).astype(np.int64) - 1
    for kind, family in enumerate(families):
        seen = family[0]
        for place in range(1, len(family)):
            for app in apps_of(family[place] & ~seen):
                found[app, kind] = place
            seen |= family[place]
    return found


def _family_numbers(combined: CombinedCandidates) -> Numbers:
    """By cluster: 0 without contention, else the number of its family, from 1."""
    found: Numbers = np.zeros(len(combined.clusters), np.int32)
    numbers: dict[tuple[AppMask, ...], int] = {}
    for name, family in combined.families.items():
        found[combined.clusters[name]] = numbers.setdefault(family, len(numbers) + 1)
    return found


def _kinds(wanted: Sequence[Mask], numbers: Numbers) -> tuple[list[tuple[int, AppMask]], Numbers]:
    """The distinct (number of a family, apps that may go there), and by cluster which it has."""
    size = len(numbers)
    bits = np.packbits(np.array(wanted, np.bool_).reshape(-1, size), axis=0, bitorder="little").T
    rows = np.hstack([numbers.astype("<i4").view(np.uint8).reshape(size, 4), bits])
    packed = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1]))).ravel()
    distinct, kinds = np.unique(packed, return_inverse=True)
    keys = [
        (int.from_bytes(each[:4], "little"), int.from_bytes(each[4:], "little"))
        for each in (key.tobytes() for key in distinct)
    ]
    return keys, kinds.astype(np.int32)


def _family(
    known: tuple[AppMask, ...], allowed: AppMask, relations: AppRelations
) -> tuple[AppFamily, bool]:
    """The largest sets of apps that a cluster takes, each with all that its apps require; and
    whether these are all."""
    sets = intersection(known, [allowed]) if known else [allowed]
    is_complete = True
    if not relations.is_empty:
        sets, is_complete = without_pairs(sets, relations.denied)
        sets = largest(closed(mask, relations.required) for mask in sets)
    return in_order(sets), is_complete
