"""Section 8 of the reference, from the controllers' answers on: candidates, pick, V2, V5 and V6."""

from __future__ import annotations

from itertools import permutations

import pytest

from dovetail.intents.candidates.cluster_set import EVERYWHERE
from dovetail.intents.candidates.combining import CombinedCandidates
from dovetail.intents.candidates.conflicts import NoPick
from dovetail.intents.candidates.expanding import candidates_document, expanded
from dovetail.intents.candidates.partitions import ControllerAnswer
from dovetail.intents.candidates.picking import Pick, pick
from tests.intents.candidates.oracle import Literal
from tests.intents.candidates.section8 import (
    APPS,
    CLUSTERS,
    GENERIC,
    HPA,
    TOGETHER,
    affinity,
    allow,
    combined,
    deny,
    listed,
    lists,
)


def candidates(of: CombinedCandidates) -> list[object]:
    found: list[object] = candidates_document(of)["candidates"]
    return found


def picked(*answers: ControllerAnswer) -> dict[str, list[str]]:
    found = pick(combined(*answers))
    assert isinstance(found, Pick), found
    assert found.is_proven
    return {app: [each.cluster for each in of] for app, of in found.clusters.items()}


def refused(*answers: ControllerAnswer) -> NoPick:
    found = pick(combined(*answers))
    assert isinstance(found, NoPick), found
    return found


def test_hpa_alone_has_two_candidates() -> None:
    """P1 gives c2 to fwall, P2 to analytics; a tie between the forms is an allow list."""
    assert candidates(combined(HPA)) == [
        {
            "fwall": {"count": 1, "deny": ["p1+c3"]},
            "analytics": {"count": 1, "allow": ["p1+c3", "p1+c4"]},
        },
        {
            "fwall": {"count": 1, "allow": ["p1+c1", "p1+c4"]},
            "analytics": {"count": 1, "deny": ["p1+c1"]},
        },
    ]


def test_what_is_contended_and_why() -> None:
    assert candidates_document(combined(HPA))["contended"] == [
        {
            "allow": ["p1+c2"],
            "sets": [["fwall"], ["analytics"]],
            "why": "fwall+analytics: cpu",
        }
    ]
    only_c2 = lists("generic", fwall=listed(allow("c2")), analytics=listed(allow("c2")))
    assert refused(HPA, only_c2).words == (
        "fwall can go to p1+c2 and analytics can go to p1+c2, but not all at once:"
        " p1+c2 takes 1 of fwall and analytics at once (fwall+analytics: cpu)"
    )


def test_its_candidates_are_the_eight_feasible_pairs() -> None:
    pairs = {
        (fwall, analytics)
        for candidate in expanded(combined(HPA)).candidates
        for fwall in candidate["fwall"][0].clusters.within(CLUSTERS)
        for analytics in candidate["analytics"][0].clusters.within(CLUSTERS)
    }
    assert pairs == {
        (f"p1+{fwall}", f"p1+{analytics}")
        for fwall, analytics in (
            *(("c1", "c2"), ("c1", "c3"), ("c1", "c4"), ("c2", "c3")),
            *(("c2", "c4"), ("c4", "c2"), ("c4", "c3"), ("c4", "c4")),
        )
    }
    literal = Literal([HPA], APPS, CLUSTERS)
    assert len(list(literal.assignments())) == 8


def test_combined_with_generic_placement() -> None:
    assert candidates(combined(HPA, GENERIC)) == [
        {
            "fwall": {"count": 1, "allow": ["p1+c1", "p1+c2"]},
            "analytics": {"count": 1, "allow": ["p1+c3", "p1+c4"]},
        },
        {
            "fwall": {"count": 1, "allow": ["p1+c1"]},
            "analytics": {"count": 1, "deny": ["p1+c1"]},
        },
    ]


def test_the_pick() -> None:
    for answers in permutations((HPA, GENERIC)):
        found = pick(combined(*answers))
        assert isinstance(found, Pick)
        assert [(each.cluster, each.score) for each in found.clusters["fwall"]] == [("p1+c1", 9)]
        assert [(each.cluster, each.score) for each in found.clusters["analytics"]] == [
            ("p1+c3", 0)
        ]
        assert (found.score, found.departures, found.is_proven) == (9, 0, True)


def test_v1_without_c1_the_contended_cluster_goes_to_fwall() -> None:
    hpa = ControllerAnswer(
        controller="hpa",
        candidates=HPA.candidates,
        refusals=HPA.refusals,
    )
    away = lists("generic", fwall=listed(allow("c2", "c3"), 1), analytics=listed(EVERYWHERE, 1))
    assert picked(hpa, away) == {"fwall": ["p1+c2"], "analytics": ["p1+c3"]}


def test_v2_two_clusters_for_analytics() -> None:
    generic = lists(
        "generic", fwall=listed(allow("c1", "c2", "c3"), 1), analytics=listed(EVERYWHERE, 2)
    )
    first, second = candidates(combined(HPA, generic))
    assert first["analytics"] == {"count": 2, "allow": ["p1+c3", "p1+c4"]}  # type: ignore[index]
    assert second["analytics"] == {"count": 2, "deny": ["p1+c1"]}  # type: ignore[index]
    assert picked(HPA, generic) == {"fwall": ["p1+c1"], "analytics": ["p1+c3", "p1+c4"]}


def test_v2_four_clusters_are_more_than_there_are() -> None:
    generic = lists("generic", analytics=listed(EVERYWHERE, 4))
    of = combined(HPA, generic)
    assert [(each.apps, each.token, each.words) for each in of.refusals] == [
        (("analytics",), "count", "count 4 > 3 clusters")
    ]
    assert candidates(of) == []
    found = refused(HPA, generic)
    assert found.is_proven
    assert found.words == "analytics: count 4 > 3 clusters"
    assert found.conflict is not None
    assert found.conflict.controllers == ("generic", "hpa")


@pytest.mark.parametrize("pair", [("analytics", "fwall")])
def test_v5_apart(pair: tuple[str, str]) -> None:
    """c4 takes both, and must not; the pick is the same."""
    apart = affinity(denied=[pair])
    assert picked(HPA, GENERIC, apart) == {"fwall": ["p1+c1"], "analytics": ["p1+c3"]}
    only_c4 = lists("generic", fwall=listed(allow("c4"), 1), analytics=listed(allow("c4"), 1))
    assert picked(HPA, only_c4) == {"fwall": ["p1+c4"], "analytics": ["p1+c4"]}
    found = refused(HPA, only_c4, apart)
    assert found.conflict is not None
    assert found.conflict.controllers == ("affinity", "generic")
    assert found.words == (
        "fwall can go to p1+c4 and analytics can go to p1+c4, but not all at once:"
        " fwall and analytics must not share a cluster"
    )


def test_v6_together() -> None:
    assert picked(HPA, TOGETHER) == {"fwall": ["p1+c4"], "analytics": ["p1+c4"]}
    found = refused(HPA, GENERIC, TOGETHER)
    assert found.is_proven
    assert found.words == (
        "fwall and analytics must share a cluster; only p1+c4 takes both,"
        " and generic excludes it for fwall"
    )
    assert found.conflict is not None
    assert found.conflict.apps == APPS
    assert found.conflict.controllers == ("affinity", "generic", "hpa")
    assert [(each.cluster, each.app, each.controller) for each in found.conflict.excluded] == [
        ("p1+c4", "fwall", "generic")
    ]
    assert found.apps["fwall"].words == (
        "fwall: generic leaves p1+c1, p1+c2 and p1+c3; hpa leaves p1+c1, p1+c2 and p1+c4;"
        " all together leave p1+c1 and p1+c2"
    )


def test_v6_one_way_round() -> None:
    """Where fwall is, analytics has to be; with as many clusters that is the same."""
    one_way = affinity(required=[("fwall", "analytics")])
    assert picked(HPA, one_way) == {"fwall": ["p1+c4"], "analytics": ["p1+c4"]}


def test_who_excludes_a_cluster() -> None:
    of = combined(HPA, GENERIC)
    assert [
        (each.controller, each.refusal and each.refusal.words)
        for each in of.exclusions("fwall", "p1+c3")
    ] == [("hpa", "cpu: need 4 on one node, largest free 3 (n1,n2,n3)")]
    assert [each.controller for each in of.exclusions("fwall", "p1+c4")] == ["generic"]
    assert of.exclusions("fwall", "p1+c2") == [], "contention is no exclusion"


def test_v4_one_cluster() -> None:
    mandatory = lists("hpa", fwall=listed(allow("c1")), analytics=listed(deny("c1")))
    assert candidates(combined(mandatory))[0]["fwall"] == {  # type: ignore[index]
        "count": 1,
        "allow": ["p1+c1"],
    }
