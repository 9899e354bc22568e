"""What pods ask for, and what is written on them."""

from __future__ import annotations

import hashlib
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.devices.allocation.request import DeviceHolding, DeviceRequest
from dovetail.kube.classes.pod_devices import (
    ALLOCATION,
    Allocation,
    BadAllocation,
    BadDeviceRequest,
    annotations_of,
    device_requests_of,
    read_allocation,
    rendered_name,
)
from dovetail.podfit.objects import Container, Resources
from dovetail.podfit.pods import WrittenQuantities

GPU, NIC = "resourceclass.dovetail.dev/gpu", "resourceclass.dovetail.dev/fast.nic"
HELD = (DeviceHolding("gpu-0", 2, "gpu", "main"), DeviceHolding("eth1", 1, "fast.nic", "side"))


def container(
    name: str, requests: WrittenQuantities, limits: WrittenQuantities, restart_policy: str = ""
) -> Container:
    resources = Resources(requests=dict(requests), limits=dict(limits))
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


# Row 13: annotations


def test_row_13_the_truth_and_the_rendering_are_written() -> None:
    written = annotations_of("n1", HELD)
    truth = json.loads(written.pop(ALLOCATION))
    assert len(truth.pop("hash")) == 64
    assert truth == {
        "version": 1,
        "node": "n1",
        "devices": [
            {"container": "main", "class": "gpu", "device": "gpu-0", "units": 2},
            {"container": "side", "class": "fast.nic", "device": "eth1", "units": 1},
        ],
    }
    assert written == {
        "scheduler.alpha.kubernetes.io/resClass_gpu_gpu-0": "2",
        "scheduler.alpha.kubernetes.io/resClass_fast.nic_eth1": "1",
    }


def test_row_13_the_specifications_own_example() -> None:
    held = [DeviceHolding("nvidia-tesla-gpu", 4, "test-res-class")]
    written = annotations_of("n1", held)
    key = "scheduler.alpha.kubernetes.io/resClass_test-res-class_nvidia-tesla-gpu"
    assert written[key] == "4"


def test_row_13_the_rendering_sums_containers() -> None:
    held = [DeviceHolding("d", 1, "gpu", "one"), DeviceHolding("d", 2, "gpu", "two")]
    assert annotations_of("n1", held)["scheduler.alpha.kubernetes.io/resClass_gpu_d"] == "3"


def test_row_13_what_was_written_is_read() -> None:
    assert read_allocation(annotations_of("n1", HELD)) == Allocation("n1", HELD)
    assert read_allocation({"other": "annotation"}) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [('"units":2', '"units":3'), ('"node":"n1"', '"node":"n2"'), ("gpu-0", "gpu-1")],
)
def test_row_13_an_edited_annotation_is_refused(old: str, new: str) -> None:
    written = annotations_of("n1", HELD)
    assert old in written[ALLOCATION]
    with pytest.raises(BadAllocation, match="was edited"):
        read_allocation({ALLOCATION: written[ALLOCATION].replace(old, new)})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "truncated"),
        ("no json", "malformed"),
        ("[]", "Expected `object`"),
        ('{"version":1,"node":"n1"}', "missing required field `devices`"),
        ('{"version":2,"node":"n1","devices":[],"hash":""}', "version 2, 1 is expected"),
        ('{"version":1,"node":"n1","devices":[],"more":1}', "unknown field `more`"),
        ("\ud800", "dovetail.dev/allocation"),
    ],
)
def test_row_13_garbage_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadAllocation, match=message):
        read_allocation({ALLOCATION: text})


def test_row_13_no_units_are_refused_even_with_a_hash_that_fits() -> None:
    entry = '{"container":"","class":"gpu","device":"d","units":0}'
    bare = f'{{"version":1,"node":"n1","devices":[{entry}],"hash":""}}'
    digest = hashlib.sha256(bare.encode()).hexdigest()
    with pytest.raises(BadAllocation, match="0 units of device 'd'"):
        read_allocation({ALLOCATION: bare.replace('"hash":""', f'"hash":"{digest}"')})


def test_row_13_over_long_names_end_in_a_hash() -> None:
    exact = rendered_name("c" * 20, "d" * 33)
    assert exact == f"resClass_{'c' * 20}_{'d' * 33}"
    longer = rendered_name("c" * 20, "d" * 34)
    assert len(longer) == 63
    assert longer.startswith(f"resClass_{'c' * 20}_{'d' * 22}-")
    assert longer != rendered_name("c" * 20, "d" * 35)


def test_row_13_devices_whose_names_annotations_cannot_have() -> None:
    name = rendered_name("gpu", "0000:3b:00.0")
    assert name.startswith("resClass_gpu_0000-3b-00.0-")
    assert name != rendered_name("gpu", "0000-3b-00.0")


@given(st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,50}[a-z0-9])?", fullmatch=True), st.text(min_size=1))
def test_row_13_every_rendering_is_the_name_of_an_annotation(name: str, device: str) -> None:
    found = rendered_name(name, device)
    assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", found)


@given(
    st.text(),
    st.lists(st.builds(DeviceHolding, st.text(), st.integers(1, 2**31), st.text(), st.text())).map(
        tuple
    ),
)
def test_row_13_anything_written_is_read(node: str, held: tuple[DeviceHolding, ...]) -> None:
    assert read_allocation(annotations_of(node, held)) == Allocation(node, held)
