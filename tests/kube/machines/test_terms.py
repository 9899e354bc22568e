"""Terms of sale: who is served first, who may buy, and how many units one may have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dovetail.machines.names import UNIT_GROUP, UNIT_GROUP_SIZE, USER
from tests.kube.machines.bed import Bed, machine_bed, simple_spec
from tests.kube.machines.corner import Corner, corner_of, small, types

PRIORITIES = {"urgent": 1000, "modest": 10}


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with machine_bed(tmp_path_factory.mktemp("terms")) as running:
        running.cluster.apply(
            *(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                }
                for name, value in PRIORITIES.items()
            )
        )
        yield running


@pytest.fixture
def corner(bed: Bed) -> Iterator[Corner]:
    with corner_of(bed) as made:
        yield made


# -- the line ------------------------------------------------------------------------------------


def test_those_who_wait_are_served_by_priority_then_age(corner: Corner) -> None:
    corner.sell_small(1)
    corner.guest("holder")
    corner.await_running("holder")
    line = ["urgent-0", "urgent-1", "modest", "plain-0", "plain-1", "plain-2"]
    # Created in another order than they are served in, but for those of one priority.
    for name in ("plain-0", "modest", "plain-1", "urgent-0", "plain-2", "urgent-1"):
        class_ = name.partition("-")[0]
        corner.guest(name, **({"priorityClassName": class_} if class_ in PRIORITIES else {}))
    corner.bed.await_that(lambda: list(corner.waiting()) == line, "line")
    served = "holder"
    for name in line:
        corner.drop(served)
        corner.await_running(name)
        served = name


def test_who_cannot_be_served_does_not_hold_up_those_behind(corner: Corner) -> None:
    corner.add_namespace(f"{corner.group}-capped")
    corner.sell_small(4, caps={"perNamespace": 2})
    capped = {"namespace": f"{corner.group}-capped", "priorityClassName": "urgent"}
    corner.guests("a", "b", "at-its-cap", **capped)
    corner.await_running("a", "b", namespace=f"{corner.group}-capped")
    urgent: dict[str, Any] = {"priorityClassName": "urgent"}
    corner.guest("elsewhere", nodeSelector={"kubernetes.io/hostname": "nowhere"}, **urgent)
    lonely: dict[str, Any] = {"labels": {UNIT_GROUP: "pair"}, "annotations": {UNIT_GROUP_SIZE: "2"}}
    corner.guest("half-of-a-pair", **lonely, **urgent)
    corner.guest("plain")
    corner.await_running("plain")
    corner.await_waiting(
        at_its_cap="NamespaceCapReached", elsewhere="NoNodeFits", half_of_a_pair="GroupIncomplete"
    )
    corner.await_usage(4, 1, 3, 3)


# -- buyers --------------------------------------------------------------------------------------


def test_buyers_of_the_machine_by_name(corner: Corner) -> None:
    other = corner.add_namespace(f"{corner.group}-other")
    spec = simple_spec(corner.add_nodes(1), 2)
    corner.sell({**spec, "buyers": {"namespaces": [corner.namespace]}})
    corner.guest("stranger", namespace=other)
    corner.guest("buyer")
    corner.await_running("buyer")
    corner.await_waiting(stranger="NotABuyer")
    assert other in corner.why("stranger")
    corner.await_event("NotABuyer", "stranger", namespace=other)
    corner.bed.edit_machine(corner.group, lambda spec: spec["buyers"]["namespaces"].append(other))
    corner.await_running("stranger", namespace=other)


def test_buyers_of_a_type_by_selector_as_labels_come_and_go(corner: Corner) -> None:
    team = {"matchExpressions": [{"key": "team", "operator": "In", "values": ["blue", "red"]}]}
    buyers = {"namespaceSelector": team}
    nodes = corner.add_nodes(1)
    corner.sell(types(nodes, small(available=2, buyers=buyers)))
    corner.guest("early")
    corner.await_waiting(early="NotABuyer")
    corner.change_namespace(corner.namespace, {"team": "red"})
    corner.await_running("early")
    corner.change_namespace(corner.namespace, {"team": None})
    corner.guest("late")
    corner.await_waiting(late="NotABuyer")
    # Who has a unit keeps it.
    assert corner.running() == ["early"]


def test_machine_and_type_have_to_let_a_buyer_in_both(corner: Corner) -> None:
    blue = corner.add_namespace(f"{corner.group}-blue", {"team": "blue"})
    nodes = corner.add_nodes(1)
    corner.sell(
        types(
            nodes,
            small(available=2, buyers={"namespaces": [corner.namespace]}),
            buyers={"namespaceSelector": {"matchLabels": {"team": "blue"}}},
        )
    )
    corner.guest("named-only")
    corner.guest("selected-only", namespace=blue)
    corner.await_waiting(named_only="NotABuyer", selected_only="NotABuyer")
    corner.change_namespace(corner.namespace, {"team": "blue"})
    corner.await_running("named-only")
    corner.await_waiting(selected_only="NotABuyer")


# -- caps ----------------------------------------------------------------------------------------


def test_a_cap_per_namespace_is_freed_when_a_unit_is_returned(corner: Corner) -> None:
    other = corner.add_namespace(f"{corner.group}-other")
    corner.sell_small(4, caps={"perNamespace": 2})
    corner.guests("a", "b", "c")
    corner.guest("d", namespace=other)
    corner.await_running("a", "b")
    corner.await_running("d", namespace=other)
    corner.await_waiting(c="NamespaceCapReached")
    assert corner.namespace in corner.why("c")
    assert "2" in corner.why("c")
    corner.await_usage(4, 1, 3, 1)
    corner.end("a")
    corner.bed.await_that(lambda: corner.running() == ["b", "c"], "c")
    corner.await_usage(4, 1, 3, 0)


def test_a_cap_per_user_by_what_namespaces_say(corner: Corner) -> None:
    one, two = (
        corner.add_namespace(f"{corner.group}-{name}", annotations={USER: "ann"})
        for name in ("one", "two")
    )
    corner.sell_small(4, caps={"perUser": 1})
    corner.guest("first", namespace=one)
    corner.await_running("first", namespace=one)
    corner.guest("second", namespace=two)
    corner.guest("other")
    corner.await_running("other")
    corner.await_waiting(second="UserCapReached")
    assert "ann" in corner.why("second")
    assert corner.holders()["first"]["user"] == "ann"
    corner.drop("first", namespace=one)
    corner.await_running("second", namespace=two)


def test_a_cap_per_user_by_who_creates_pods(corner: Corner) -> None:
    corner.sell_small(4, caps={"perUser": 1})
    template = corner.template()
    for user, name in (("ann", "anns-0"), ("ann", "anns-1"), ("bob", "bobs")):
        body = {"apiVersion": "v1", "kind": "Pod", **template}
        body["metadata"] = {**template["metadata"], "name": name, "namespace": corner.namespace}
        account = corner.bed.cluster.user(user, ("system:masters",))
        corner.bed.cluster.kubectl_as(account, "create", "-f", "-", given=body)
    corner.await_running("anns-0", "bobs")
    corner.await_waiting(anns_1="UserCapReached")
    users = {"anns-0": "ann", "bobs": "bob"}
    corner.bed.await_that(
        lambda: {name: row["user"] for name, row in corner.holders().items()} == users, "holders"
    )


def test_a_cap_that_is_raised_lets_in_who_waits(corner: Corner) -> None:
    corner.sell_small(4, caps={"perNamespace": 1})
    corner.guests("a", "b", "c")
    corner.await_waiting(b="NamespaceCapReached", c="NamespaceCapReached")

    def raised(spec: dict[str, Any]) -> None:
        spec["machineTypes"][0]["caps"]["perNamespace"] = 2

    corner.bed.edit_machine(corner.group, raised)
    corner.await_running("a", "b")
    corner.await_waiting(c="NamespaceCapReached")
