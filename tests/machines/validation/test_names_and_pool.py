"""Names, joins and nodes: what the existing validation does not look at."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.machines.names import RESERVED_TYPES
from dovetail.machines.validation import findings
from tests.machines.building import machine
from tests.machines.validation.worlds import faults, world

LABEL = "metadata.labels[imperator.tenzen-y.io/machine-group]"
MEDIUM: dict[str, Any] = {"spec": {"cpu": 1, "memory": "1Gi"}, "available": 0}


def of_types(*names: str, group: str, name: str = "other") -> Any:
    return machine({"machineTypes": [{"name": each, **MEDIUM} for each in names]}, name, group)


def test_defect_8_a_node_belongs_to_one_machine() -> None:
    pool = [{"name": "eriri", "machineType": [{"name": "a"}]}]
    other = machine({"nodePool": pool, "machineTypes": []}, "second", "second")
    [fault] = findings(machine(), world(other))
    assert str(fault) == "spec.nodePool[2].name: node 'eriri' belongs to Machine second"


def test_letter_c_upstreams_two_examples_claim_one_node() -> None:
    """The second of them is refused, and its message names the first."""
    first = machine(name="general-machine", group="general-machine")
    second = machine(name="machine-with-gpus", group="gpu-machines")
    found = findings(second, world(first))
    assert {each.message for each in found} == {
        f"node {name!r} belongs to Machine general-machine"
        for name in ("michiru", "utaha", "eriri")
    }


def test_a_machine_is_not_in_its_own_way() -> None:
    assert findings(machine(), world(machine())) == ()


def test_a_node_is_in_a_pool_once() -> None:
    assert faults({"nodePool[2].name": "utaha"}) == [
        ("spec.nodePool[2].name", "node 'utaha' is in the pool already: nodePool[1]")
    ]


def test_a_node_serves_some_type() -> None:
    assert faults({"nodePool[2].machineType": []}) == [
        ("spec.nodePool[2].machineType", "it has to name the type that the node serves")
    ]


def test_modes_are_ready_and_maintenance() -> None:
    """Not-ready is what is observed of a node, and nothing to ask for."""
    assert faults({"nodePool[0].mode": "not-ready"}) == [
        ("spec.nodePool[0].mode", "'not-ready' is neither ready nor maintenance")
    ]


TWO_TYPES = [{"name": "compute-medium"}, {"name": "compute-large"}]


def test_letter_d_several_types_on_a_node_where_the_machine_says_so() -> None:
    several = {"severalTypesPerNode": True, "nodePool[1].machineType": TWO_TYPES}
    assert not [path for path, _ in faults(several) if "nodePool" in path]


def test_a_node_names_a_type_once() -> None:
    twice = {"severalTypesPerNode": True, "nodePool[1].machineType": TWO_TYPES[:1] * 2}
    assert ("spec.nodePool[1].machineType[1].name", "type 'compute-medium' is named twice") in (
        faults(twice)
    )


@pytest.mark.parametrize("name", sorted(RESERVED_TYPES))
def test_defect_8_types_do_not_have_the_names_of_labels(name: str) -> None:
    [fault] = findings(of_types(name, group="a"), world())
    assert fault.path == "spec.machineTypes[0].name"
    assert "reserved" in fault.message


def test_node_pool_is_among_the_reserved_names() -> None:
    assert {"node-pool", "machine-group", "machine-type", "pod-role"} <= RESERVED_TYPES


@pytest.mark.parametrize("name", ["3090s", "-a", "a-", "A", "a.b", "a_b", "", "ä"])
def test_letter_m_a_types_name_begins_a_services_name(name: str) -> None:
    [fault] = findings(of_types(name, group="a"), world())
    assert fault.path == "spec.machineTypes[0].name"
    assert "Service's name" in fault.message


@pytest.mark.parametrize("group", ["A", "a.b", "a_b", "a-"])
def test_letter_m_a_group_ends_a_services_name(group: str) -> None:
    [fault] = findings(of_types("a", group=group), world())
    assert fault.path == LABEL
    assert "Service's name" in fault.message


@pytest.mark.parametrize("group", ["3090s", "a", "a-1"])
def test_a_group_may_begin_with_a_digit(group: str) -> None:
    assert findings(of_types("a", group=group), world()) == ()


def test_inconsistency_8_a_join_has_52_characters_at_most() -> None:
    assert findings(of_types("a" * 26, group="b" * 25), world()) == ()
    [fault] = findings(of_types("a" * 26, group="b" * 26), world())
    assert fault.path == "spec.machineTypes[0].name"
    assert "of 53 characters: 52 at most" in fault.message


def test_inconsistency_8_joins_do_not_collide_across_machines() -> None:
    """`a-b` of group `c` and `a` of group `b-c` both make `a-b-c`."""
    other = of_types("x", "a", group="b-c")
    [fault] = findings(of_types("a-b", group="c", name="ours"), world(other))
    assert fault.path == "spec.machineTypes[0].name"
    assert fault.message == (
        "with its group it makes the name 'a-b-c', which type 'a' of Machine other has already"
    )


def test_letter_b_name_and_group_are_independent() -> None:
    assert findings(machine(name="machine-with-gpus", group="gpu-machines"), world()) == ()


def test_the_pools_name_has_to_fit() -> None:
    [fault] = findings(machine(name="m" * 250), world())
    assert (
        str(fault)
        == "metadata.name: the name of its node pool would have 260 characters: 253 at most"
    )
