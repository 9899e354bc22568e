"""nodeSelector and required node affinity: every operator, and what cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.podfit.building import REQUIRED, Fleet, node, pod

FLEET = (
    node("a", {"zone": "east", "cores": "8"}),
    node("b", {"zone": "west", "cores": "16"}),
    node("c", {"zone": "", "cores": "many"}),
    node("d", {}),
)


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("operator", "values", "right"),
    [
        ("In", ["east", "north"], "a"),
        ("In", [""], "c"),
        ("NotIn", ["east"], "b c d"),
        ("NotIn", ["nowhere"], "a b c d"),
        ("Exists", [], "a b c"),
        ("DoesNotExist", [], "d"),
        ("NotIn", [], ""),
        ("NotIn", ["not a label!"], ""),
        ("Like", ["east"], ""),
    ],
)
def test_operators(operator: str, values: list[str], right: str) -> None:
    term = {"matchExpressions": [expression("zone", operator, *values)]}
    assert Fleet(FLEET).fitting(pod("p", affinity=affinity(term))) == right


@pytest.mark.parametrize(
    ("operator", "bound", "right"),
    [("Gt", "8", "b"), ("Lt", "16", "a"), ("Gt", "0", "a b"), ("Lt", "x", ""), ("Lt", "-1", "")],
)
def test_numbers(operator: str, bound: str, right: str) -> None:
    term = {"matchExpressions": [expression("cores", operator, bound)]}
    assert Fleet(FLEET).fitting(pod("p", affinity=affinity(term))) == right


def test_terms_are_alternatives_and_requirements_are_not() -> None:
    both = {
        "matchExpressions": [expression("zone", "Exists"), expression("cores", "In", "16", "many")]
    }
    third = {"matchExpressions": [expression("zone", "DoesNotExist")]}
    assert Fleet(FLEET).fitting(pod("p", affinity=affinity(both))) == "b c"
    assert Fleet(FLEET).fitting(pod("p", affinity=affinity(both, third))) == "b c d"


def test_an_empty_term_is_met_by_no_node_and_neither_are_no_terms() -> None:
    assert Fleet(FLEET).fitting(pod("p", affinity=affinity({}))) == ""
    assert Fleet(FLEET).fitting(pod("p", affinity=affinity())) == ""


@pytest.mark.parametrize(
    ("operator", "values", "right"),
    [("In", ["b"], "b"), ("NotIn", ["b"], "a c d"), ("In", ["gone"], ""), ("In", ["a", "b"], "")],
)
def test_a_node_is_named_by_its_field(operator: str, values: list[str], right: str) -> None:
    """As daemon sets do. The field takes one value: with two, the term makes no sense."""
    term = {"matchFields": [expression("metadata.name", operator, *values)]}
    assert Fleet(FLEET).fitting(pod("p", affinity=affinity(term))) == right


def test_node_selector_and_affinity_are_both_to_be_met() -> None:
    term = {"matchExpressions": [expression("cores", "Exists")]}
    ask = pod("p", nodeSelector={"zone": "west"}, affinity=affinity(term))
    fleet = Fleet(FLEET)
    assert fleet.fitting(ask) == "b"
    assert fleet.why(ask, "a") == "nodeSelector wants label zone=west, which is 'east'"
    assert fleet.why(ask, "d") == "nodeSelector wants label zone=west, which is not set"


def test_labels_that_change_are_seen() -> None:
    fleet = Fleet(FLEET)
    ask = pod("p", nodeSelector={"zone": "west"})
    assert fleet.fitting(ask) == "b"
    fleet.table.set_node(node("a", {"zone": "west"}))
    fleet.table.set_node(node("b", {}))
    assert fleet.fitting(ask) == "a"


def test_names_that_come_and_go_leave_nothing_behind() -> None:
    """A column of host names stays as large as the fleet."""
    fleet = Fleet([node("first")])
    ask = pod("p", nodeSelector={"kubernetes.io/hostname": "node-499"})
    assert fleet.fitting(ask) == ""
    for number in range(500):
        fleet.table.set_node(node(f"node-{number}"))
        assert fleet.fitting(ask) == ("node-499" if number == 499 else "")
        if number < 499:
            fleet.table.drop_node(f"node-{number}")
            fleet.rows.drop(f"node-{number}")
    assert len(fleet.rows) == 2
    column = fleet.table._nodes.labels.column("kubernetes.io/hostname")
    assert len(column.values) < 100
