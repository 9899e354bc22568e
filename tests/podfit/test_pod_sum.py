"""What a pod asks for: the formula of Kubernetes' documentation on init containers and sidecars."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.quantity import BadQuantity
from dovetail.podfit.pod_request import pod_request_of
from dovetail.podfit.pod_sum import Quantities, pod_sum, qos_class
from tests.podfit.building import pod

Requests = dict[str, int]


def container(name: str, restart: str = "", **requests: str | int | float) -> dict[str, Any]:
    return {"name": name, "restartPolicy": restart, "resources": {"requests": requests}}


def asked(**spec: Any) -> dict[str, int]:
    found = dict(pod_request_of(pod("one", **spec)).amounts)
    assert found.pop("pods") == 1
    return found


def test_containers_add_up() -> None:
    assert asked(containers=[container("a", cpu="250m"), container("b", cpu="1.5")]) == {
        "cpu": 1750
    }


def test_the_largest_init_container_counts_if_it_needs_more() -> None:
    containers = [container("a", cpu="2", memory="1G"), container("b", cpu="1", memory="1G")]
    inits = [container("i", cpu="2", memory="1G"), container("j", cpu="2", memory="3G")]
    assert asked(containers=containers, initContainers=inits) == {
        "cpu": 3000,
        "memory": 3_000_000_000,
    }


def test_an_init_container_runs_beside_the_sidecars_before_it_only() -> None:
    inits = [
        container("first", cpu="3"),
        container("sidecar", "Always", cpu="1"),
        container("second", cpu="2500m"),
    ]
    assert asked(containers=[container("a", cpu="1")], initContainers=inits) == {"cpu": 3500}


def test_sidecars_run_beside_containers() -> None:
    inits = [container("one", "Always", cpu="1"), container("two", "Always", cpu="2")]
    assert asked(containers=[container("a", cpu="1")], initContainers=inits) == {"cpu": 4000}


def test_overhead_comes_on_top() -> None:
    inits = [container("i", cpu="1")]
    overhead = {"cpu": "250m", "memory": "120Mi"}
    assert asked(containers=[], initContainers=inits, overhead=overhead) == {
        "cpu": 1250,
        "memory": 120 * 2**20,
    }


def test_requests_of_the_whole_pod_take_the_place_of_the_sum() -> None:
    containers = [container("a", cpu="1", memory="1Gi", **{"example.com/gpu": "1"})]
    whole = {"requests": {"cpu": "200m", "hugepages-2Mi": "4Mi", "example.com/gpu": "5"}}
    assert asked(containers=containers, resources=whole, overhead={"cpu": "1"}) == {
        "cpu": 1200,
        "memory": 2**30,
        "hugepages-2Mi": 4 * 2**20,
        "example.com/gpu": 1,
    }


def test_sums_are_exact_and_rounded_up_once() -> None:
    thirds = [container(name, cpu="0.0003", memory="0.3") for name in "abc"]
    assert asked(containers=thirds) == {"cpu": 1, "memory": 1}


def test_numbers_need_not_be_text() -> None:
    assert asked(containers=[container("a", cpu=2, memory=1e9)]) == {
        "cpu": 2000,
        "memory": 1_000_000_000,
    }


def test_resource_classes_and_what_comes_to_nothing_are_left_out() -> None:
    requests = {"resourceclass.dovetail.dev/gpu": "2", "cpu": "0", "example.com/nic": "0"}
    assert asked(containers=[container("a", **requests)]) == {}


def test_scores_take_silent_containers_for_small_ones() -> None:
    containers = [container("a"), container("b", cpu="2")]
    assert pod_request_of(pod("one", containers=containers)).score_amounts == (
        ("cpu", 2100),
        ("memory", 400 * 2**20),
    )


def test_huge_amounts_stay_numbers_that_columns_can_hold() -> None:
    containers = [container("a", memory="9E", cpu="9E"), container("b", memory="9E")]
    assert asked(containers=containers) == {"cpu": 2**62, "memory": 2**62}


def test_a_request_that_is_no_quantity_is_refused() -> None:
    with pytest.raises(BadQuantity, match="'many' is no quantity"):
        pod_request_of(pod("one", requests={"cpu": "many"}))


def test_pods_of_a_template_share_one_demand() -> None:
    """Their names, nodes and volumes differ, and none of these matters."""
    volumes = [{"name": "kube-api-access-x8z"}]
    one = pod_request_of(pod("one", {"app": "web"}, on="here", requests={"cpu": "1"}))
    other = pod_request_of(pod("other", {"app": "web"}, requests={"cpu": "1"}, volumes=volumes))
    assert one is other
    assert pod_request_of(pod("third", {"app": "db"}, requests={"cpu": "1"})) is not one


def timeline(inits: list[tuple[bool, Requests]], mains: list[Requests]) -> list[Requests]:
    """What runs at each time, told literally: each init container in turn, then all containers."""
    moments = []
    sidecars: list[Requests] = []
    for stays, requests in inits:
        if stays:
            sidecars = [*sidecars, requests]
        else:
            moments.append(total_of([*sidecars, requests]))
    return [*moments, total_of([*sidecars, *mains])]


def total_of(running: list[Requests]) -> Requests:
    names = {name for each in running for name in each}
    return {name: sum(each.get(name, 0) for each in running) for name in names}


REQUESTS = st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu"]), st.integers(0, 9))


@given(st.lists(st.tuples(st.booleans(), REQUESTS), max_size=5), st.lists(REQUESTS, max_size=3))
def test_the_sum_is_the_most_at_any_time(
    inits: list[tuple[bool, Requests]], mains: list[Requests]
) -> None:
    moments = timeline(inits, mains)
    steps = [(requests, stays) for stays, requests in inits]
    found = pod_sum([*steps, *((requests, True) for requests in mains)])
    names = {name for moment in moments for name in moment}
    most = {name: max(moment.get(name, 0) for moment in moments) for name in names}
    assert found.total() == most
    assert found.staying == moments[-1]
    for name, (peak, index) in found.peaks.items():
        levels = [moment.get(name, 0) for moment in moments[:-1]]
        short_lived = [at for at, (stays, _) in enumerate(inits) if not stays]
        assert peak == max(levels)
        assert not peak or index == short_lived[levels.index(peak)]


@pytest.mark.parametrize(
    ("containers", "whole", "expected"),
    [
        ([({}, {})], ({}, {}), "BestEffort"),
        ([({"example.com/gpu": 1}, {"example.com/gpu": 1})], ({}, {}), "BestEffort"),
        ([({"cpu": 0}, {})], ({}, {}), "BestEffort"),
        ([({"cpu": 1}, {})], ({}, {}), "Burstable"),
        ([({"cpu": 1, "memory": 2}, {"cpu": 1, "memory": 2})], ({}, {}), "Guaranteed"),
        ([({"cpu": 1, "memory": 2}, {"cpu": 1, "memory": 2}), ({}, {})], ({}, {}), "Burstable"),
        ([({"cpu": 1}, {"cpu": 1})], ({}, {}), "Burstable"),
        ([({"cpu": 1}, {})], ({"cpu": 1, "memory": 2}, {"cpu": 1, "memory": 2}), "Guaranteed"),
    ],
)
def test_qos_class(
    containers: list[tuple[Requests, Requests]], whole: tuple[Requests, Requests], expected: str
) -> None:
    def exact(pair: tuple[Requests, Requests]) -> tuple[Quantities, Quantities]:
        requests, limits = ({name: Fraction(each[name]) for name in each} for each in pair)
        return requests, limits

    assert qos_class(map(exact, containers), exact(whole)) == expected
