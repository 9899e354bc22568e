"""Pod affinity and anti-affinity, asked for by the pod itself and by those that are there."""

from __future__ import annotations

from typing import Any

from tests.podfit.building import REQUIRED, Fleet, node, pod

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
NODES = (
    node("a1", {ZONE: "a"}),
    node("a2", {ZONE: "a"}),
    node("b1", {ZONE: "b"}),
    node("bare"),
)


def term(topology: str, labels: dict[str, str] | None, **more: Any) -> dict[str, Any]:
    selector = {} if labels is None else {"labelSelector": {"matchLabels": labels}}
    return {"topologyKey": topology, **selector, **more}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: list(terms)}}


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


CACHE, WEB = {"app": "cache"}, {"app": "web"}


def test_near_is_the_same_value_of_the_label() -> None:
    fleet = Fleet(NODES, [pod("there", CACHE, on="a1")])
    assert fleet.fitting(pod("p", affinity=near(term(ZONE, CACHE)))) == "a1 a2"
    assert fleet.fitting(pod("p", affinity=near(term(HOST, CACHE)))) == "a1"
    assert fleet.fitting(pod("p", affinity=apart(term(ZONE, CACHE)))) == "b1 bare"
    assert fleet.fitting(pod("p", affinity=apart(term(HOST, CACHE)))) == "a2 b1 bare"


def test_the_web_server_and_its_cache() -> None:
    """The documentation's example: caches apart from each other, a web server beside each."""
    nodes = [node("one"), node("two"), node("three")]
    cache: dict[str, Any] = {"affinity": apart(term(HOST, CACHE))}
    web: dict[str, Any] = {"affinity": {**near(term(HOST, CACHE)), **apart(term(HOST, WEB))}}
    fleet = Fleet(nodes)
    for number, name in enumerate(("one", "two", "three")):
        assert name in fleet.fitting(pod("c", CACHE, **cache)).split()
        fleet.table.add_pod(pod(f"cache-{number}", CACHE, on=name, **cache))
    assert fleet.fitting(pod("c", CACHE, **cache)) == ""
    fleet.table.add_pod(pod("web-0", WEB, on="two", **web))
    assert fleet.fitting(pod("w", WEB, **web)) == "one three"


def test_the_first_of_a_group_may_go_where_the_labels_are() -> None:
    fleet = Fleet(NODES)
    ask = pod("p", WEB, affinity=near(term(ZONE, WEB)))
    assert fleet.fitting(ask) == "a1 a2 b1"
    fleet.table.add_pod(pod("first", WEB, on="b1"))
    assert fleet.fitting(ask) == "b1"


def test_a_pod_that_does_not_mean_itself_waits_for_those_it_means() -> None:
    ask = pod("p", WEB, affinity=near(term(ZONE, CACHE)))
    fleet = Fleet(NODES)
    assert fleet.fitting(ask) == ""
    assert fleet.why(ask, "a1") == f"pod affinity: no pod that it means is in {ZONE}=a"
    assert fleet.why(ask, "bare") == f"pod affinity wants label {ZONE}, which the node has not"


def test_a_pod_counts_for_affinity_if_all_terms_mean_it() -> None:
    terms = near(term(ZONE, CACHE), term(ZONE, {"tier": "fast"}))
    fleet = Fleet(NODES, [pod("one", CACHE, on="a1"), pod("two", {"tier": "fast"}, on="a1")])
    assert fleet.fitting(pod("p", affinity=terms)) == ""
    fleet.table.add_pod(pod("both", {**CACHE, "tier": "fast"}, on="b1"))
    assert fleet.fitting(pod("p", affinity=terms)) == "b1"


def test_pods_that_are_there_keep_others_away() -> None:
    fleet = Fleet(NODES, [pod("lonely", CACHE, on="a1", affinity=apart(term(ZONE, WEB)))])
    assert fleet.fitting(pod("p", WEB)) == "b1 bare"
    assert fleet.fitting(pod("p", CACHE)) == "a1 a2 b1 bare"
    assert fleet.why(pod("p", WEB), "a2") == (
        f"a pod in {ZONE}=a keeps this one away by its anti-affinity"
    )
    fleet.table.remove_pod("lonely")
    assert fleet.fitting(pod("p", WEB)) == "a1 a2 b1 bare"


def test_terms_are_about_the_own_namespace_unless_they_say_others() -> None:
    namespaces = {"default": {}, "shop": {"team": "sales"}, "lab": {"team": "science"}}
    fleet = Fleet(NODES, [pod("there", CACHE, on="a1", namespace="shop")], namespaces)

    def fitting(**more: Any) -> str:
        return fleet.fitting(pod("p", affinity=near(term(HOST, CACHE, **more))))

    assert fitting() == ""
    assert fitting(namespaces=["shop"]) == "a1"
    assert fitting(namespaces=["lab"]) == ""
    assert fitting(namespaceSelector={}) == "a1"
    assert fitting(namespaceSelector={"matchLabels": {"team": "sales"}}) == "a1"
    assert fitting(namespaceSelector={"matchLabels": {"team": "science"}}) == ""
    science = {"matchLabels": {"team": "science"}}
    assert fitting(namespaces=["shop"], namespaceSelector=science) == "a1"


def test_a_selector_can_ask_for_namespaces_without_a_label() -> None:
    """As documented. kube-scheduler 1.36 takes such a term to mean the pods of all namespaces."""
    no_team = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
    ask = pod("p", affinity=apart(term(HOST, CACHE, namespaceSelector=no_team)))
    there = [
        pod("one", CACHE, on="a1", namespace="shop"),
        pod("two", CACHE, on="a2", namespace="free"),
    ]
    fleet = Fleet(NODES, there, {"shop": {"team": "sales"}, "free": {}})
    assert fleet.fitting(ask) == "a1 b1 bare"


def test_labels_of_namespaces_that_change_are_seen() -> None:
    sales = {"matchLabels": {"team": "sales"}}
    ask = pod("p", affinity=near(term(HOST, CACHE, namespaceSelector=sales)))
    fleet = Fleet(NODES, [pod("there", CACHE, on="a1", namespace="shop")], {"shop": {}})
    assert fleet.fitting(ask) == ""
    fleet.set_namespace("shop", {"team": "sales"})
    assert fleet.fitting(ask) == "a1"
    fleet.table.drop_namespace("shop")
    assert fleet.fitting(ask) == ""


def test_a_term_without_a_selector_means_no_pod_and_an_empty_one_means_all() -> None:
    fleet = Fleet(NODES, [pod("there", on="a1")])
    assert fleet.fitting(pod("p", affinity=apart(term(HOST, None)))) == "a1 a2 b1 bare"
    assert fleet.fitting(pod("p", affinity=apart(term(HOST, {})))) == "a2 b1 bare"


def test_match_label_keys_take_the_pods_own_values() -> None:
    """Versions of one application apart from each other, each by itself together."""
    old, new = {**WEB, "version": "1"}, {**WEB, "version": "2"}
    fleet = Fleet(NODES, [pod("old", old, on="a1")])
    same = near(term(HOST, WEB, matchLabelKeys=["version"]))
    other = apart(term(HOST, WEB, mismatchLabelKeys=["version"]))
    assert fleet.fitting(pod("p", old, affinity=same)) == "a1"
    assert fleet.fitting(pod("p", new, affinity=same)) == "a1 a2 b1 bare"
    assert fleet.fitting(pod("p", new, affinity=other)) == "a2 b1 bare"
    assert fleet.fitting(pod("p", old, affinity=other)) == "a1 a2 b1 bare"


def test_match_label_keys_that_the_server_wrote_into_the_selector_stay() -> None:
    written = {
        "matchLabels": WEB,
        "matchExpressions": [{"key": "version", "operator": "In", "values": ["1"]}],
    }
    kept = {"topologyKey": HOST, "labelSelector": written, "matchLabelKeys": ["version"]}
    fleet = Fleet(NODES, [pod("old", {**WEB, "version": "1"}, on="a1")])
    assert fleet.fitting(pod("p", {**WEB, "version": "2"}, affinity=near(kept))) == "a1"


def test_pods_that_are_leaving_still_count() -> None:
    fleet = Fleet(NODES, [pod("there", CACHE, on="a1", leaving=True)])
    assert fleet.fitting(pod("p", affinity=near(term(HOST, CACHE)))) == "a1"
