"""Edits of a Machine while it sells: what is accepted comes into force, nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kube.machines.bed import MACHINES, Bed, machine_bed, simple_spec
from tests.kube.machines.corner import Corner, corner_of, small, types

FORBIDDEN, INVALID = 403, 422


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with machine_bed(tmp_path_factory.mktemp("edits")) as running:
        yield running


@pytest.fixture
def corner(bed: Bed) -> Iterator[Corner]:
    with corner_of(bed) as made:
        yield made


def refused_edit(corner: Corner, change: Any) -> str:
    """The message of the API server that does not take it."""
    found = corner.bed.get(f"{MACHINES}/{corner.group}")
    change(found["spec"])
    status, answer = corner.bed.cluster.request("PUT", f"{MACHINES}/{corner.group}", found)
    assert status in (FORBIDDEN, INVALID), answer
    return answer.decode()


def requested(pod: dict[str, Any]) -> str:
    """CPUs of its first container."""
    return str(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


# -- a newest specification that is not accepted -------------------------------------------------


def test_what_was_accepted_stays_in_force(corner: Corner) -> None:
    corner.sell_small(2)
    accepted = corner.status()["acceptedGeneration"]

    def too_many(spec: dict[str, Any]) -> None:
        spec["machineTypes"][0]["available"] = 5

    corner.bed.edit_machine(corner.group, too_many)
    message = corner.await_condition("Accepted", "False", "Invalid")
    assert "spec.machineTypes[0].available" in message
    corner.await_condition("Ready", "False", "NotAccepted")
    status = corner.status()
    assert status["observedGeneration"] > status["acceptedGeneration"] == accepted
    # Guests are sold as before, also by an operator that knows no more than the API server.
    corner.guest("a")
    corner.await_running("a")
    corner.await_usage(2, 1, 1, 0)
    corner.bed.stop_operators()
    corner.bed.start_operator()
    corner.guest("b")
    corner.guest("c")
    corner.await_running("a", "b")
    corner.await_waiting(c="SoldOut")
    corner.await_usage(2, 0, 2, 1)

    def enough(spec: dict[str, Any]) -> None:
        spec["machineTypes"][0]["available"] = 3

    corner.bed.edit_machine(corner.group, enough)
    corner.await_running("a", "b", "c")
    corner.await_condition("Accepted", "True", "Accepted")
    corner.bed.await_that(
        lambda: corner.status()["observedGeneration"] == corner.status()["acceptedGeneration"],
        "generation",
    )


def test_what_another_machine_had_is_taken_when_that_is_gone(corner: Corner, bed: Bed) -> None:
    """Two at once: the API server lets both in, and the operator one of them."""
    nodes = corner.add_nodes(1)
    other = f"{corner.group}-other"
    bed.create_machine(simple_spec(nodes, 1), other)
    bed.await_ready(other)
    bed.stop_operators()
    # Nobody judges now. The policies let no second owner of a node in, so it comes by an edit of
    # both: the other one lets it go, is not accepted, and so still has it.
    bed.edit_machine(
        other,
        lambda spec: spec.update(
            nodePool=[{"name": "nowhere", "machineType": [{"name": "small"}]}]
        ),
    )
    bed.create_machine(simple_spec(nodes, 2), corner.group)
    bed.start_operator()
    message = corner.await_condition("Accepted", "False", "Invalid")
    assert "spec.nodePool[0].name" in message
    assert nodes[0] in message
    assert other in message
    bed.drop_machine(other)
    corner.await_condition("Accepted", "True", "Accepted")
    corner.await_usage(2, 2, 0, 0)


def test_a_node_that_is_not_there_yet(corner: Corner) -> None:
    corner.bed.create_machine(simple_spec([f"{corner.group}-late"], 1), corner.group)
    message = corner.await_condition("Accepted", "False", "Invalid")
    assert f"{corner.group}-late" in message
    corner.bed.cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"{corner.group}-late",
                "labels": {"kubernetes.io/hostname": f"{corner.group}-late"},
                "annotations": {"kwok.x-k8s.io/node": "fake"},
            },
            "status": {"allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"}},
        }
    )
    corner.await_condition("Accepted", "True", "Accepted")
    corner.await_usage(1, 1, 0, 0)


# -- the stock -----------------------------------------------------------------------------------


def test_the_stock_is_raised_and_lowered_while_units_are_sold(corner: Corner) -> None:
    corner.sell_small(2)
    corner.guests("a", "b", "c")
    corner.await_running("a", "b")

    def available(count: int) -> None:
        corner.bed.edit_machine(
            corner.group, lambda spec: spec["machineTypes"][0].update(available=count)
        )

    available(4)
    corner.await_running("a", "b", "c")
    corner.await_usage(4, 1, 3, 0)
    # Lowered below what is sold: nobody is evicted, and nothing is sold until enough came back.
    available(1)
    corner.await_usage(1, 0, 3, 0)
    corner.guest("d")
    corner.await_waiting(d="SoldOut")
    corner.drop("a")
    corner.await_usage(1, 0, 2, 1)
    assert corner.running() == ["b", "c"]
    corner.drop("b", "c")
    corner.await_running("d")
    corner.await_usage(1, 0, 1, 0)
    available(0)
    corner.await_usage(0, 0, 1, 0)
    corner.drop("d")
    corner.await_usage(0, 0, 0, 0)


def test_a_shape_does_not_change_while_units_are_sold(corner: Corner) -> None:
    corner.sell_small(2)
    corner.guest("a")
    corner.await_running("a")
    corner.bed.await_that(lambda: "a" in corner.holders(), "holder")

    def reshaped(spec: dict[str, Any]) -> None:
        spec["machineTypes"][0]["spec"]["cpu"] = "3"

    message = refused_edit(corner, reshaped)
    assert "spec.machineTypes[0].spec" in message
    assert f"{corner.namespace}/a" in message

    def rewritten(spec: dict[str, Any]) -> None:
        spec["machineTypes"][0]["spec"] |= {"cpu": "2000m", "memory": "4096Mi"}

    # The same in other words is no other shape.
    corner.bed.edit_machine(corner.group, rewritten)
    corner.await_condition("Accepted", "True", "Accepted")
    assert corner.running() == ["a"]
    corner.drop("a")
    corner.await_usage(2, 2, 0, 0)
    corner.bed.edit_machine(corner.group, reshaped)
    corner.bed.await_that(
        lambda: set(map(requested, corner.stock())) == {"3"}, "stock of the new shape"
    )
    corner.await_usage(2, 2, 0, 0)
    assert requested(corner.guest("b")) == "3"
    corner.await_running("b")


def test_guests_of_an_old_shape_that_wait_are_told(corner: Corner) -> None:
    """They were made for units that are no more, and would not fit the new ones."""
    corner.sell_small(1, caps={"perNamespace": 1}, buyers={"namespaces": ["nobody"]})
    corner.guest("old")
    corner.await_waiting(old="NotABuyer")

    def reshaped(spec: dict[str, Any]) -> None:
        spec["machineTypes"][0]["spec"]["cpu"] = "3"
        del spec["machineTypes"][0]["buyers"]

    corner.bed.edit_machine(corner.group, reshaped)
    corner.await_waiting(old="ShapeDiffers")
    corner.bed.await_that(lambda: requested(corner.dry_run()) == "3", "the new shape")
    corner.guest("new")
    corner.await_running("new")


def test_a_type_does_not_go_while_units_are_sold(corner: Corner) -> None:
    nodes = corner.add_nodes(1)
    corner.sell(types(nodes, small(available=1), small("spare", 1)))
    corner.guest("a")
    corner.await_running("a")

    def without(spec: dict[str, Any]) -> None:
        spec["machineTypes"] = spec["machineTypes"][1:]
        spec["nodePool"][0]["machineType"] = [{"name": "spare"}]

    corner.bed.edit_machine(corner.group, without)
    message = corner.await_condition("Accepted", "False", "Invalid")
    assert "spec.machineTypes" in message
    assert f"{corner.namespace}/a" in message
    assert corner.running() == ["a"]
    corner.await_usage(1, 0, 1, 0)
    # It is accepted as soon as the last holder has gone, with no edit.
    corner.drop("a")
    corner.await_condition("Accepted", "True", "Accepted")
    corner.await_usage(1, 1, 0, 0, machine_type="spare")
    assert [row["name"] for row in corner.status()["availableMachines"]] == ["spare"]


def test_a_machine_made_again_knows_who_holds_its_units(corner: Corner) -> None:
    (node,) = corner.sell_small(2)
    corner.guest("a")
    corner.await_running("a")
    corner.bed.drop_machine(corner.group)
    corner.bed.await_that(lambda: corner.bed.get(f"{MACHINES}/{corner.group}") is None, "gone")
    corner.bed.await_that(lambda: not corner.stock(), "stock gone")
    assert corner.running() == ["a"]
    corner.sell(simple_spec([node], 2))
    corner.await_usage(2, 1, 1, 0)
    assert list(corner.holders()) == ["a"]
    corner.guests("b", "c")
    corner.await_running("a", "b")
    corner.await_waiting(c="SoldOut")
