"""Answers of controllers about a large fleet, combined and picked, on one core."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from dovetail.intents.candidates.cluster_set import ClusterSet
from dovetail.intents.candidates.combining import combine
from dovetail.intents.candidates.expanding import candidates_document
from dovetail.intents.candidates.partitions import (
    AppClusters,
    AppCompatibility,
    ContendedCluster,
    ControllerAnswer,
    Part,
    PartitionCandidates,
)
from dovetail.intents.candidates.picking import Pick, pick
from dovetail.intents.candidates.solver.problem import ScoreOfSet

from ..agent.times import Times

EXCEPTIONS = 20
"""One cluster in so many is an exception for an app: 5 %."""
ROUNDS = 5


@dataclass(slots=True)
class Fleet:
    """What controllers say, and what is measured about it."""

    name: str
    apps: tuple[str, ...]
    clusters: tuple[str, ...]
    answers: list[ControllerAnswer]
    score_of_set: ScoreOfSet | None = None
    combined: Times = field(default_factory=lambda: Times(of_processor=True))
    picked: Times = field(default_factory=lambda: Times(of_processor=True))
    shown: Times = field(default_factory=lambda: Times(of_processor=True))
    document_bytes: int = 0
    is_proven: bool = False
    digests: set[str] = field(default_factory=set)


class Story:
    """A fleet with so many clusters and apps; everything follows from the seed."""

    def __init__(self, clusters: int, apps: int) -> None:
        self.clusters = tuple(f"p{n % 5}+c{n:05}" for n in range(clusters))
        self.apps = tuple(f"app-{n:02}" for n in range(apps))
        self.random = random.Random(13)

    def some(self, share: int = EXCEPTIONS) -> list[str]:
        return self.random.sample(self.clusters, len(self.clusters) // share)

    def hpa(
        self,
        contended: Sequence[ContendedCluster] = (),
        scores: Mapping[str, Mapping[str, int]] | None = None,
    ) -> ControllerAnswer:
        """Each app goes to most clusters."""
        lists = {
            app: AppClusters(parts=(Part(1, ClusterSet.deny(self.some())),), is_counted=False)
            for app in self.apps
        }
        return ControllerAnswer(
            controller="hpa",
            candidates=PartitionCandidates(alternatives=(lists,), contended=tuple(contended)),
            scores=scores or {},
        )

    def generic(self, counts: Sequence[int] = (1,)) -> ControllerAnswer:
        lists = {
            app: AppClusters(
                parts=(Part(counts[n % len(counts)], ClusterSet.deny(self.some(100))),),
                preference=(ClusterSet.allow(self.some(2)),) if n % 4 == 0 else (),
            )
            for n, app in enumerate(self.apps)
        }
        return ControllerAnswer(
            controller="generic", candidates=PartitionCandidates(alternatives=(lists,))
        )

    def contended(self, clusters: Sequence[str], most: int) -> list[ContendedCluster]:
        """Each takes so many of the apps, of few kinds of clusters."""
        kinds = [
            tuple(
                frozenset(self.random.sample(self.apps, most))
                for _ in range(2 * len(self.apps) // most)
            )
            for _ in range(10)
        ]
        return [ContendedCluster(name, self.random.choice(kinds)) for name in sorted(clusters)]

    def scores(self, clusters: Sequence[str], highest: int) -> dict[str, dict[str, int]]:
        return {
            app: {name: self.random.randint(1, highest) for name in clusters} for app in self.apps
        }


def stories(clusters: int, apps: int) -> Iterator[Fleet]:
    makers: dict[str, Callable[[Story], Fleet]] = {
        "no contention": plain,
        "5 % contended, scored, affinity": mixed,
        "all contended": all_contended,
        "all apps want 10 clusters": scarce,
        "5 optional GPUs for all apps": optional,
        "4 apps on every cluster": everywhere,
    }
    for name, make in makers.items():
        fleet = make(Story(clusters, apps))
        fleet.name = name
        yield fleet


def plain(story: Story) -> Fleet:
    return Fleet("", story.apps, story.clusters, [story.hpa(), story.generic((1, 2, 3))])


def mixed(story: Story) -> Fleet:
    with_gpu = story.some()
    apps = story.apps
    affinity = AppCompatibility(
        denied=frozenset({(apps[0], apps[1]), (apps[2], apps[3]), (apps[2], apps[4])}),
        required=frozenset({(apps[5], apps[6]), (apps[6], apps[5])}),
    )
    answers = [
        story.hpa(story.contended(with_gpu, 3), story.scores(with_gpu, 10)),
        story.generic(),
        ControllerAnswer(controller="affinity", candidates=affinity),
    ]
    return Fleet("", apps, story.clusters, answers)


def all_contended(story: Story) -> Fleet:
    answers = [
        story.hpa(story.contended(story.clusters, 2), story.scores(story.clusters, 10)),
        story.generic(),
    ]
    return Fleet("", story.apps, story.clusters, answers)


def scarce(story: Story) -> Fleet:
    best = story.clusters[:10]
    contended = [
        ContendedCluster(name, tuple(frozenset((app,)) for app in story.apps)) for name in best
    ]
    return Fleet("", story.apps, story.clusters, [story.hpa(contended, story.scores(best, 10))])


def optional(story: Story) -> Fleet:
    with_gpu = story.clusters[:5]
    contended = [ContendedCluster(name, (frozenset(story.apps),)) for name in with_gpu]
    answer = story.hpa(contended, {app: dict.fromkeys(with_gpu, 9) for app in story.apps})

    return Fleet("", story.apps, story.clusters, [answer], lambda *_: 9)


def everywhere(story: Story) -> Fleet:
    hpa = ControllerAnswer(controller="hpa", candidates=PartitionCandidates(alternatives=({},)))
    counts = [len(story.clusters) if n < 4 else 1 for n in range(len(story.apps))]
    lists = {
        app: AppClusters(parts=(Part(count, ClusterSet.deny(())),))
        for app, count in zip(story.apps, counts, strict=True)
    }
    generic = ControllerAnswer(
        controller="generic", candidates=PartitionCandidates(alternatives=(lists,))
    )
    return Fleet("", story.apps, story.clusters, [hpa, generic])


def measure(fleet: Fleet) -> None:
    """Again and again, with the answers in another order each time."""
    answers = list(fleet.answers)
    for number in range(ROUNDS):
        random.Random(number).shuffle(answers)
        with fleet.combined.one():
            combined = combine(answers, fleet.apps, fleet.clusters)
        with fleet.picked.one():
            found = pick(combined, fleet.score_of_set)
        with fleet.shown.one():
            document = orjson.dumps(candidates_document(combined))
        assert isinstance(found, Pick), found
        fleet.document_bytes, fleet.is_proven = len(document), found.is_proven
        chosen = orjson.dumps(
            {app: [each.cluster for each in of] for app, of in found.clusters.items()}
        )
        fleet.digests.add(hashlib.sha256(document + chosen).hexdigest())
