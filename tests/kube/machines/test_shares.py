"""Stock in parts: types that depend on others, several types on a node, limits of a host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from dovetail.machines.names import MACHINE_TYPE, NODE_POOL
from tests.kube.machines.bed import MACHINES, Bed, machine_bed
from tests.kube.machines.corner import Corner, corner_of, types

DOMAIN = "imperator.tenzen-y.io/"


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with machine_bed(tmp_path_factory.mktemp("shares")) as running:
        yield running


@pytest.fixture
def corner(bed: Bed) -> Iterator[Corner]:
    with corner_of(bed) as made:
        yield made


def shaped(name: str, cpu: int, available: int, **spec: Any) -> dict[str, Any]:
    """A type of so many CPUs, with 2Gi for each."""
    shape = {"cpu": str(cpu), "memory": f"{2 * cpu}Gi", **spec}
    return {"name": name, "spec": shape, "available": available}


def nested() -> list[dict[str, Any]]:
    """Two wholes, of which halves are made, and quarters of these."""
    half = {"parent": "whole", "availableRatio": 0.5}
    quarter = {"parent": "half", "availableRatio": 0.5}
    return [
        shaped("whole", 8, 2),
        shaped("half", 4, 4, dependence=half),
        shaped("quarter", 2, 8, dependence=quarter),
    ]


def used(corner: Corner) -> dict[str, float]:
    rows = corner.status().get("availableMachines", [])
    return {row["name"]: row["usage"]["used"] for row in rows}


def await_used(corner: Corner, **wanted: float) -> None:
    corner.bed.await_that(lambda: used(corner) == wanted, f"used {wanted}, not {used(corner)}")


# -- dependence ----------------------------------------------------------------------------------


def test_a_quarter_of_a_half_of_a_whole(corner: Corner) -> None:
    """On nodes with taints."""
    spec = types(corner.add_nodes(2), *nested())
    for entry in spec["nodePool"]:
        entry["taint"] = True
    corner.sell(spec)
    corner.guest("q0", "quarter")
    corner.await_running("q0")
    await_used(corner, whole=0.25, half=0.5, quarter=1)
    # The rest of the opened whole is held by smaller ones, and can be had at once.
    corner.await_usage(2, 1, 0.25, 0, machine_type="whole")
    corner.bed.await_that(
        lambda: (corner.free("whole"), corner.free("half"), corner.free("quarter")) == (1, 3, 7),
        "free",
    )
    corner.guest("h0", "half")
    corner.guest("q1", "quarter")
    corner.await_running("q0", "q1", "h0")
    await_used(corner, whole=1, half=2, quarter=2)
    assert len({corner.node_of(name) for name in ("q0", "q1", "h0")}) == 1
    corner.await_usage(2, 1, 1, 0, machine_type="whole")
    corner.guests("w0", "w1", machine_type="whole")
    corner.bed.await_that(lambda: len(corner.running()) == 4, "the other whole")
    await_used(corner, whole=2, half=2, quarter=2)
    corner.bed.await_that(lambda: list(corner.waiting().values()) == ["SoldOut"], "one waits")
    # The parts go, in any order, and make a whole again.
    corner.drop("q0", "h0")
    await_used(corner, whole=1.25, half=0.5, quarter=1)
    corner.drop("q1")
    corner.await_running("w0", "w1")
    await_used(corner, whole=2, half=0, quarter=0)


def test_children_take_opened_wholes_before_they_open_others(corner: Corner) -> None:
    corner.sell(types(corner.add_nodes(2), *nested()))
    for n in range(4):
        corner.guest(f"q{n}", "quarter")
    corner.bed.await_that(lambda: len(corner.running()) == 4, "quarters")
    await_used(corner, whole=1, half=2, quarter=4)
    corner.await_usage(2, 1, 1, 0, machine_type="whole")
    corner.guest("w", "whole")
    corner.bed.await_that(lambda: "w" in corner.running(), "whole")


def test_a_parent_waits_for_all_of_its_parts(corner: Corner) -> None:
    """Both wholes are opened; the parent gets the one that is given back first."""
    nodes = corner.add_nodes(2)
    corner.sell(types(nodes, *nested()))
    for n, node in enumerate(nodes):
        corner.guest(f"h{n}", "half", nodeSelector={"kubernetes.io/hostname": node})
    corner.await_running("h0", "h1")
    corner.guest("w", "whole")
    corner.await_waiting(w="SoldOut")
    assert "parts" in corner.why("w")
    corner.drop("h1")
    corner.await_running("h0", "w")
    assert corner.node_of("w") == nodes[1]
    await_used(corner, whole=1.5, half=1, quarter=0)


def test_guests_that_wait_when_a_type_joins_theirs_on_its_nodes(corner: Corner) -> None:
    """The nodes get a taint that nobody knew of when they were created."""
    whole, half, _ = nested()
    spec = types(corner.add_nodes(1), {**whole, "available": 1})
    spec["nodePool"][0]["taint"] = True
    corner.sell(spec)
    corner.guest("holder", "whole")
    corner.await_running("holder")
    corner.guest("late", "whole")
    corner.await_waiting(late="SoldOut")
    corner.bed.edit_machine(
        corner.group, lambda spec: spec["machineTypes"].append({**half, "available": 2})
    )
    corner.await_usage(2, 0, 0, 0, machine_type="half")
    corner.drop("holder")
    corner.await_running("late")


# -- several types on a node ---------------------------------------------------------------------


def mixed(nodes: Sequence[str], *machine_types: dict[str, Any], **more: Any) -> dict[str, Any]:
    served = [{"name": each["name"]} for each in machine_types]
    return {
        "nodePool": [{"name": node, "machineType": served, "taint": True} for node in nodes],
        "machineTypes": list(machine_types),
        **more,
    }


def test_two_types_on_a_node_need_the_switch(corner: Corner) -> None:
    (node,) = corner.add_nodes(1)
    spec = mixed([node], shaped("large", 4, 1), shaped("small", 2, 2))
    body = {
        "apiVersion": "imperator.tenzen-y.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": corner.group, "labels": {f"{DOMAIN}machine-group": corner.group}},
        "spec": spec,
    }
    status, answer = corner.bed.create(MACHINES, body)
    assert status == 422
    assert "severalTypesPerNode" in answer["message"]
    assert "spec.nodePool" in answer["message"]
    assert node in answer["message"]


def test_a_node_of_two_types_is_marked_for_both_and_holds_both(corner: Corner) -> None:
    (node,) = corner.add_nodes(1)
    spec = mixed([node], shaped("large", 4, 1), shaped("small", 2, 2), severalTypesPerNode=True)
    corner.sell(spec)
    labels = {f"{DOMAIN}{name}": corner.group for name in ("large", "small")}
    labels[NODE_POOL] = "ready"
    marks = (labels, labels, corner.group)
    corner.bed.await_that(lambda: corner.bed.marks(node) == marks, "marks")
    held = Counter(pod["metadata"]["labels"][MACHINE_TYPE] for pod in corner.stock())
    assert held == {"large": 1, "small": 2}
    corner.guest("l", "large")
    corner.guests("s0", "s1", machine_type="small")
    corner.await_running("l", "s0", "s1")
    corner.await_usage(1, 0, 1, 0, machine_type="large")
    corner.await_usage(2, 0, 2, 0, machine_type="small")


def test_stock_that_first_fit_would_not_place(corner: Corner) -> None:
    """6 and 5 fill the first node with one CPU left, and 5 and 4 the second: so says first fit,
    and it is wrong about 4."""
    nodes = corner.add_nodes(2, cpu="10", memory="64Gi")
    spec = mixed(
        nodes,
        *(shaped("six", 6, 1), shaped("five", 5, 2), shaped("four", 4, 1)),
        severalTypesPerNode=True,
    )
    # 6 and 4 on one node, 5 and 5 on the other.
    corner.sell(spec)
    placed: dict[str, Counter[str]] = {}
    for pod in corner.stock():
        there = placed.setdefault(pod["spec"]["nodeName"], Counter())
        there[pod["metadata"]["labels"][MACHINE_TYPE]] += 1
    assert sorted(map(sorted, placed.values())) == [["five"], ["four", "six"]]
    corner.guests("f0", "f1", machine_type="five")
    corner.guest("x", "six")
    corner.guest("r", "four")
    corner.await_running("f0", "f1", "r", "x")


def test_stock_that_does_not_fit_is_refused_with_the_node(corner: Corner) -> None:
    nodes = corner.add_nodes(2, cpu="10", memory="64Gi")
    corner.bed.create_machine(
        mixed(nodes, shaped("six", 6, 2), shaped("five", 5, 1), severalTypesPerNode=True),
        corner.group,
    )
    message = corner.await_condition("Accepted", "False", "Invalid")
    assert "available" in message
    assert any(node in message for node in nodes)
    corner.await_condition("Ready", "False", "NotAccepted")


# -- hosts ---------------------------------------------------------------------------------------


def test_a_share_of_a_host_that_is_too_large_is_refused_with_the_node(corner: Corner) -> None:
    (large,) = corner.add_nodes(1, cpu="16")
    (small,) = corner.add_nodes(1, cpu="8")
    corner.bed.create_machine(
        types([large, small], shaped("big", 6, 1, hostLimit=0.5)), corner.group
    )
    message = corner.await_condition("Accepted", "False", "Invalid")
    assert "spec.machineTypes[0].spec.hostLimit" in message
    assert small in message
    assert large not in message

    def without_small(spec: dict[str, Any]) -> None:
        spec["nodePool"] = spec["nodePool"][:1]

    corner.bed.edit_machine(corner.group, without_small)
    corner.await_condition("Accepted", "True", "Accepted")
    corner.guest("a", "big")
    corner.await_running("a")
