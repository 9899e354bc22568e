"""Who may buy."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dovetail.machines.documents import Buyers
from dovetail.machines.selling.buyers import may_buy, may_buy_type
from tests.machines.building import machine, namespace

VISION = namespace("vision", {"team": "a", "tier": "gold"})


def buyers(written: dict[str, Any]) -> Buyers:
    return msgspec.convert(written, Buyers)


def test_everybody_may_buy_where_nothing_is_said() -> None:
    assert may_buy(None, VISION)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({}, False),
        ({"namespaces": ["vision"]}, True),
        ({"namespaces": ["speech"]}, False),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "a", "tier": "tin"}}}, False),
        ({"namespaces": ["speech"], "namespaceSelector": {"matchLabels": {"team": "a"}}}, True),
        ({"namespaces": ["vision"], "namespaceSelector": {"matchLabels": {"team": "b"}}}, True),
    ],
)
def test_who_is_listed_and_who_is_selected_add_up(written: dict[str, Any], expected: bool) -> None:
    assert may_buy(buyers(written), VISION) is expected


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("team", "In", ["a", "b"], True),
        ("team", "In", ["b"], False),
        ("absent", "In", ["a"], False),
        ("team", "NotIn", ["b"], True),
        ("team", "NotIn", ["a"], False),
        ("absent", "NotIn", ["a"], True),
        ("team", "Exists", [], True),
        ("absent", "Exists", [], False),
        ("absent", "DoesNotExist", [], True),
        ("team", "DoesNotExist", [], False),
    ],
)
def test_expressions_are_read_as_kubernetes_does(
    key: str, operator: str, values: list[str], expected: bool
) -> None:
    term = {"key": key, "operator": operator, "values": values}
    assert may_buy(buyers({"namespaceSelector": {"matchExpressions": [term]}}), VISION) is expected


@pytest.mark.parametrize(
    ("operator", "values"), [("Gt", ["1"]), ("In", []), ("Exists", ["a"]), ("in", ["a"])]
)
def test_an_expression_that_kubernetes_would_refuse_lets_nobody_in(
    operator: str, values: list[str]
) -> None:
    rich = namespace("vision", {"team": "2"})
    term = {"key": "team", "operator": operator, "values": values}
    assert not may_buy(buyers({"namespaceSelector": {"matchExpressions": [term]}}), rich)


@pytest.mark.parametrize(
    ("of_machine", "of_type", "expected"),
    [
        (None, None, True),
        (["vision"], None, True),
        (None, ["vision"], True),
        (["vision"], ["vision"], True),
        (["vision"], ["speech"], False),
        (["speech"], ["vision"], False),
    ],
)
def test_machine_and_type_have_to_let_it_in(
    of_machine: list[str] | None, of_type: list[str] | None, expected: bool
) -> None:
    written: dict[str, Any] = {"name": "a", "spec": {"cpu": 1, "memory": "1Gi"}, "available": 1}
    if of_type is not None:
        written["buyers"] = {"namespaces": of_type}
    spec: dict[str, Any] = {"machineTypes": [written]}
    if of_machine is not None:
        spec["buyers"] = {"namespaces": of_machine}
    read = machine(spec).spec
    assert may_buy_type(read, read.machine_types[0], VISION) is expected
