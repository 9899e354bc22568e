"""The objective of a pick: one whole number for an app on a cluster, the smaller the better.

The solver adds these numbers up and compares sums. What counts first stands in higher digits, each
with room for the sum over all apps, so comparing two sums compares, in this order,

1. ranks of preference: overflow only when the sets before are full;
2. scores, as what they are short of the highest;
3. departures: for each app on a contended cluster, the place of the first largest set there that
   has all apps placed there; so such a cluster goes to the app listed first;
4. for the apps in order, what they lose of their scores for sharing clusters with apps before
   them, then the places of their clusters by rank, score and name.

Python's numbers have no limit, so none of this is an approximation.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from dovetail.core.columns import Amounts
from dovetail.intents.candidates.admissible import mask_of
from dovetail.intents.candidates.app_demand import AppDemand
from dovetail.intents.candidates.app_sets import MOST_SETS
from dovetail.intents.candidates.combining import CombinedCandidates


class Objective:
    """The digits, which are the same for all alternatives; and scores by app and cluster."""

    def __init__(
        self, combined: CombinedCandidates, alternatives: Sequence[Sequence[AppDemand]]
    ) -> None:
        counts: list[int] = [
            max(each.count for each in of) for of in zip(*alternatives, strict=True)
        ]
        self.scores = scores_of(combined)
        self.highest = int(np.abs(self.scores).max(initial=0))
        """No score is above it."""
        self.most_loss = 4 * self.highest
        """Of one app on one cluster, for sharing it: joint scores below that are cut off."""
        self._most = sum(counts)
        shift = 0
        shifts = []
        for count in reversed(counts):
            place_shift = shift
            shift += (count * len(combined.clusters)).bit_length()
            shifts.append((place_shift, shift))
            shift += (count * len(counts) * self.most_loss).bit_length()
        self.app_shifts = shifts[::-1]
        """By app: of places, and of what it loses for sharing."""
        self.departure_shift = shift
        shift += (self._most * MOST_SETS).bit_length()
        self.loss_shift = shift
        shift += (self._most * (2 * self.highest + self.most_loss)).bit_length()
        self.rank_shift = shift

    def base(self, demands: Sequence[AppDemand]) -> int:
        """Of an alternative: clusters that it wants less than others are short of nothing."""
        missing = self._most - sum(each.count for each in demands)
        return missing * self.highest << self.loss_shift

    def primary(self, cost: int) -> int:
        """Without the last: costs that are equal in this are equally good for all together."""
        return cost >> self.departure_shift

    def digits(self, cost: int) -> tuple[int, int]:
        """Ranks and departures, summed up."""
        departures = cost >> self.departure_shift
        bits = self.loss_shift - self.departure_shift
        return cost >> self.rank_shift, departures & ((1 << bits) - 1)


class PreferenceColumns(msgspec.Struct, frozen=True):
    """Of one alternative, by app and cluster."""

    ranks: Amounts
    places: Amounts
    """How many clusters come before it by rank, score and name."""


def scores_of(combined: CombinedCandidates) -> Amounts:
    """By app and cluster, summed over controllers."""
    found: Amounts = np.zeros((len(combined.apps), len(combined.clusters)), np.int64)
    for answer in combined.answers:
        for app, name in enumerate(combined.apps):
            pairs = [
                (place, score)
                for cluster, score in answer.scores.get(name, {}).items()
                if score and (place := combined.clusters.get(cluster)) is not None
            ]
            if pairs:
                places, scores = zip(*pairs, strict=True)
                found[app, list(places)] += scores
    return found


def preferences_of(
    combined: CombinedCandidates, demands: Sequence[AppDemand], scores: Amounts
) -> PreferenceColumns:
    """The rank of a cluster is the first preferred set that has it, or the last rank; ranks of
    several controllers are added."""
    size = len(combined.clusters)
    ranks: Amounts = np.zeros((len(demands), size), np.int64)
    places: Amounts = np.zeros((len(demands), size), np.int64)
    for app, demand in enumerate(demands):
        for preference in demand.preference:
            found: Amounts = np.full(size, len(preference), np.int64)
            for rank in reversed(range(len(preference))):
                found[mask_of(preference[rank], combined.clusters)] = rank
            ranks[app] += found
        places[app, np.lexsort((-scores[app], ranks[app]))] = np.arange(size)
    return PreferenceColumns(ranks, places)
