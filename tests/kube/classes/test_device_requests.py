"""What pods ask for, by the names of device classes among their resources."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.devices.allocation.request import DeviceRequest
from dovetail.kube.classes.device_requests import BadDeviceRequest, device_requests_of
from dovetail.podfit.objects import Container, ResourceRequirements
from dovetail.podfit.pod_sum import WrittenQuantities

GPU, NIC = "resourceclass.dovetail.dev/gpu", "resourceclass.dovetail.dev/fast.nic"


def container(
    name: str, requests: WrittenQuantities, limits: WrittenQuantities, restart_policy: str = ""
) -> Container:
    resources = ResourceRequirements(requests=dict(requests), limits=dict(limits))
    return Container(name=name, resources=resources, restart_policy=restart_policy)


def asking(name: str, count: str | int = 1, key: str = GPU) -> Container:
    return container(name, {key: count}, {key: count})


def sidecar(name: str, count: int) -> Container:
    return container(name, {GPU: count}, {GPU: count}, "Always")


# Row 12: the syntax of requests


def test_row_12_each_container_asks_for_itself() -> None:
    both = container("one", {NIC: "1", GPU: "2", "cpu": "500m"}, {NIC: "1", GPU: "2", "cpu": "1"})
    assert device_requests_of([both, asking("two", 3)]) == (
        DeviceRequest("fast.nic", 1, "one"),
        DeviceRequest("gpu", 2, "one"),
        DeviceRequest("gpu", 3, "two"),
    )


def test_row_12_a_pod_without_classes_asks_for_nothing() -> None:
    assert device_requests_of([container("one", {"cpu": "1", "nvidia.com/gpu": 1}, {})]) == ()


def test_row_12_limits_alone_are_requests_too() -> None:
    assert device_requests_of([container("one", {}, {GPU: "2"})]) == (
        DeviceRequest("gpu", 2, "one"),
    )


def test_row_12_requests_and_limits_are_equal() -> None:
    assert device_requests_of([container("one", {GPU: "1000m"}, {GPU: "1"})]) == (
        DeviceRequest("gpu", 1, "one"),
    )
    with pytest.raises(
        BadDeviceRequest, match=r"container 'one': .*gpu has requests 1 and limits 2"
    ):
        device_requests_of([container("one", {GPU: "1"}, {GPU: "2"})])


@pytest.mark.parametrize("count", ["0", "-1", "1.5", "500m", 0, 0.5])
def test_row_12_devices_are_whole_and_at_least_one(count: str | int) -> None:
    with pytest.raises(
        BadDeviceRequest, match=rf"resources.requests\['{GPU}'\] is {count}: devices are whole"
    ):
        device_requests_of([asking("one", count)])


@pytest.mark.parametrize("count", ["2147483648", "1e30", "9E"])
def test_row_12_more_than_a_node_can_have_is_refused(count: str) -> None:
    with pytest.raises(
        BadDeviceRequest, match=rf"is {count}: no node has more than 2147483647 units"
    ):
        device_requests_of([asking("one", count)])
    assert device_requests_of([asking("one", "2147483647")]) == (
        DeviceRequest("gpu", 2147483647, "one"),
    )


def test_row_12_what_is_no_quantity_is_refused_with_its_place() -> None:
    with pytest.raises(
        BadDeviceRequest, match=r"container 'one': resources.limits\[.*'two' is no quantity"
    ):
        device_requests_of([container("one", {}, {GPU: "two"})])
    with pytest.raises(BadDeviceRequest, match="name of a class is missing"):
        device_requests_of([asking("one", 1, key="resourceclass.dovetail.dev/")])


def test_row_12_init_containers_use_what_later_ones_will_hold() -> None:
    found = device_requests_of([asking("main", 2)], [asking("init", 2)])
    assert found == (DeviceRequest("gpu", 2, "main"),)


def test_row_12_only_what_goes_beyond_that_is_asked_for_by_an_init_container() -> None:
    inits = [asking("small", 3), asking("large", 5)]
    assert device_requests_of([asking("main", 2)], inits) == (
        DeviceRequest("gpu", 3, "large"),
        DeviceRequest("gpu", 2, "main"),
    )


def test_row_12_sidecars_hold_theirs_beside_everybody() -> None:
    inits = [asking("before", 4), sidecar("side", 1), asking("after", 4)]
    # The first may use the sidecar's, the other runs beside it.
    assert device_requests_of([asking("main", 2)], inits) == (
        DeviceRequest("gpu", 2, "after"),
        DeviceRequest("gpu", 1, "side"),
        DeviceRequest("gpu", 2, "main"),
    )


@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 4)), max_size=6),
    st.lists(st.integers(1, 4), max_size=4),
)
def test_row_12_the_sum_is_kubernetes_own(inits: list[tuple[bool, int]], mains: list[int]) -> None:
    containers = [asking(f"m{at}", count) for at, count in enumerate(mains)]
    starting = [
        sidecar(f"i{at}", count) if stays else asking(f"i{at}", count)
        for at, (stays, count) in enumerate(inits)
    ]
    running = highest = 0
    for stays, count in [*inits, *((True, count) for count in mains)]:
        if stays:
            running += count
        highest = max(highest, running, 0 if stays else running + count)
    found = device_requests_of(containers, starting)
    assert sum(each.count for each in found) == highest
