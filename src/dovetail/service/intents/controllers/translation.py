"""Questions and answers of placement controllers as messages; what makes no sense is refused.

The fan-out checks what external controllers say before anybody combines it: an answer is about
clusters and apps that were asked about, and about nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from dovetail.core.errors import DovetailError
from dovetail.intents.candidates.cluster_set import ClusterSet
from dovetail.intents.candidates.partitions import (
    AppClusters,
    AppCompatibility,
    ClusterRefusal,
    ContendedCluster,
    ControllerAnswer,
    Part,
    PartitionCandidates,
)
from dovetail.intents.fleet import FleetSnapshot
from dovetail.intents.group import DeploymentGroup, ManifestObject
from dovetail.intents.names import ClusterName
from dovetail.service.intents.controllers.contracts import placement as wire

MOST_CANDIDATES = 256
"""Of one answer: all of them are combined with all of the others'."""
LARGEST_SCORE = 10**9
LONGEST_TOKEN, LONGEST_WORDS = 64, 500
SECRET_FIELDS = ("data", "stringData")


class BadAnswer(DovetailError):
    """An answer that cannot be meant."""


def question_of(
    group: DeploymentGroup, fleet: FleetSnapshot, intent: str
) -> wire.CandidatesRequest:
    return wire.CandidatesRequest(
        group=group.name,
        intent=intent,
        apps=tuple(
            wire.App(name=app.name, objects=tuple(map(object_text, app.objects)))
            for app in group.apps
        ),
        clusters=tuple(
            wire.Cluster(
                name=cluster.name,
                labels=tuple(sorted(cluster.labels)),
                health=cluster.state.value,
                observed_at=cluster.observed_at,
            )
            for cluster in fleet.clusters.values()
        ),
    )


def object_text(manifest: ManifestObject) -> str:
    """As JSON; what is in a Secret stays here."""
    shown: dict[str, Any] = dict(manifest)
    if manifest.get("kind") == "Secret":
        shown = {key: value for key, value in shown.items() if key not in SECRET_FIELDS}
    return msgspec.json.encode(shown).decode()


def answer_of(
    controller: str,
    response: wire.CandidatesResponse,
    apps: Collection[str],
    clusters: Collection[ClusterName],
) -> ControllerAnswer:
    """Raises BadAnswer."""
    return AnswerReader(frozenset(apps), clusters).answer(controller, response)


class AnswerReader:
    """Reads a message, knowing what was asked about."""

    def __init__(self, apps: Collection[str], clusters: Collection[ClusterName]) -> None:
        self._apps, self._clusters = apps, clusters

    def answer(self, controller: str, response: wire.CandidatesResponse) -> ControllerAnswer:
        return ControllerAnswer(
            controller=controller,
            candidates=self._candidates(response),
            scores=self._by_app(
                (each.app, each.cluster, self._score(each)) for each in response.scores
            ),
            refusals=self._by_app(
                (each.app, each.cluster, refusal_of(each)) for each in response.reasons
            ),
        )

    def _candidates(
        self, response: wire.CandidatesResponse
    ) -> PartitionCandidates | AppCompatibility:
        has_candidates = bool(response.candidates or response.contended)
        if has_candidates and response.compatibility is not None:
            raise BadAnswer("has both candidates and compatibility")
        if response.compatibility is not None:
            return self._compatibility(response.compatibility)
        if not response.candidates:
            raise BadAnswer("has neither candidates nor compatibility")
        if len(response.candidates) > MOST_CANDIDATES:
            raise BadAnswer(
                f"has {len(response.candidates)} candidates, where {MOST_CANDIDATES} are allowed"
            )
        contended = sorted(map(self._contended, response.contended), key=lambda each: each.cluster)
        refuse_repeated("contended cluster", [each.cluster for each in contended])
        return PartitionCandidates(
            alternatives=tuple(map(self._alternative, response.candidates)),
            contended=tuple(contended),
            is_complete=not response.is_cut,
        )

    def _alternative(self, candidate: wire.Candidate) -> Mapping[str, AppClusters]:
        refuse_repeated("app", [each.app for each in candidate.apps])
        return {self._app(each.app): self._app_clusters(each) for each in candidate.apps}

    def _app_clusters(self, told: wire.AppClusters) -> AppClusters:
        if not told.parts:
            raise BadAnswer(f"has no list of clusters for app {told.app!r}")
        if any(part.count < 0 for part in told.parts):
            raise BadAnswer(f"has a negative count for app {told.app!r}")
        return AppClusters(
            parts=tuple(Part(part.count or 1, self._set(part.clusters)) for part in told.parts),
            is_counted=any(part.count for part in told.parts),
            preference=tuple(map(self._set, told.preference)),
        )

    def _set(self, told: wire.ClusterList) -> ClusterSet:
        return ClusterSet(frozenset(map(self._cluster, told.names)), told.denies)

    def _contended(self, told: wire.ContendedCluster) -> ContendedCluster:
        fitting = tuple(frozenset(map(self._app, each.apps)) for each in told.fitting)
        return ContendedCluster(self._cluster(told.cluster), fitting)

    def _compatibility(self, told: wire.Compatibility) -> AppCompatibility:
        denied = ((self._app(each.app), self._app(each.other)) for each in told.denied)
        required = ((self._app(each.app), self._app(each.other)) for each in told.required)
        return AppCompatibility(
            denied=frozenset((min(pair), max(pair)) for pair in denied if len(set(pair)) == 2),
            required=frozenset(pair for pair in required if len(set(pair)) == 2),
        )

    def _by_app(
        self, told: Iterable[tuple[str, ClusterName, Any]]
    ) -> Mapping[str, Mapping[ClusterName, Any]]:
        found: dict[str, dict[ClusterName, Any]] = {}
        for app, cluster, value in told:
            found.setdefault(self._app(app), {})[self._cluster(cluster)] = value
        return found

    def _score(self, told: wire.ClusterScore) -> int:
        if abs(told.score) > LARGEST_SCORE:
            raise BadAnswer(f"has a score of {told.score}, where {LARGEST_SCORE} is the largest")
        return told.score

    def _app(self, name: str) -> str:
        if name not in self._apps:
            raise BadAnswer(f"names app {shown_name(name)}, which it was not asked about")
        return name

    def _cluster(self, name: ClusterName) -> ClusterName:
        if name not in self._clusters:
            raise BadAnswer(f"names cluster {shown_name(name)}, which it was not asked about")
        return name


def refusal_of(told: wire.ClusterReason) -> ClusterRefusal:
    words = " ".join(told.words.split())
    return ClusterRefusal(
        token=told.token[:LONGEST_TOKEN] or "refused", words=words[:LONGEST_WORDS] or "refused"
    )


def refuse_repeated(what: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadAnswer(f"has the {what} {shown_name(twice)} twice")


def shown_name(name: str) -> str:
    return repr(name if len(name) <= LONGEST_TOKEN else f"{name[:LONGEST_TOKEN]}...")
