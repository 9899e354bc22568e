"""Pods that are resized in place count as kube-scheduler counts them: as the larger, until done."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_request import pod_request_of
from tests.podfit.building import Fleet, node, pod

Amounts = dict[str, str]
INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}


def status(name: str, has: Amounts | None, allocated: Amounts | None = None) -> dict[str, Any]:
    told: dict[str, Any] = {"name": name, "allocatedResources": allocated or has or {}}
    return told if has is None else {**told, "resources": {"requests": has}}


def told(one: Pod, **status: Any) -> Pod:
    """The pod with this status."""
    return msgspec.convert({**msgspec.to_builtins(one), "status": status}, Pod)


def cpu(one: Pod) -> int:
    return dict(pod_request_of(one).amounts)["cpu"]


@pytest.mark.parametrize(
    ("asks", "has", "allocated", "counts"),
    [
        ("1", "1", "1", 1000),
        ("1", "1000m", "1", 1000),
        ("1", "3", "1", 3000),
        ("1", "2", "3", 3000),
        ("4", "1", "1", 4000),
        ("4", None, "5", 4000),
    ],
    ids=["settled", "written otherwise", "shrinks", "shrinks twice", "grows", "not told"],
)
def test_the_largest_of_what_it_asks_for_was_allocated_and_has(
    asks: str, has: str | None, allocated: str, counts: int
) -> None:
    one = pod("one", requests={"cpu": asks})
    main = status("main", None if has is None else {"cpu": has}, {"cpu": allocated})
    assert cpu(told(one, containerStatuses=[main])) == counts


@pytest.mark.parametrize(("condition", "counts"), [(INFEASIBLE, 1000), (DEFERRED, 64000)])
def test_what_can_never_be_does_not_count(condition: dict[str, str], counts: int) -> None:
    one = pod("one", requests={"cpu": "64", "example.com/gpu": "1"})
    main = status("main", {"cpu": "1"})
    found = told(one, containerStatuses=[main], conditions=[condition])
    assert dict(pod_request_of(found).amounts) == {"pods": 1, "cpu": counts, "example.com/gpu": 1}


def test_sidecars_are_resized_and_other_init_containers_are_not() -> None:
    asks = {"resources": {"requests": {"cpu": "1"}}}
    inits = [{"name": "init", **asks}, {"name": "side", "restartPolicy": "Always", **asks}]
    one = pod("one", requests={"cpu": "1"}, initContainers=inits)
    assert cpu(one) == 2000
    both = [status("init", {"cpu": "9"}), status("side", {"cpu": "3"})]
    assert cpu(told(one, initContainerStatuses=both)) == 4000


def test_a_pod_with_resources_of_its_own_is_resized_as_a_whole() -> None:
    one = pod("one", requests={"memory": "1Gi"}, resources={"requests": {"cpu": "1"}})
    whole = {"requests": {"cpu": "3", "memory": "9Gi"}}
    found = told(one, resources=whole, allocatedResources={"cpu": "2"})
    assert dict(pod_request_of(found).amounts) == {"pods": 1, "cpu": 3000, "memory": 2**30}


def test_a_pod_that_shrinks_frees_room_when_it_has_shrunk() -> None:
    shrinking = pod("one", on="n", requests={"cpu": "1"})
    fleet = Fleet([node("n", cpu="4")])
    fleet.table.add_pod(told(shrinking, containerStatuses=[status("main", {"cpu": "3"})]))
    assert fleet.fitting(pod("p", requests={"cpu": "2"})) == ""
    fleet.table.add_pod(told(shrinking, containerStatuses=[status("main", {"cpu": "1"})]))
    assert fleet.fitting(pod("p", requests={"cpu": "2"})) == "n"


def test_a_pod_whose_status_says_what_it_asks_for_shares_the_demand_of_its_template() -> None:
    one = pod("one", requests={"cpu": "1"})
    other = told(
        pod("other", requests={"cpu": "1"}), containerStatuses=[status("main", {"cpu": "1"})]
    )
    assert pod_request_of(one) is pod_request_of(other)
