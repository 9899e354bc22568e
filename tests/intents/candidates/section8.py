"""The answers of section 8 of the reference, as controllers give them."""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.intents.candidates.cluster_set import EVERYWHERE, ClusterSet
from dovetail.intents.candidates.combining import CombinedCandidates, combine
from dovetail.intents.candidates.partitions import (
    AppClusters,
    AppCompatibility,
    ClusterRefusal,
    ContendedCluster,
    ControllerAnswer,
    Part,
    PartitionCandidates,
)

APPS = ("fwall", "analytics")
CLUSTERS = ("p1+c1", "p1+c2", "p1+c3", "p1+c4")


def names(*clusters: str) -> frozenset[str]:
    return frozenset(f"p1+{each}" for each in clusters)


def allow(*clusters: str) -> ClusterSet:
    return ClusterSet.allow(names(*clusters))


def deny(*clusters: str) -> ClusterSet:
    return ClusterSet.deny(names(*clusters))


def listed(clusters: ClusterSet, count: int | None = None, **more: object) -> AppClusters:
    parts = (Part(count or 1, clusters),)
    return AppClusters(parts=parts, is_counted=count is not None, **more)  # type: ignore[arg-type]


def lists(controller: str, **apps: AppClusters) -> ControllerAnswer:
    return ControllerAnswer(
        controller=controller, candidates=PartitionCandidates(alternatives=(apps,))
    )


def affinity(
    *, denied: Iterable[tuple[str, str]] = (), required: Iterable[tuple[str, str]] = ()
) -> ControllerAnswer:
    rules = AppCompatibility(denied=frozenset(denied), required=frozenset(required))
    return ControllerAnswer(controller="affinity", candidates=rules)


NO_NODE = ClusterRefusal(token="amount", words="cpu: need 4 on one node, largest free 3 (n1,n2,n3)")
NO_QAT = ClusterRefusal(token="amount", words="intel.com/qat: need 1, none")

HPA = ControllerAnswer(
    controller="hpa",
    candidates=PartitionCandidates(
        alternatives=({"fwall": listed(deny("c3")), "analytics": listed(deny("c1"))},),
        contended=(
            ContendedCluster(
                "p1+c2", (frozenset(("fwall",)), frozenset(("analytics",))), "fwall+analytics: cpu"
            ),
        ),
    ),
    scores={"fwall": {"p1+c1": 9}},
    refusals={"fwall": {"p1+c3": NO_NODE}, "analytics": {"p1+c1": NO_QAT}},
)
GENERIC = lists(
    "generic", fwall=listed(allow("c1", "c2", "c3"), 1), analytics=listed(EVERYWHERE, 1)
)
TOGETHER = affinity(required=[("fwall", "analytics"), ("analytics", "fwall")])


def combined(*answers: ControllerAnswer) -> CombinedCandidates:
    return combine(answers, APPS, CLUSTERS)
