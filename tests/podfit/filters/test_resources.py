"""Room on nodes: exact to the unit, for every resource by itself."""

from __future__ import annotations

from tests.podfit.building import Fleet, node, pod


def test_a_node_can_be_filled_to_the_last_unit() -> None:
    fleet = Fleet([node("n")], [pod("there", on="n", requests={"cpu": "3999m"})])
    assert fleet.fitting(pod("p", requests={"cpu": "1m"})) == "n"
    assert fleet.fitting(pod("p", requests={"cpu": "1.0001m"})) == ""


def test_a_pod_that_asks_for_nothing_needs_a_place() -> None:
    fleet = Fleet([node("full", pods="1"), node("free", pods="2")])
    fleet.table.add_pod(pod("one", on="full"))
    fleet.table.add_pod(pod("two", on="free"))
    assert fleet.fitting(pod("p")) == "free"


def test_a_node_given_too_much_still_takes_pods_that_do_not_ask_for_it() -> None:
    fleet = Fleet([node("n", cpu="1")], [pod("there", on="n", requests={"cpu": "3"})])
    assert fleet.fitting(pod("p", requests={"memory": "1Gi"})) == "n"
    assert fleet.fitting(pod("p", requests={"cpu": "1m"})) == ""


def test_extended_resources_count_like_others() -> None:
    fleet = Fleet([node("with", example__gpu="2"), node("without")])
    ask = pod("p", requests={"example/gpu": 2})
    assert fleet.fitting(ask) == "with"
    fleet.table.add_pod(pod("there", on="with", requests={"example/gpu": "1"}))
    assert fleet.fitting(ask) == ""


def test_nobody_has_a_resource_that_no_node_names() -> None:
    assert Fleet([node("n")]).fitting(pod("p", requests={"example.com/new": "1"})) == ""


def test_more_than_64_bits_hold_never_looks_free() -> None:
    huge = [pod(f"p{n}", on="n", requests={"memory": "9E"}) for n in range(3)]
    fleet = Fleet([node("n")], huge)
    assert fleet.fitting(pod("p", requests={"memory": "1"})) == ""
    for one in huge:
        fleet.table.remove_pod(one.metadata.uid)
    assert fleet.fitting(pod("p", requests={"memory": "8Gi"})) == "n"


def test_why_says_by_how_much() -> None:
    fleet = Fleet([node("n", example__gpu="1")], [pod("there", on="n", requests={"cpu": "3500m"})])
    assert fleet.why(pod("p", requests={"cpu": "2"}), "n") == (
        "Insufficient cpu: wants 2, free 500m of 4, 1500m short"
    )
    assert fleet.why(pod("p", requests={"memory": "10Gi"}), "n") == (
        "Insufficient memory: wants 10Gi, free 8Gi of 8Gi, 2Gi short"
    )
    assert fleet.why(pod("p", requests={"example/gpu": "3"}), "n") == (
        "Insufficient example/gpu: wants 3, free 1 of 1, 2 short"
    )
    assert fleet.why(pod("p", requests={"cpu": "500m"}), "n") == ""
