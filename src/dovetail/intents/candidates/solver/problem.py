"""The pick's problem: units of apps, what each costs on each cluster, and what sharing one costs.

`search` solves it. A unit is apps that go to the very same clusters: apps that require each other,
or one that requires another and counts as many. What one unit costs on a cluster is a number by
itself; that several share a cluster costs as much more as `sharing_cost` says, and never less:
scores of several together are no more than those of each, and departures only grow. So leaving the
costs of sharing out bounds every pick from below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import islice, product
from math import prod
from operator import and_, or_

import msgspec
import numpy as np

from dovetail.core.columns import Amounts, Mask
from dovetail.intents.candidates.admissible import AdmissibleSets, mask_of
from dovetail.intents.candidates.app_demand import Parts, merged_tables
from dovetail.intents.candidates.app_sets import AppFamily, AppMask, apps_of, place_of
from dovetail.intents.candidates.combining import CombinedCandidates
from dovetail.intents.candidates.solver.objective import (
    Objective,
    PreferenceColumns,
    preferences_of,
)
from dovetail.intents.names import ClusterName

ScoreOfSet = Callable[[ClusterName, frozenset[str]], int | None]
"""What a contended cluster gives these apps together; None: it does not take them."""

MOST_CHOICES = 64
"""Of tables of all units."""

UnitMask = int
"""A set of units, like a set of apps."""


class UnitPart(msgspec.Struct, frozen=True):
    """`count` different clusters; `members` has a byte for each cluster, 1 where it may be."""

    count: int
    members: bytes


class AppUnit(msgspec.Struct, frozen=True, kw_only=True):
    """Apps that go to the very same clusters."""

    apps: tuple[int, ...]
    mask: AppMask
    count: int
    parts: tuple[UnitPart, ...]
    order: tuple[int, ...]
    """Clusters that it can go to, the cheapest first."""
    requires: tuple[int, ...]
    """Units that have to be wherever it is."""
    required_by: tuple[int, ...]


class CapacityGroup(msgspec.Struct, frozen=True):
    """Of the units that are in each other's way on a kind of cluster: so many at once."""

    units: UnitMask
    most: int


class PickProblem:
    """One choice of tables for the units of one alternative."""

    def __init__(
        self,
        sets: AdmissibleSets,
        objective: Objective,
        joint: JointScores,
        preferences: PreferenceColumns,
        *,
        members: Sequence[tuple[int, ...]],
        tables: Sequence[Parts],
    ) -> None:
        self.sets, self.objective, self.joint = sets, objective, joint
        self.base = objective.base(sets.demands)
        """Part of every cost of an assignment."""
        self.meeting = joint.clusters | frozenset(sets.contended.tolist())
        """Clusters where units may be in each other's way."""
        self._preferences = preferences
        self._columns = [self._columns_of(apps) for apps in members]
        relations = sets.combined.relations
        masks = [sum(1 << app for app in apps) for apps in members]
        requires = [
            tuple(
                other
                for other, mask in enumerate(masks)
                if other != unit and any(relations.required[app] & mask for app in members[unit])
            )
            for unit in range(len(members))
        ]
        self.units = [
            AppUnit(
                apps=apps,
                mask=masks[unit],
                count=sum(part.count for part in tables[unit]),
                parts=self._parts_of(apps, tables[unit]),
                order=self._order_of(unit, apps),
                requires=requires[unit],
                required_by=tuple(one for one, of in enumerate(requires) if unit in of),
            )
            for unit, apps in enumerate(members)
        ]
        self._costs: list[dict[int, int]] = [{} for _ in self.units]
        self._sharing_costs: dict[tuple[int, UnitMask], int | None] = {}
        self._groups: list[dict[int, CapacityGroup | None]] = [{} for _ in self.units]
        self._groups_by_kind: dict[int, tuple[CapacityGroup, ...]] = {}

    def cost(self, unit: int, cluster: int) -> int:
        """Of the unit there, alone."""
        known = self._costs[unit]
        found = known.get(cluster)
        if found is None:
            objective, apps = self.objective, self.units[unit].apps
            ranks, losses, departures = self._columns[unit]
            found = (
                (int(ranks[cluster]) << objective.rank_shift)
                + (int(losses[cluster]) << objective.loss_shift)
                + (int(departures[cluster]) << objective.departure_shift)
            )
            for app in apps:
                place = int(self._preferences.places[app, cluster])
                found += place << objective.app_shifts[app][0]
            found += self._losses_by_app(cluster, self.units[unit].mask)
            known[cluster] = found
        return found

    def rank(self, app: int, cluster: int) -> int:
        """By preference."""
        return int(self._preferences.ranks[app, cluster])

    def sharing_cost(self, cluster: int, units: UnitMask) -> int | None:
        """What these units cost there together beyond what each costs; None: not together."""
        if units & (units - 1) == 0 and cluster not in self.joint.clusters:
            return 0
        key = (cluster, units)
        if key not in self._sharing_costs:
            self._sharing_costs[key] = self._sharing_cost(cluster, units)
        return self._sharing_costs[key]

    def groups(self, cluster: int) -> tuple[CapacityGroup, ...]:
        """Disjoint; units that are in none of them are in nobody's way."""
        kind = int(self.sets.kinds[cluster])
        found = self._groups_by_kind.get(kind)
        if found is None:
            found = self._groups_by_kind[kind] = _groups(self.sets.families[kind], self.units)
        return found

    def group(self, unit: int, cluster: int) -> CapacityGroup | None:
        """The one that the unit belongs to there."""
        known = self._groups[unit]
        if cluster not in known:
            bit = 1 << unit
            known[cluster] = next((each for each in self.groups(cluster) if each.units & bit), None)
        return known[cluster]

    def apps_mask(self, units: UnitMask) -> AppMask:
        return sum(self.units[unit].mask for unit in apps_of(units))

    def _sharing_cost(self, cluster: int, units: UnitMask) -> int | None:
        apps = self.apps_mask(units)
        place = place_of(self.sets.family(cluster), apps)
        if place is None:
            return None
        loss = self.joint.loss(cluster, apps)
        if loss is None:
            return None
        departures = place * apps.bit_count()
        for unit in apps_of(units):
            mask = self.units[unit].mask
            loss -= self.joint.loss(cluster, mask) or 0
            departures -= int(self._columns[unit][2][cluster])
        objective = self.objective
        found = (max(loss, 0) << objective.loss_shift) + (departures << objective.departure_shift)
        found += self._losses_by_app(cluster, apps)
        for unit in apps_of(units):
            found -= self._losses_by_app(cluster, self.units[unit].mask)
        return found

    def _losses_by_app(self, cluster: int, apps: AppMask) -> int:
        """In their digits: what each of them adds to the loss of those before it."""
        found = before = lost = 0
        if cluster in self.joint.clusters and apps & (apps - 1):
            for app in apps_of(apps):
                before |= 1 << app
                loss = self.joint.loss(cluster, before) or 0
                found += max(loss - lost, 0) << self.objective.app_shifts[app][1]
                lost = loss
        return found

    def _columns_of(self, apps: Sequence[int]) -> tuple[Amounts, Amounts, Amounts]:
        """Ranks, losses and departures by cluster."""
        objective, sets = self.objective, self.sets
        mask = sum(1 << app for app in apps)
        ranks: Amounts = self._preferences.ranks[list(apps)].sum(axis=0)
        losses: Amounts = (objective.highest - objective.scores[list(apps)]).sum(axis=0)
        if len(apps) > 1:
            for cluster in self.joint.clusters:
                losses[cluster] += self.joint.loss(cluster, mask) or 0
        departures: Amounts = sets.places(mask)[sets.kinds] * len(apps)
        return ranks, losses, departures

    def _order_of(self, unit: int, apps: Sequence[int]) -> tuple[int, ...]:
        sets = self.sets
        mask = sum(1 << app for app in apps)
        options = np.flatnonzero((sets.places(mask) >= 0)[sets.kinds])
        if len(apps) > 1:
            refused = [each for each in self.joint.clusters if self.joint.loss(each, mask) is None]
            options = np.setdiff1d(options, refused, assume_unique=True)
        # No two clusters have the same place, so what comes after the first app's does not matter.
        places = self._preferences.places[apps[0], options]
        ranks, losses, departures = (column[options] for column in self._columns[unit])
        order = np.lexsort((places, departures, losses, ranks))
        return tuple(options[order].tolist())

    def _parts_of(self, apps: Sequence[int], parts: Parts) -> tuple[UnitPart, ...]:
        allowed: Mask = np.logical_and.reduce(self.sets.allowed[list(apps)])
        clusters = self.sets.combined.clusters
        return tuple(
            UnitPart(part.count, (allowed & mask_of(part.clusters, clusters)).tobytes())
            for part in parts
        )


class JointScores:
    """What apps that share a contended cluster lose; each set of apps is asked about once."""

    def __init__(
        self, combined: CombinedCandidates, objective: Objective, of_set: ScoreOfSet | None
    ) -> None:
        self.asked = 0
        """How many sets were asked about."""
        self._names = tuple(combined.clusters)
        self._apps, self._of_set = combined.apps, of_set
        self._most = objective.most_loss
        self._known: dict[tuple[int, AppMask], int | None] = {}
        self._scores: dict[tuple[int, AppMask], int | None] = {}
        asked = () if of_set is None else combined.families
        self.clusters = frozenset(combined.clusters[name] for name in asked)

    def loss(self, cluster: int, apps: AppMask) -> int | None:
        """Against the sum of each alone; None: they do not fit together."""
        if cluster not in self.clusters or not apps:
            return 0
        key = (cluster, apps)
        if key not in self._known:
            self._known[key] = self._loss(cluster, apps)
        return self._known[key]

    def _loss(self, cluster: int, apps: AppMask) -> int | None:
        together = self._joint(cluster, apps)
        if together is None:
            return None
        alone = sum(self._joint(cluster, 1 << app) or 0 for app in apps_of(apps))
        return min(max(alone - together, 0), self._most * apps.bit_count())

    def _joint(self, cluster: int, apps: AppMask) -> int | None:
        key = (cluster, apps)
        if key not in self._scores:
            assert self._of_set is not None
            self.asked += 1
            names = frozenset(self._apps[app] for app in apps_of(apps))
            self._scores[key] = self._of_set(self._names[cluster], names)
        return self._scores[key]


class ProblemChoices:
    """The problems of one alternative: one for each choice of tables, mostly one in all."""

    def __init__(self, sets: AdmissibleSets, objective: Objective, joint: JointScores) -> None:
        self._sets, self._objective, self._joint = sets, objective, joint
        self._members = _units(sets)
        merged = [merged_tables([sets.demands[app] for app in apps]) for apps in self._members]
        self._tables = [tables for tables, _ in merged]
        self.is_complete = (
            sets.is_complete
            and all(are_all for _, are_all in merged)
            and prod(map(len, self._tables)) <= MOST_CHOICES
        )
        """Whether these problems are all of it."""

    def problems(self) -> Iterator[PickProblem]:
        sets, objective, joint = self._sets, self._objective, self._joint
        preferences = preferences_of(sets.combined, sets.demands, objective.scores)
        for tables in islice(product(*self._tables), MOST_CHOICES):
            yield PickProblem(
                sets, objective, joint, preferences, members=self._members, tables=tables
            )


def _units(sets: AdmissibleSets) -> list[tuple[int, ...]]:
    """Where one app requires another and both count as many, they go to the same clusters."""
    required, counts = sets.combined.relations.required, [each.count for each in sets.demands]
    unit_of = list(range(len(counts)))
    for app, mask in enumerate(required):
        for other in apps_of(mask):
            if counts[app] == counts[other]:
                first, last = sorted((unit_of[app], unit_of[other]))
                unit_of = [first if unit == last else unit for unit in unit_of]
    return [
        tuple(app for app, of in enumerate(unit_of) if of == unit)
        for unit in dict.fromkeys(unit_of)
    ]


def _groups(family: AppFamily, units: Sequence[AppUnit]) -> tuple[CapacityGroup, ...]:
    """What the family says as numbers of units, for bounds: all of it, if units that cannot meet in
    pairs are all there is; else how many of all there are at most."""
    sets = [
        sum(1 << unit for unit, each in enumerate(units) if each.mask & ~mask == 0)
        for mask in family
    ]
    some = reduce(or_, sets, 0) & ~reduce(and_, sets)
    apart = {
        unit: sum(
            1 << other
            for other in apps_of(some)
            if other != unit and not any(mask >> unit & mask >> other & 1 for mask in sets)
        )
        for unit in apps_of(some)
    }
    found = [CapacityGroup(each, _most(sets, each)) for each in _components(apart)]
    if sum(each.most for each in found) > _most(sets, some):
        found = [CapacityGroup(some, _most(sets, some))]
    return tuple(each for each in found if each.most < each.units.bit_count())


def _most(sets: Sequence[UnitMask], units: UnitMask) -> int:
    return max((mask & units).bit_count() for mask in sets)


def _components(neighbours: dict[int, UnitMask]) -> list[UnitMask]:
    found: list[UnitMask] = []
    for unit, mask in neighbours.items():
        joined = mask | 1 << unit
        apart = []
        for each in found:
            if each & joined:
                joined |= each
            else:
                apart.append(each)
        found = [*apart, joined]
    return found
