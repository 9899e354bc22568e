"""Combining: the answers of all placement controllers as one, by intersection.

A plan calls `combine` once all controllers have answered. What comes out depends on what they say
and not on the order in which they do. Lists of clusters are intersected without being expanded, the
largest count wins, families of apps on contended clusters are intersected, relations between apps
are merged. Where controllers have several alternatives, one of each makes an alternative of all;
these are made one by one, as they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, reduce
from itertools import islice, product
from math import prod
from operator import or_

import msgspec

from dovetail.intents.candidates.app_demand import AppDemand, demand_of, shortage_of, union
from dovetail.intents.candidates.app_relations import AppRelations, relations_of
from dovetail.intents.candidates.app_sets import AppMask, apps_of, intersection, largest
from dovetail.intents.candidates.cluster_set import ClusterSet
from dovetail.intents.candidates.partitions import (
    ANYWHERE,
    AppClusters,
    AppCompatibility,
    ClusterRefusal,
    ControllerAnswer,
    PartitionCandidates,
)
from dovetail.intents.names import ClusterName

AlternativeChoice = tuple[Mapping[str, AppClusters], ...]
"""An alternative of each controller."""

CONTRADICTION = "relations"
MOST_ALTERNATIVES = 256
"""Of all controllers together."""


class GroupRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why apps have no candidate, whatever the others do."""

    apps: tuple[str, ...]
    token: str
    """`count`: too few clusters; `relations`: app-to-app rules that contradict each other;
    `candidates`: a controller that has none."""
    words: str


class Exclusion(msgspec.Struct, frozen=True, kw_only=True):
    """That a controller leaves a cluster out for an app."""

    controller: str
    refusal: ClusterRefusal | None
    """Why, if it told."""


class CombinedCandidates:
    """What all controllers say of a group together; `combine` makes it."""

    def __init__(
        self,
        answers: Sequence[ControllerAnswer],
        apps: Sequence[str],
        clusters: Sequence[ClusterName],
    ) -> None:
        self.apps = tuple(apps)
        """In the order of the group: who comes first is served first."""
        self.clusters: Mapping[ClusterName, int] = {
            name: place for place, name in enumerate(sorted(set(clusters)))
        }
        """By name, with their places in the order of names."""
        self.answers = tuple(sorted(answers, key=lambda answer: answer.controller))
        self.partitions: Mapping[str, PartitionCandidates] = {
            each.controller: each.candidates
            for each in self.answers
            if isinstance(each.candidates, PartitionCandidates)
        }
        """By controller, of those that answer with lists of clusters."""
        self.relations = _relations(self.answers, self.apps)
        self.families = _families(self.partitions, self.apps, self.clusters)
        """By contended cluster: the largest sets of apps that it takes together."""
        self.contention = _contention(self.partitions)
        """By contended cluster, if a controller told: who is in whose way, for what."""
        self._demands: dict[tuple[int, ...], tuple[AppDemand, str]] = {}
        self.refusals = tuple(self._refusals())
        """Empty: there may be a pick."""

    @property
    def is_complete(self) -> bool:
        """Whether these are all the candidates that there are."""
        number = prod(len(each.alternatives) for each in self.partitions.values())
        return (
            number <= MOST_ALTERNATIVES
            and all(each.is_complete for each in self.partitions.values())
            and all(demand.is_complete for demand, _ in self._demands.values())
        )

    def alternatives(self) -> Iterator[tuple[AppDemand, ...]]:
        """Demands of the apps that can be met, one app at a time: for every choice of an
        alternative of each controller, no more than MOST_ALTERNATIVES."""
        for choice in islice(self._choices(), MOST_ALTERNATIVES):
            demands = tuple(self._demand(app, choice)[0] for app in self.apps)
            if not self._shortages(choice):
                yield demands

    def domain(self, app: str, controller: str) -> ClusterSet:
        """Where the controller lets the app go, in any of its alternatives."""
        return union(
            part.clusters
            for each in self.partitions[controller].alternatives
            for part in each.get(app, ANYWHERE).parts
        )

    def exclusions(self, app: str, cluster: ClusterName) -> list[Exclusion]:
        """By whom the app is kept away from the cluster, and why; contention is no exclusion."""
        return [
            Exclusion(controller=each.controller, refusal=each.refusals.get(app, {}).get(cluster))
            for each in self.answers
            if each.controller in self.partitions
            and cluster not in self.domain(app, each.controller)
        ]

    def _choices(self) -> Iterator[AlternativeChoice]:
        return product(*(each.alternatives for each in self.partitions.values()))

    def _demand(self, app: str, choice: AlternativeChoice) -> tuple[AppDemand, str]:
        """And why it cannot be met. Alternatives mostly differ in some apps: of the others it is
        made once."""
        answers = [each[app] for each in choice if app in each]
        key = tuple(map(id, answers))
        found = self._demands.get(key)
        if found is None:
            demand = demand_of(answers)
            short = [shortage_of(parts, self.clusters) for parts in demand.tables]
            found = self._demands[key] = (demand, short[0] if all(short) else "")
        return found

    def _refusals(self) -> Iterator[GroupRefusal]:
        for each in self.relations.contradictions():
            yield GroupRefusal(apps=each.apps, token=CONTRADICTION, words=each.words)
        for name, candidates in self.partitions.items():
            if not candidates.alternatives:
                words = f"{name} leaves no candidate"
                yield GroupRefusal(apps=self.apps, token="candidates", words=words)  # noqa: S106
        if next(self.alternatives(), None) is None:
            for choice in islice(self._choices(), 1):
                yield from self._shortages(choice)

    def _shortages(self, choice: AlternativeChoice) -> list[GroupRefusal]:
        """Apps that want more clusters than they may have, or than those they require have."""
        found = []
        demands = [self._demand(app, choice) for app in self.apps]
        for app, (demand, short) in zip(self.apps, demands, strict=True):
            if short:
                found.append(GroupRefusal(apps=(app,), token="count", words=short))  # noqa: S106
            for other in apps_of(self.relations.required[self.apps.index(app)]):
                if demand.count > demands[other][0].count:
                    words = (
                        f"{app} requires {self.apps[other]}: count {demand.count}"
                        f" > count {demands[other][0].count}"
                    )
                    both = (app, self.apps[other])
                    found.append(GroupRefusal(apps=both, token="count", words=words))  # noqa: S106
        return found


def combine(
    answers: Sequence[ControllerAnswer], apps: Sequence[str], clusters: Sequence[ClusterName]
) -> CombinedCandidates:
    """`clusters`: all there are; what answers say of others counts for nothing."""
    return CombinedCandidates(answers, apps, clusters)


def _relations(answers: Sequence[ControllerAnswer], apps: Sequence[str]) -> AppRelations:
    return relations_of(
        (each.candidates for each in answers if isinstance(each.candidates, AppCompatibility)),
        apps,
    )


def _contention(partitions: Mapping[str, PartitionCandidates]) -> dict[ClusterName, str]:
    found: dict[ClusterName, str] = {}
    for candidates in partitions.values():
        for each in candidates.contended:
            if each.why:
                known = found.get(each.cluster)
                found[each.cluster] = f"{known}; {each.why}" if known else each.why
    return found


def _families(
    partitions: Mapping[str, PartitionCandidates],
    apps: Sequence[str],
    clusters: Mapping[ClusterName, int],
) -> dict[ClusterName, tuple[AppMask, ...]]:
    """Families of several controllers are intersected; equal ones once for all their clusters."""
    bits = {app: 1 << number for number, app in enumerate(apps)}
    every = (1 << len(apps)) - 1

    @cache
    def family(fitting: tuple[frozenset[str], ...]) -> tuple[AppMask, ...]:
        sets = [sum(bits.get(app, 0) for app in each) for each in fitting]
        # Apps that are in none of the sets are not contended by this controller.
        free = every & ~reduce(or_, sets, 0)
        return tuple(largest(each | free for each in sets))

    @cache
    def both(left: tuple[AppMask, ...], right: tuple[AppMask, ...]) -> tuple[AppMask, ...]:
        return tuple(intersection(left, right))

    found: dict[ClusterName, tuple[AppMask, ...]] = {}
    for candidates in partitions.values():
        for each in candidates.contended:
            if each.cluster in clusters:
                here = family(each.fitting)
                known = found.get(each.cluster)
                found[each.cluster] = here if known is None else both(known, here)
    return found
