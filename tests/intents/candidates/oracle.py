"""What a pick is, taken literally: every assignment of apps to clusters is looked at.

Nothing of the package's algebra is used but the words of answers, so that tests compare two ways to
read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations, permutations, product

from dovetail.intents.candidates.partitions import (
    ANYWHERE,
    AppClusters,
    AppCompatibility,
    ControllerAnswer,
    PartitionCandidates,
)
from dovetail.intents.candidates.solver.problem import ScoreOfSet

Assignment = Mapping[str, frozenset[str]]
Choice = Sequence[Mapping[str, AppClusters]]
Value = tuple[int, ...]


class Literal:
    def __init__(
        self,
        answers: Sequence[ControllerAnswer],
        apps: Sequence[str],
        clusters: Sequence[str],
        score_of_set: ScoreOfSet | None = None,
    ) -> None:
        self.answers, self.apps, self.clusters = answers, apps, sorted(clusters)
        self.score_of_set = score_of_set
        self.lists = [
            e.candidates for e in answers if isinstance(e.candidates, PartitionCandidates)
        ]
        rules = [e.candidates for e in answers if isinstance(e.candidates, AppCompatibility)]
        self.denied = {pair for rule in rules for pair in rule.denied}
        self.required = {pair for rule in rules for pair in rule.required}

    def assignments(self) -> Iterator[Assignment]:
        """All that every controller agrees to."""
        seen = set()
        for choice in self.choices():
            for each in self.assignments_of(choice):
                key = tuple(each[app] for app in self.apps)
                if key not in seen:
                    seen.add(key)
                    yield each

    def best(self) -> Value | None:
        return min(
            (
                self.value(choice, each)
                for choice in self.choices()
                for each in self.assignments_of(choice)
            ),
            default=None,
        )

    def choices(self) -> Iterator[Choice]:
        return product(*(each.alternatives for each in self.lists))

    def assignments_of(self, choice: Choice) -> Iterator[Assignment]:
        options = [
            [
                frozenset(some)
                for some in combinations(self.clusters, self.count(choice, app))
                if all(is_served(each.get(app, ANYWHERE), frozenset(some)) for each in choice)
            ]
            for app in self.apps
        ]
        for held in product(*options):
            found = dict(zip(self.apps, held, strict=True))
            if all(self.is_admissible(c, self.there(found, c)) for c in self.clusters):
                yield found

    def count(self, choice: Choice, app: str) -> int:
        """The largest that is stated."""
        stated = [
            sum(part.count for part in each[app].parts)
            for each in choice
            if app in each and (each[app].is_counted or len(each[app].parts) > 1)
        ]
        return max(stated, default=1)

    def there(self, assignment: Assignment, cluster: str) -> frozenset[str]:
        return frozenset(app for app in self.apps if cluster in assignment[app])

    def is_admissible(self, cluster: str, apps: frozenset[str]) -> bool:
        """Whether these, and no others, may be on the cluster."""
        if any(one in apps and two in apps for one, two in self.denied):
            return False
        if any(app in apps and other not in apps for app, other in self.required):
            return False
        for each in self.lists:
            for contended in each.contended:
                if contended.cluster == cluster and contended.fitting:
                    mentioned = apps & frozenset().union(*contended.fitting)
                    if not any(mentioned <= fitting for fitting in contended.fitting):
                        return False
        is_asked = any(c.cluster == cluster for each in self.lists for c in each.contended)
        if self.score_of_set and is_asked and apps:
            return self.score_of_set(cluster, apps) is not None
        return True

    def value(self, choice: Choice, assignment: Assignment) -> Value:
        """What is to be small, in order."""
        ranks = sum(self.rank(choice, app, c) for app in self.apps for c in assignment[app])
        score = departures = 0
        for cluster in self.clusters:
            apps = self.there(assignment, cluster)
            score += self.joint_score(cluster, apps)
            departures += len(apps) * self.place(choice, cluster, apps)
        last = [
            number
            for app in self.apps
            for number in (self.lost(assignment, app), self.places(choice, app, assignment[app]))
        ]
        return ranks, -score, departures, *last

    def lost(self, assignment: Assignment, app: str) -> int:
        """Of the score, for sharing clusters with apps before it."""
        found = 0
        for cluster in assignment[app]:
            there = self.there(assignment, cluster)
            before = frozenset(self.apps[: self.apps.index(app)]) & there
            together = self.joint_score(cluster, before | {app})
            found += self.joint_score(cluster, before) + self.score(app, cluster) - together
        return found

    def rank(self, choice: Choice, app: str, cluster: str) -> int:
        found = 0
        for each in choice:
            preference = each.get(app, ANYWHERE).preference
            holding = [rank for rank, some in enumerate(preference) if cluster in some]
            found += holding[0] if holding else len(preference)
        return found

    def score(self, app: str, cluster: str) -> int:
        return sum(each.scores.get(app, {}).get(cluster, 0) for each in self.answers)

    def joint_score(self, cluster: str, apps: frozenset[str]) -> int:
        found = sum(self.score(app, cluster) for app in apps)
        is_asked = any(c.cluster == cluster for each in self.lists for c in each.contended)
        if self.score_of_set and is_asked and len(apps) > 1:
            alone = sum(self.score_of_set(cluster, frozenset((app,))) or 0 for app in apps)
            found += (self.score_of_set(cluster, apps) or 0) - alone
        return found

    def place(self, choice: Choice, cluster: str, apps: frozenset[str]) -> int:
        """Of the first largest set that has all of them."""
        if not apps:
            return 0
        return next(n for n, each in enumerate(self.largest(choice, cluster)) if apps <= each)

    def largest(self, choice: Choice, cluster: str) -> list[frozenset[str]]:
        listed = [app for app in self.apps if self.is_listed(choice, app, cluster)]
        fitting = [
            some
            for some in map(frozenset, subsets(listed))
            if self.is_admissible_by_rule(cluster, some)
        ]
        found = [each for each in fitting if not any(each < other for other in fitting)]
        return sorted(found, key=lambda each: [app not in each for app in self.apps])

    def is_admissible_by_rule(self, cluster: str, apps: frozenset[str]) -> bool:
        given, self.score_of_set = self.score_of_set, None
        try:
            return self.is_admissible(cluster, apps)
        finally:
            self.score_of_set = given

    def is_listed(self, choice: Choice, app: str, cluster: str) -> bool:
        return all(
            any(cluster in part.clusters for part in each.get(app, ANYWHERE).parts)
            for each in choice
        )

    def places(self, choice: Choice, app: str, held: frozenset[str]) -> int:
        order = sorted(
            self.clusters, key=lambda c: (self.rank(choice, app, c), -self.score(app, c), c)
        )
        return sum(order.index(cluster) for cluster in held)


def is_served(answer: AppClusters, held: frozenset[str]) -> bool:
    """Whether disjoint choices of the parts are among the clusters, and no others are."""
    if not all(any(cluster in part.clusters for part in answer.parts) for cluster in held):
        return False
    if not answer.is_counted and len(answer.parts) == 1:
        return True
    slots = [part.clusters for part in answer.parts for _ in range(part.count)]
    return any(
        all(cluster in slot for cluster, slot in zip(some, slots, strict=True))
        for some in permutations(sorted(held), len(slots))
    )


def subsets(items: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(items, size) for size in range(len(items) + 1))
