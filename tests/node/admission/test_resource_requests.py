"""What pods and containers ask for, worked out of their specifications."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dovetail.node.admission.resource_requests import (
    pod_limits_of,
    pod_requests_of,
    requested_resources,
    rounded,
)
from dovetail.node.admission.resource_slot import suffices
from dovetail.node.common.pod_identity import identity_of
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.wire.resource_plugin import ContainerType, ResourceAllocationInfo
from tests.support.node.fakes import container, pod

INIT, SIDECAR = ContainerType.INIT, ContainerType.SIDECAR


def test_a_pod_needs_the_sum_of_its_containers() -> None:
    assert pod_requests_of(pod("a", container(cpu=1), container("b", 1, cpu=2))) == {"cpu": 3}


def test_a_pod_needs_its_largest_init_container_if_that_is_more() -> None:
    own = pod("a", container("i", cpu=5, type=INIT), container("j", cpu=2, type=INIT))
    assert pod_requests_of(own) == {"cpu": 5}


def test_restartable_init_containers_stay() -> None:
    """They run beside the init containers after them, and beside all others."""
    own = pod(
        "a",
        container("before", cpu=4, type=INIT),
        container("stays", 1, cpu=1, type=SIDECAR, restartable=True),
        container("after", 2, cpu=4, type=INIT),
        container(cpu=2, memory=7),
    )
    assert pod_requests_of(own) == {"cpu": 5, "memory": 7}


def test_ephemeral_containers_need_nothing() -> None:
    assert pod_requests_of(pod("a", container("e", cpu=4, type=ContainerType.EPHEMERAL))) == {}


def test_what_the_pod_itself_says_wins() -> None:
    own = pod("a", container(cpu=1, memory=1), requests={"cpu": Fraction(8)})
    assert pod_requests_of(own) == {"cpu": 8, "memory": 1}


def test_a_pod_is_limited_where_all_its_containers_are() -> None:
    own = pod(
        "a",
        container("i", type=INIT, limits={}),
        container(limits={"cpu": 2, "memory": 5}),
        container("b", 1, limits={"cpu": 1}),
    )
    assert pod_limits_of(own) == {"cpu": 3}


def test_requests_are_in_the_order_of_what_plugins_call_them() -> None:
    amounts = {"a": Fraction(1), "m": Fraction(2)}
    assert [each.resource for each in requested_resources("x", amounts, {}, {"a": "z"})] == [
        "m",
        "z",
    ]


def test_less_than_nothing_is_a_bad_request() -> None:
    with pytest.raises(AdmissionRejected) as caught:
        requested_resources("container x", {"cpu": Fraction(-1)}, {}, {})
    assert caught.value.reason == "bad_request"


def test_quantities_have_three_decimals_rounded_upwards() -> None:
    assert rounded(Fraction(1, 3)) == 0.334
    assert rounded(Fraction("0.0001")) == 0.001
    assert rounded(Fraction(237182648320)) == 237182648320.0


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [
        ({}, {}, ("", "")),
        (
            {"katalyst.kubewharf.io/pod_role": "label"},
            {"kubernetes.io/pod-role": "spec", "kubernetes.io/resource-type": "t"},
            ("spec", "t"),
        ),
        (
            {"katalyst.kubewharf.io/pod_role": "label"},
            {
                "katalyst.kubewharf.io/qos_level": "shared_cores",
                "katalyst.kubewharf.io/pod_type": "k",
            },
            ("label", "k"),
        ),
        ({}, {"katalyst.kubewharf.io/qos_level": "shared_cores"}, ("shared_cores", "")),
        ({"kubernetes.io/pod-role": "a label is not meant"}, {}, ("", "")),
    ],
)
def test_roles(
    labels: dict[str, str], annotations: dict[str, str], expected: tuple[str, str]
) -> None:
    assert identity_of(pod("a", labels=labels, annotations=annotations)) == expected


@pytest.mark.parametrize(
    ("quantity", "requested", "enough"),
    [(4.0, "4", True), (3.5, "4", True), (4.0, "4.001", False), (1.0, "0.1", True)],
)
def test_what_is_allocated_suffices_if_rounded_upwards_it_does(
    quantity: float, requested: str, enough: bool
) -> None:
    info = ResourceAllocationInfo(is_scalar_resource=True, allocated_quantity=quantity)
    assert suffices(info, Fraction(requested)) is enough


def test_what_is_no_number_does_not_suffice() -> None:
    assert not suffices(ResourceAllocationInfo(allocated_quantity=9), Fraction(1))
