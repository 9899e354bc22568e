"""What a controller answers is about what it was asked about, or it is refused with words."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

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
from dovetail.service.intents.controllers.contracts.placement import CandidatesResponse
from dovetail.service.intents.controllers.translation import (
    MOST_CANDIDATES,
    BadAnswer,
    answer_of,
    question_of,
)
from dovetail.wire.codec import BadMessage, decode
from tests.service.intents.controllers.documented import THEIRS
from tests.support.intents.scenario import ANALYTICS, C1, C2, C3, FWALL, base

APPS, CLUSTERS = (FWALL, ANALYTICS), tuple(base().fleet.clusters)


def read(**response: Any) -> ControllerAnswer:
    """What is made of an answer that another library wrote."""
    data = THEIRS["CandidatesResponse"](**response).SerializeToString()
    return answer_of("region", decode(CandidatesResponse, data), APPS, CLUSTERS)


def lists(*apps: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"apps": list(apps)}]


def app(name: str, *clusters: str, count: int = 0, denies: bool = False) -> dict[str, Any]:
    return {
        "app": name,
        "parts": [{"count": count, "clusters": {"names": clusters, "denies": denies}}],
    }


def test_lists_of_clusters_in_either_form() -> None:
    answer = read(candidates=lists(app(FWALL, C3, denies=True), app(ANALYTICS, C3, count=2)))
    assert answer.controller == "region"
    assert answer.candidates == PartitionCandidates(
        alternatives=(
            {
                FWALL: AppClusters(parts=(Part(1, ClusterSet.deny({C3})),), is_counted=False),
                ANALYTICS: AppClusters(parts=(Part(2, ClusterSet.allow({C3})),)),
            },
        )
    )


def test_contended_clusters_come_in_the_order_of_their_names() -> None:
    answer = read(
        candidates=lists(app(FWALL, C1)),
        contended=[
            {"cluster": C3, "fitting": [{"apps": [FWALL]}]},
            {"cluster": C2, "fitting": [{"apps": [ANALYTICS]}, {"apps": [FWALL]}]},
        ],
        is_cut=True,
    )
    assert isinstance(answer.candidates, PartitionCandidates)
    assert answer.candidates.contended == (
        ContendedCluster(C2, (frozenset({ANALYTICS}), frozenset({FWALL}))),
        ContendedCluster(C3, (frozenset({FWALL}),)),
    )
    assert not answer.candidates.is_complete


def test_which_apps_may_meet() -> None:
    pairs = [{"app": FWALL, "other": ANALYTICS}]
    answer = read(compatibility={"denied": pairs, "required": pairs})
    assert answer.candidates == AppCompatibility(
        denied=frozenset({(ANALYTICS, FWALL)}), required=frozenset({(FWALL, ANALYTICS)})
    )
    assert read(compatibility={}).candidates == AppCompatibility()


def test_scores_and_reasons_by_app_and_cluster() -> None:
    answer = read(
        candidates=lists(),
        scores=[{"app": FWALL, "cluster": C1, "score": 5}],
        reasons=[{"app": FWALL, "cluster": C3, "words": "too  far\n" + "x" * 1000}],
    )
    assert answer.scores == {FWALL: {C1: 5}}
    assert answer.refusals[FWALL][C3].words.startswith("too far xxx")
    assert len(answer.refusals[FWALL][C3].words) == 500
    assert answer.refusals[FWALL][C3].token == "refused"
    assert isinstance(answer.refusals[FWALL][C3], ClusterRefusal)


@pytest.mark.parametrize(
    ("response", "words"),
    [
        ({}, "neither candidates nor compatibility"),
        ({"candidates": lists(), "compatibility": {}}, "both candidates and compatibility"),
        ({"contended": [{"cluster": C1}]}, "neither candidates nor compatibility"),
        ({"candidates": lists(app("moon", C1))}, "names app 'moon'"),
        ({"candidates": lists(app(FWALL, "p1+moon"))}, r"names cluster 'p1\+moon'"),
        ({"candidates": lists(app(FWALL, "x" * 10_000))}, r"cluster 'x{64}\.\.\.'"),
        ({"candidates": lists(app(FWALL, C1), app(FWALL, C2))}, "app 'fwall' twice"),
        ({"candidates": lists(app(FWALL, C1, count=-1))}, "negative count for app 'fwall'"),
        ({"candidates": lists({"app": FWALL})}, "no list of clusters for app 'fwall'"),
        ({"candidates": lists() * (MOST_CANDIDATES + 1)}, "has 257 candidates, where 256"),
        (
            {"candidates": lists(), "contended": [{"cluster": C1}, {"cluster": C1}]},
            r"contended cluster 'p1\+c1' twice",
        ),
        (
            {"candidates": lists(), "contended": [{"cluster": C1, "fitting": [{"apps": ["m"]}]}]},
            "names app 'm'",
        ),
        ({"compatibility": {"denied": [{"app": FWALL, "other": "m"}]}}, "names app 'm'"),
        (
            {
                "candidates": lists(),
                "scores": [{"app": FWALL, "cluster": C1, "score": 2**62}],
            },
            "a score of 46116",
        ),
        (
            {"candidates": lists(), "reasons": [{"app": FWALL, "cluster": "m"}]},
            "names cluster 'm'",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(response: dict[str, Any], words: str) -> None:
    with pytest.raises(BadAnswer, match=words):
        read(**response)


@given(some.binary(max_size=200))
def test_any_bytes_are_an_answer_or_are_refused(data: bytes) -> None:
    with suppress(BadMessage, BadAnswer):
        answer_of("region", decode(CandidatesResponse, data), APPS, CLUSTERS)


def test_the_question_has_apps_in_their_order_and_all_clusters() -> None:
    group = base().group
    question = question_of(group, base().fleet, "west")
    assert (question.group, question.intent) == (group.name, "west")
    assert [each.name for each in question.apps] == [FWALL, ANALYTICS]
    first = msgspec.json.decode(question.apps[0].objects[0])
    assert first == group.apps[0].objects[0]
    assert [each.name for each in question.clusters] == list(CLUSTERS)
    assert question.clusters[0].health == "ready"


def test_what_is_in_a_secret_is_nobodys_business() -> None:
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "aHVzaA=="}}
    group = base().group
    app = msgspec.structs.replace(group.apps[0], objects=(secret,))
    question = question_of(msgspec.structs.replace(group, apps=(app,)), base().fleet, "")
    assert msgspec.json.decode(question.apps[0].objects[0]) == {
        "kind": "Secret",
        "metadata": {"name": "s"},
    }
