"""Machines beside each other, and while units are sold: what the schema of one cannot know."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dovetail.kube import manifests
from dovetail.machines.names import LONGEST_STATEFUL_SET, MACHINE_GROUP
from tests.kube.manifests.machines.api import (
    MACHINES,
    install_kinds,
    machine_object,
    one_type,
    refusal,
)
from tests.support.kube.cluster import Cluster

LABEL = f"metadata.labels[{MACHINE_GROUP}]"


@pytest.fixture(scope="module")
def rules(cluster: Cluster) -> Iterator[Cluster]:
    """In force, beside a Machine of the specification's group and nodes."""
    install_kinds(cluster)
    given = manifests.text(["machines-rules"])
    cluster.kubectl("apply", "--server-side", "-f", "-", given=given)
    cluster.kubectl("create", "-f", "-", given=machine_object(name="first"))
    same, unnamed = another("x", GENERAL), machine_object(one_type(), name="x", labels={})
    cluster.await_that(lambda: "already" in refusal(cluster, same), "rules beside others")
    cluster.await_that(lambda: "is missing" in refusal(cluster, unnamed), "rules of labels")
    yield cluster
    cluster.kubectl("delete", "-f", "-", given=given)
    cluster.kubectl("delete", "machines", "--all")


GENERAL = "general-machine"


def another(name: str, group: str, spec: dict[str, Any] | None = None) -> dict[str, Any]:
    return machine_object(spec or one_type(), name=name, labels={MACHINE_GROUP: group})


def change(cluster: Cluster, name: str, *operations: dict[str, Any], sub: str = "") -> str:
    patching = ("patch", "machine", name, "--type=json", "-p", json.dumps(operations))
    return cluster.kubectl(*patching, *([f"--subresource={sub}"] if sub else []), check=False)


def put(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def test_a_machine_without_a_group_is_refused(rules: Cluster) -> None:
    said = refusal(rules, machine_object(one_type(), name="second", labels={}))
    assert f"{LABEL}: is missing; it names the group, such as general-machine" in said


@pytest.mark.parametrize("group", ["GPU", "a_b", "a.b"])
def test_letter_m_a_group_that_no_service_can_be_named_after_is_refused(
    rules: Cluster, group: str
) -> None:
    assert f"{LABEL}: {group} is to be part of" in refusal(rules, another("second", group))


def test_no_two_machines_have_one_group(rules: Cluster) -> None:
    said = refusal(rules, another("second", GENERAL))
    assert f"{LABEL}: general-machine is the group of the Machine first already" in said
    assert not refusal(rules, another("second", "second"))


def test_inconsistency_8_type_and_group_together_are_no_longer_than_a_stateful_set(
    rules: Cluster,
) -> None:
    group = "g" * 20
    name = "t" * (LONGEST_STATEFUL_SET - 1 - len(group))
    assert not refusal(rules, another("second", group, one_type(name)))
    said = refusal(rules, another("second", group, one_type(name + "t")))
    assert "spec.machineTypes[0].name" in said
    assert "more than 52 characters" in said


def test_letter_m_a_name_that_comes_of_another_type_and_group_is_refused(rules: Cluster) -> None:
    spec = one_type("compute-medium-general")
    said = refusal(rules, another("second", "machine", spec))
    assert (
        "come to compute-medium-general-machine, the name that stock of the Machine first" in said
    )


def test_defect_8_a_node_belongs_to_one_machine(rules: Cluster) -> None:
    spec = one_type()
    spec["nodePool"].append({"name": "eriri", "machineType": [{"name": "small"}]})
    said = refusal(rules, another("second", "second", spec))
    assert "spec.nodePool[1].name: eriri is a node of the Machine first, group general-mach" in said


@pytest.fixture
def small(rules: Cluster) -> Iterator[Cluster]:
    """A Machine of one type, of which a unit is sold."""
    rules.kubectl("create", "-f", "-", given=another("small", "small"))
    usage = {"maximum": 1, "reserved": 0, "used": 1, "waiting": 0}
    holder = {"type": "small", "namespace": "team", "pod": "trainer-0"}
    status = {"availableMachines": [{"name": "small", "usage": usage}], "holders": [holder]}
    assert "patched" in change(rules, "small", put("/status", status), sub="status")
    yield rules
    rules.kubectl("delete", "machine", "small", "--ignore-not-found")


@pytest.mark.parametrize(
    "operation",
    [
        put("/spec/machineTypes/0/spec/cpu", "3"),
        put("/spec/machineTypes/0/spec/memory", "4G"),
        put(
            "/spec/machineTypes/0/spec/gpu",
            {"type": "nvidia.com/gpu", "num": 1, "family": "ampere"},
        ),
    ],
    ids=["cpu", "memory", "gpu"],
)
def test_letter_n_a_shape_that_is_sold_does_not_change_and_the_holder_is_named(
    small: Cluster, operation: dict[str, Any]
) -> None:
    said = change(small, "small", operation)
    assert "spec.machineTypes[0].spec: the shape of small cannot change while" in said
    assert "are sold, to team/trainer-0" in said


def test_a_shape_that_is_sold_may_be_written_otherwise_and_all_else_may_change(
    small: Cluster,
) -> None:
    assert "patched" in change(
        small,
        "small",
        put("/spec/machineTypes/0/spec/cpu", "2000m"),
        put("/spec/machineTypes/0/spec/memory", 4 * 2**30),
        put("/spec/machineTypes/0/available", 0),
        put("/spec/machineTypes/0/maxDuration", "8h"),
    )


def test_a_type_that_is_sold_may_be_renamed(small: Cluster) -> None:
    """Its guests stay; the operator knows whom they were sold to."""
    spec = one_type("other")
    assert "patched" in change(small, "small", put("/spec", spec))


def test_a_shape_of_which_nothing_is_sold_changes(small: Cluster) -> None:
    nothing = {"availableMachines": [{"name": "small", "usage": {"used": 0}}], "holders": []}
    change(small, "small", put("/status", nothing), sub="status")
    assert "patched" in change(small, "small", put("/spec/machineTypes/0/spec/cpu", "3"))


def test_the_group_of_a_machine_stays(small: Cluster) -> None:
    labelling = ("label", "machine", "small", "--overwrite")
    assert f"{LABEL}: stays as it is, small" in small.kubectl(
        *labelling, f"{MACHINE_GROUP}=other", check=False
    )
    assert f"{LABEL}: is missing" in small.kubectl(*labelling, f"{MACHINE_GROUP}-", check=False)
    assert "labeled" in small.kubectl(*labelling, "team=a")


def test_letter_j_nothing_is_judged_once_it_is_being_deleted(small: Cluster) -> None:
    change(small, "small", put("/metadata/finalizers", ["example.com/held"]))
    small.kubectl("delete", "machine", "small", "--wait=false")
    took = {"op": "remove", "path": "/metadata/finalizers"}
    relabelled = {"op": "remove", "path": "/metadata/labels"}
    assert "patched" in change(small, "small", relabelled, took)
    small.await_that(lambda: small.request("GET", f"{MACHINES}/small")[0] == 404, "deletion")


def test_letter_j_what_was_so_before_the_rules_is_left_alone(rules: Cluster) -> None:
    """Machines that share a node since before: both may change, but claim no other."""
    rules.kubectl("delete", "-f", "-", given=manifests.text(["machines-rules"]))
    spec = one_type()
    spec["nodePool"].append({"name": "eriri", "machineType": [{"name": "small"}]})
    old = another("old", GENERAL, spec)
    rules.await_that(lambda: rules.request("POST", MACHINES, old)[0] == 201, "end of the rules")
    rules.kubectl("apply", "--server-side", "-f", "-", given=manifests.text(["machines-rules"]))
    rules.await_that(lambda: "already" in refusal(rules, another("x", GENERAL)), "rules")
    assert "patched" in change(rules, "old", put("/spec/machineTypes/0/available", 5))
    node = {"name": "michiru", "machineType": [{"name": "small"}]}
    assert "michiru is a node of the Machine first" in change(
        rules, "old", put("/spec/nodePool/-", node)
    )
    rules.kubectl("delete", "machine", "old")


def test_large_machines_are_within_the_budget_of_the_rules(rules: Cluster) -> None:
    def pool(start: int) -> list[dict[str, Any]]:
        return [
            {"name": f"a-node-with-a-long-name-{n}", "machineType": [{"name": "small"}]}
            for n in range(start, start + 5000)
        ]

    large = another("large", "large", {**one_type(), "nodePool": pool(0)})
    assert rules.request("POST", MACHINES, large)[0] == 201
    try:
        beside = another("beside", "beside", {**one_type(), "nodePool": pool(5000)})
        assert not refusal(rules, beside)
        beside["spec"]["nodePool"] = pool(4999)
        rules.await_that(
            lambda: "nodePool[0].name: a-node-with-a-long-name-4999" in refusal(rules, beside),
            "refusal",
        )
        assert "patched" in change(rules, "large", put("/spec/machineTypes/0/available", 5))
    finally:
        rules.kubectl("delete", "machine", "large")
